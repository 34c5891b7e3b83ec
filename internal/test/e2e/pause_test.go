package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// Nothing is sent for a paused subscription, also after a restart, until it is
// resumed.
func TestAPausedSubscriptionGetsNothing(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	const line = `{"id":"ada","topic":"story","channel":"email","to":"ada@example.org"}`
	s.http.subscribe(line)
	s.http.subscribe(`{"id":"bob","topic":"story","channel":"email","to":"bob@example.org"}`)
	publish := func() string {
		t.Helper()
		event := s.http.publish(`{"title":"x","level":4,"place":"Vienna"}`)
		s.http.completed(event)
		return event
	}
	s.mustRun("", "subscription", "pause", "ada")
	s.http.must(204, "POST", "/v1/subscriptions/ada/pause", "", "")
	s.http.must(200, "POST", "/v1/subscriptions", plain, line) // does not resume it
	missed := publish()
	if got := into[client.SubscriptionRecord](t, s.http.must(200, "GET", "/v1/subscriptions/ada", "", "")); got.State != "paused" || got.PausedAt.IsZero() {
		t.Errorf("it is %+v", got)
	}
	if list := s.mustRun("", "subscription", "list", "--state", "paused"); !strings.Contains(list, "ada@example.org") || strings.Contains(list, "bob@example.org") {
		t.Errorf("paused are %s", list)
	}
	if export := s.mustRun("", "export", "subscriptions"); strings.Count(export, `"state":"paused"`) != 1 || strings.Count(export, "\n") != 2 {
		t.Errorf("exported %s", export)
	}
	s.stop()
	s.start()
	publish()
	if n := r.total(); n != 2 {
		t.Fatalf("%d mails, want bob's two", n)
	}
	s.mustRun("", "subscription", "resume", "ada")
	publish()
	if n := r.total(); n != 4 {
		t.Fatalf("%d mails, want bob's three and one of ada's", n)
	}
	if e := into[fanfare.Explanation](t, s.mustRun("", "explain", "--json", "ada", missed)); e.Wanted || !strings.Contains(e.Summary, "paused when the event was received") {
		t.Errorf("explained as %+v", e)
	}
	if audit := s.mustRun("", "audit"); !strings.Contains(audit, "pause") || !strings.Contains(audit, "resume") {
		t.Errorf("the audit has %s", audit)
	}
}
