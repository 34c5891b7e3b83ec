package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A preview of a digest tells of the events that are named, in their order, and of
// made up ones where none is.
func TestPreviewShowsWhatADigestSays(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	document := write(t, "digest.yaml", `service: news
channels: {hook: {driver: webhook}}
templates:
  several:
    subject: "{{ count }} stories, {{ digest.cadence }}"
    text: "{% for item in items %}{{ item.event.title }} at {{ item.event.place }} ({{ item.meta.topic }}); {% endfor %}for {{ subscriber.address }}"
    html: '<html lang="en"><ul>{% for item in items %}<li>{{ item.event.title }}</li>{% endfor %}</ul>'
`)
	s.mustRun("", "apply", "-f", document)
	first, second := s.http.publish(`{"title":"<Flood>","place":"Graz"}`), s.http.publish(`{"title":"Fire","place":"Linz"}`)
	show := func(args ...string) preview {
		t.Helper()
		return into[preview](t, s.mustRun("", append([]string{"preview", "several", "--json"}, args...)...))
	}
	p := show("--event", second, "--event", first, "--to", "ada@example.org")
	var data []map[string]string
	if err := json.Unmarshal(p.Data, &data); err != nil || len(data) != 2 || data[1]["title"] != "<Flood>" {
		t.Errorf("the data are %s (%v)", p.Data, err)
	}
	if p.Sample || p.Subject != "2 stories, daily 08:00" || p.Text != "Fire at Linz (story); <Flood> at Graz (story); for ada@example.org" || !strings.Contains(p.HTML, "<li>Fire</li><li>&lt;Flood&gt;</li>") || !strings.Contains(p.Raw, "2 stories") {
		t.Errorf("of two events: %+v", p)
	}
	if p := show("--event", first); p.Subject != "1 stories, daily 08:00" || strings.Contains(p.Text, "Fire") {
		t.Errorf("of one event: %+v", p)
	}
	if p := show("--data", write(t, "d.json", `{"title":"own","place":"x"}`)); p.Sample || p.Text != "own at x (); for sample@example.org" {
		t.Errorf("of data: %+v", p)
	}
	if p := show("--event", second, "--event", first, "--channel", "hook"); strings.Count(p.Raw, `"title":`) != 2 || !strings.Contains(p.Raw, `"cadence":"daily 08:00"`) {
		t.Errorf("to a program: %s", p.Raw)
	}
	if p := show("--topic", "story"); !p.Sample || p.Subject != "2 stories, daily 08:00" || strings.Count(p.Text, "(story)") != 2 {
		t.Errorf("made up: %+v", p)
	}
	for _, wrong := range [][]string{{"story", "--event", first, "--event", second, "/events", "single event"}, {"several", "--event", first, "--event", "evt-20200101-1001", "/events/0", "there is no data"}} {
		args, want := wrong[:len(wrong)-2], wrong[len(wrong)-2:]
		ran := s.run("", append([]string{"preview"}, args...)...)
		if ran.code != 1 || !strings.Contains(ran.err, want[0]) || !strings.Contains(ran.err, want[1]) {
			t.Errorf("%v ended with %d: %s", args, ran.code, ran.err)
		}
	}
}
