package server

import (
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/render"
)

func TestTheReasonOfAPauseTellsWhichVersionFailed(t *testing.T) {
	source := &catalog.TemplateSource{Service: "news", Name: "story-2.b", Version: 17}
	reason := pauseReason(source, 61, 100, render.Fault{Part: "locales/cy/text", Line: 3, Variables: []string{"event.since", "sub.x"}})
	const want = "template story-2.b@17 fails for 61 of the first 100 recipients (locales/cy/text, line 3, which reads event.since, sub.x): apply a corrected version, and the broadcast resumes"
	if reason != want {
		t.Errorf("got  %s\nwant %s", reason, want)
	}
	if of, ok := pausedTemplate(reason); !ok || of.template != "story-2.b" || of.version != 17 {
		t.Errorf("read back as %+v, %v", of, ok)
	}
	for _, other := range []string{"", "wrong text", "template story@1 fails", "the template story@1 fails for 1 of the first 1 recipients (text)", "its first 100 messages all failed; mend the cause and resume it"} {
		if of, ok := pausedTemplate(other); ok {
			t.Errorf("%q is read as %+v", other, of)
		}
	}
}
