package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// whyNot is what the trace says of the one delivery of an event to somebody.
func whyNot(t *testing.T, s *server, event, to string) string {
	t.Helper()
	all := s.http.deliveries(event, "&recipient="+to)
	if len(all) != 1 || all[0].State != "suppressed" {
		t.Fatalf("to %s: %+v", to, all)
	}
	one := into[fanfare.Delivery](t, s.http.must(200, "GET", "/v1/deliveries/"+all[0].ID, "", ""))
	if len(one.Attempts) == 0 {
		t.Fatalf("to %s: no attempts in %+v", to, one)
	}
	return one.Attempts[len(one.Attempts)-1].Text
}

// A suppressed address gets no message, not even waiting ones, until the suppression is lifted.
// Traces show the reason.
func TestASuppressionHoldsForWhatWaitsAndForWhatComes(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("staying@example.org", "bounced@example.org", "everywhere@example.org")
	s.mustRun("", "pause", "--channel", "news/email", "--reason", "test")
	event := s.http.publish(`{"title":"waits"}`)
	eventually(t, "the event is frozen", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && s.http.broadcast(event).Messages == 3
	})
	s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"Bounced@example.org","reason":"hard_bounce","source":"smtp 192.0.2.1"}`)
	s.mustRun("", "suppression", "add", "everywhere@example.org", "--reason", "complaint", "--all-services")
	s.mustRun("", "resume", "--channel", "news/email")
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 1 || b.Counts[fanfare.Suppressed] != 2 {
		t.Errorf("what waited: %v", b.Counts)
	}
	for to, want := range map[string]string{"bounced@example.org": "hard_bounce", "everywhere@example.org": "complaint, for all services"} {
		if why := whyNot(t, s, event, to); !strings.HasSuffix(why, want) {
			t.Errorf("to %s: %q", to, why)
		}
	}
	if b := s.http.completed(s.http.publish(`{"title":"next"}`)); b.Counts[fanfare.Suppressed] != 2 {
		t.Errorf("what came later: %v", b.Counts)
	}
	if ran := s.run("", "send", "--to", "bounced@example.org", "--channel", "email", "--subject", "s", "--text", "t", "--wait"); ran.code != 2 || !strings.Contains(ran.out, "suppressed") {
		t.Errorf("a message by name ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	put := `{"id":"more","topic":"story","channel":"email","to":"bounced@example.org"}`
	if got := s.http.refused(409, "POST", "/v1/subscriptions", plain, put); got.Pointer != "/to" || !strings.Contains(got.Hint, "once the mailbox works again") {
		t.Errorf("it can be subscribed: %+v", got)
	}
	s.mustRun("", "suppression", "lift", "bounced@example.org")
	s.mustRun("", "suppression", "lift", "everywhere@example.org", "--all-services")
	if b := s.http.completed(s.http.publish(`{"title":"again"}`)); b.Counts[fanfare.Accepted] != 3 {
		t.Errorf("once lifted: %v", b.Counts)
	}
	if got := r.total(); got != 1+1+3 {
		t.Errorf("%d mails were taken", got)
	}
}

// An exported list can be imported into an empty list. A list of another system is imported
// except for invalid lines.
func TestASuppressionListGoesOutAndComesIn(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	foreign := s.path("others.csv")
	const table = "\xef\xbb\xbfEmail,Created At,Reason\nada@example.org,2026-01-01,550 no such user\nnot an address,2026-01-01,\n\"bob@example.org\",2026-01-01,complaint\n"
	if err := os.WriteFile(foreign, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := s.run("", "suppression", "import", foreign, "--reason", "hard_bounce", "--source", "the old system")
	if ran.code != 2 || !strings.Contains(ran.out, "2 added") || !strings.Contains(ran.err, "line 3") || !strings.Contains(ran.err, "not an address") {
		t.Fatalf("the import ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	s.http.must(201, "PUT", "/v1/subscribers/eve", plain, `{"addresses":[{"kind":"mail","address":"eve.forgotten@example.org"}]}`)
	s.mustRun("", "subscriber", "erase", "eve", "--suppress", "--yes")
	list := s.mustRun("", "suppression", "list")
	for _, want := range []string{"ada@example.org", "hard_bounce", "the old system", "complaint", "(forgotten)"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %q: %s", want, list)
		}
	}
	if first := s.mustRun("", "suppression", "list", "--limit", "1"); !strings.Contains(first, "(forgotten)") {
		t.Errorf("the latest is not the first: %s", first)
	}
	for _, format := range []string{"ndjson", "csv"} {
		file := s.path("export." + format)
		s.mustRun("", "suppression", "export", "--format", format, "--output", file)
		if exported, err := os.ReadFile(file); err != nil || strings.Contains(string(exported), "eve.forgotten") || strings.Count(string(exported), "@example.org") != 2 {
			t.Errorf("the export has %s (%v)", exported, err)
		}
		for _, who := range []string{"ada", "bob", "eve.forgotten"} {
			s.mustRun("", "suppression", "lift", who+"@example.org")
		}
		if out := s.mustRun("", "suppression", "import", file); !strings.Contains(out, "3 added") {
			t.Errorf("%s came back as %s", format, out)
		}
		if out := s.mustRun("", "suppression", "import", file); !strings.Contains(out, "3 already present") {
			t.Errorf("%s the second time: %s", format, out)
		}
		for who, reason := range map[string]string{"ada": "hard_bounce", "bob": "complaint", "eve.forgotten": "erased"} {
			if out := s.mustRun("", "suppression", "get", who+"@example.org"); !strings.Contains(out, reason) {
				t.Errorf("%s: %s", who, out)
			}
		}
	}
	if out := s.mustRun("", "audit", "--kind", "suppressions", "--json"); strings.Contains(out, "@example.org") || !strings.Contains(out, `"added"`) {
		t.Errorf("the audit: %s", out)
	}
	if out := s.mustRun("", "status"); !strings.Contains(out, "suppressed") {
		t.Errorf("the status: %s", out)
	}
	if got := s.http.must(200, "GET", "/metrics", "", ""); !strings.Contains(got, `fanfare_suppressions{reason="complaint"} 1`) {
		t.Error("the metrics do not count them")
	}
}

// Only a key for all services can change the list for all services.
func TestAKeyOfOneServiceCannotSuppressForAll(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	key := into[struct{ Key string }](t, s.http.must(201, "POST", "/v1/keys", plain, `{"service":"news","name":"all of it","scopes":["admin"]}`)).Key
	mine := s.http.with(key)
	for _, ask := range [][3]string{
		{"POST", "/v1/suppressions", `{"address":"ada@example.org","all_services":true}`},
		{"POST", "/v1/suppression-list?all_services=true", `{"address":"ada@example.org"}`},
		{"GET", "/v1/suppression-list?all_services=true", ""},
		{"GET", "/v1/suppressions?all_services=true&address=ada@example.org", ""},
		{"DELETE", "/v1/suppressions?all_services=true&address=ada@example.org", ""},
	} {
		contentType := plain
		if strings.Contains(ask[1], "list") {
			contentType = lines
		}
		mine.refused(403, ask[0], ask[1], contentType, ask[2])
	}
	got := mine.must(200, "POST", "/v1/suppression-list", lines, fmt.Sprintln(`{"address":"ada@example.org","all_services":true}`)+`{"address":"bob@example.org"}`)
	if !strings.Contains(got, `"/all_services"`) || !strings.Contains(got, `{"added":true}`) {
		t.Errorf("of a list: %s", got)
	}
}
