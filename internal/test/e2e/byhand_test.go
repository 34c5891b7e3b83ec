package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// apply reports that another rate than the one in the document is in force, even if the
// document changes nothing.
func TestAnApplyTellsOfARateThatWasSetByHand(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.mustRun("", "rate", "channel", "news/email", "7/s")
	document := news(r.addr, "")
	if text := s.mustRun(document, "apply", "-f", "-"); !strings.Contains(text, "is overridden with 7/s") {
		t.Errorf("printed %s", text)
	}
	if diff := into[client.Diff](t, s.mustRun(document, "apply", "-f", "-", "--dry-run", "--json")); len(diff.Notes) != 1 {
		t.Errorf("of a dry run %+v", diff)
	}
	s.mustRun("", "rate", "channel", "news/email", "configured")
	if text := s.mustRun(document, "apply", "-f", "-"); strings.Contains(text, "by hand") {
		t.Errorf("afterwards %s", text)
	}
}
