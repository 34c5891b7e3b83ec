package dispatch

import (
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/render"
)

func TestPauseReasonNamesTheVersion(t *testing.T) {
	source := &catalog.TemplateSource{Service: "news", Name: "story-2.b", Version: 17}
	reason := pauseReason(source, 61, 100, render.Fault{Part: "locales/cy/text", Line: 3, Variables: []string{"event.since", "sub.x"}})
	const want = "template story-2.b@17 fails for 61 of the first 100 recipients (locales/cy/text, line 3, which uses event.since, sub.x): apply a corrected version to resume the broadcast"
	if reason != want {
		t.Errorf("got  %s\nwant %s", reason, want)
	}
	if template, version, ok := pausedTemplate(reason); !ok || template != "story-2.b" || version != 17 {
		t.Errorf("read back as %s@%d, %v", template, version, ok)
	}
	for _, other := range []string{"", "wrong text", "template story@1 fails", "the template story@1 fails for 1 of the first 1 recipients (text)", "its first 100 messages all failed; mend the cause and resume it"} {
		if template, version, ok := pausedTemplate(other); ok {
			t.Errorf("%q is read as %s@%d", other, template, version)
		}
	}
}
