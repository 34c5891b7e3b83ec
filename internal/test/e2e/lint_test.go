package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// Lint reports findings for stored templates, drafts and dry runs, and never blocks a change.
func TestLintSaysWhatReadersAreGoingToMind(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	if said := s.mustRun("", "template", "lint", "story"); !strings.Contains(said, "no problems found in 1 template") {
		t.Errorf("of a good template it said %q", said)
	}
	document := write(t, "bad.yaml", "service: news\ntemplates:\n  bad:\n    subject: s\n    text: t\n    html: |\n      <html lang=\"en\">\n      <p>Much is to be read here.</p> <a href=\"http://example.org/{{ event.title }}\">Details</a>\n      </html>\n")
	const where, what = "bad/html", "link-insecure"
	ran := s.run("", "template", "lint", "-f", document)
	if ran.code != 1 || !strings.Contains(ran.out, where+":2:33 "+what) || !strings.Contains(ran.err, "1 problem found") {
		t.Errorf("of a draft it ended with %d and said %q, %q", ran.code, ran.out, ran.err)
	}
	diff := into[client.Diff](t, s.mustRun("", "apply", "-f", document, "--dry-run", "--json"))
	if len(diff.Notes) != 1 || !strings.Contains(diff.Notes[0], where+", line 2, column 33: "+what) || len(diff.Changes) != 1 {
		t.Errorf("a dry run says %+v", diff)
	}
	if diff := into[client.Diff](t, s.mustRun("", "apply", "-f", document, "--json")); len(diff.Notes) != 1 || len(diff.Changes) != 1 {
		t.Errorf("an apply says %+v", diff)
	}
	stored := into[[]client.Lint](t, s.run("", "template", "lint", "--json").out)
	for _, l := range stored {
		if bad := l.Template == "bad@1"; bad != (len(l.Findings) > 0) {
			t.Errorf("of what is stored it says %+v", l)
		}
	}
	// All commands that check a template report a failure for a kind of recipient.
	fails := write(t, "fails.yaml", "service: news\nchannels: {hook: {driver: webhook}}\ntemplates:\n  story:\n    json: '{\"level\": {{ event.level }}}'\n")
	for _, args := range [][]string{{"template", "lint", "-f", fails}, {"apply", "-f", fails}, {"apply", "-f", fails, "--dry-run"}, {"preview", "story", "-f", fails}} {
		if ran := s.run("", args...); ran.code != 1 || !strings.Contains(ran.out+ran.err, "tried with an event with only the fields that the schema requires") {
			t.Errorf("%v ended with %d and said %s%s", args, ran.code, ran.out, ran.err)
		}
	}
	misspelled := write(t, "misspelled.yaml", "service: news\ntemplates:\n  story:\n    subject: s\n    text: |\n      a\n      {{ event.titel }}\n")
	for _, args := range [][]string{{"template", "lint", "-f", misspelled}, {"apply", "-f", misspelled}, {"apply", "-f", misspelled, "--dry-run"}, {"preview", "story", "-f", misspelled}} {
		if ran := s.run("", args...); ran.code != 1 || !strings.Contains(ran.out+ran.err, "unknown field event.titel") || !strings.Contains(ran.out+ran.err, "did you mean title?") {
			t.Errorf("%v ended with %d and said %s%s", args, ran.code, ran.out, ran.err)
		}
	}
	welsh := write(t, "welsh.yaml", "service: news\ntemplates:\n  bad:\n    subject: s\n    text: t\n    locales:\n      cy: {subject: 'Nawr!!', text: t}\n")
	if ran := s.run("", "template", "lint", "-f", welsh); ran.code != 1 || !strings.Contains(ran.out, "bad/locales/cy/subject:1:5 subject-marks") {
		t.Errorf("of another language: %d %s%s", ran.code, ran.out, ran.err)
	}
	if ran := s.run("", "template", "lint", "none", "-f", document); ran.code != 1 || !strings.Contains(ran.err, "no template none") {
		t.Errorf("of a template that is not there: %d %s", ran.code, ran.err)
	}
	if ran := s.run("", "template", "lint", "none"); ran.code != 1 || !strings.Contains(ran.err, `no template "none"`) {
		t.Errorf("of a template that is not stored: %d %s", ran.code, ran.err)
	}
}
