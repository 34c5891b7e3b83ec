package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/dnstest"
)

// TestASickDestinationIsSeenAndResumedByHand has a domain that refuses everything,
// is mended, and gets what waited for it when an operator says so: also from a
// server that knows nothing of the domain any more but what it put off.
func TestASickDestinationIsSeenAndResumedByHand(t *testing.T) {
	t.Parallel()
	refuses := sink.Config{Hosts: []sink.HostRule{{Host: "sick.example", Refuse: true}}}
	rules := filepath.Join(t.TempDir(), "replies.yaml")
	say := func(more string) {
		t.Helper()
		text := "rules:\n  - {name: closed, driver: smtp, says: [no answer from that host], class: busy" + more + "}\n"
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("")
	s, r := newsroom(t, refuses, "rate: unlimited, connections: 4, retry: [1h, 1h]", "--reply-rules", rules)
	var people []string
	for i := range 60 {
		people = append(people, fmt.Sprintf("p%d@sick.example", i), fmt.Sprintf("p%d@well.example", i))
	}
	s.subscribe(people...)
	event := s.http.publish(`{"title":"x"}`)
	list := func() []client.Destination {
		return into[struct{ Destinations []client.Destination }](t, s.http.must(200, "GET", "/v1/channels/email/destinations", "", "")).Destinations
	}
	counts := func() fanfare.Counts { return s.http.broadcast(event).Counts }
	var d client.Destination
	eventually(t, "all for the sick one is tried or put off", func() bool {
		all, so := list(), counts()
		if len(all) == 1 {
			d = all[0]
		}
		return len(all) == 1 && !d.Until.IsZero() && d.Postponed+so[fanfare.Deferred] == 60 && so[fanfare.Accepted] == 60
	})
	if d.Name != "sick.example" || d.State != "suspended" || d.Failures < 5 || d.Postponed == 0 || d.PostponedTo.IsZero() || !strings.Contains(d.LastReply, "no answer from that host") {
		t.Errorf("listed is %+v", d)
	}
	if text := s.mustRun("", "destinations", "list", "news/email"); !strings.Contains(text, "sick.example") || !strings.Contains(text, "suspended") {
		t.Errorf("the command shows\n%s", text)
	}
	if text := s.http.must(200, "GET", "/metrics", "", ""); !strings.Contains(text, `fanfare_destinations_impaired{channel="email",service="news",state="suspended"} 1`) || strings.Contains(text, "sick.example") {
		t.Errorf("the metrics have\n%s", text)
	}

	r.close()
	r.open(sink.Config{})
	s.mustRun("", "destinations", "resume", "news/email", "sick.example")
	eventually(t, "what was put off has left", func() bool {
		so := counts()
		return so[fanfare.Accepted] > 60 && so[fanfare.Accepted]+so[fanfare.Deferred] == 120 && len(list()) == 0
	})
	if text := s.http.must(200, "GET", "/v1/audit?kind=destination", "", ""); !strings.Contains(text, `"email/sick.example"`) {
		t.Errorf("the audit has %s", text)
	}
	s.http.must(404, "POST", "/v1/channels/email/destinations/nobody.example/resume", "", "")
	s.http.must(404, "GET", "/v1/channels/none/destinations", "", "")

	say(", suspend: 1h") // however long a start takes
	s.mustStop()
	s.start()
	r.close()
	r.open(refuses)
	later := s.http.publish(`{"title":"y"}`)
	eventually(t, "some for it is put off again", func() bool { all := list(); return len(all) == 1 && all[0].Postponed > 20 })
	s.kill()
	s.start()
	r.close()
	r.open(sink.Config{})
	if all := list(); len(all) != 1 || all[0].Postponed == 0 {
		t.Errorf("after a restart listed are %+v", all)
	}
	s.mustRun("", "destinations", "resume", "news/email", "sick.example")
	eventually(t, "what was put off has left after a restart", func() bool {
		counts := s.http.broadcast(later).Counts
		return counts[fanfare.Accepted]+counts[fanfare.Deferred] == 120 && len(list()) == 0
	})
}

// TestDomainsOfOneProviderAreOneDestination has thirty domains, whose mail exchangers
// are one provider's, refuse too few times each to be left alone, and often enough
// together.
func TestDomainsOfOneProviderAreOneDestination(t *testing.T) {
	t.Parallel()
	dns := &dnstest.Server{Mails: map[string][]string{"well.example": {"mx.well.example"}}}
	var refuses sink.Config
	var people []string
	for i := range 30 {
		domain := fmt.Sprintf("shop%d.example", i)
		dns.Mails[domain] = []string{fmt.Sprintf("mx%d.provider.example", i%3)}
		refuses.Hosts = append(refuses.Hosts, sink.HostRule{Host: domain, Refuse: true})
		people = append(people, "ada@"+domain, "bob@"+domain, fmt.Sprintf("p%d@well.example", i))
	}
	rules := filepath.Join(t.TempDir(), "replies.yaml")
	if err := os.WriteFile(rules, []byte("rules:\n  - {name: closed, driver: smtp, says: [no answer from that host], class: busy}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := newsroom(t, refuses, "rate: unlimited, connections: 4, retry: [1h, 1h], destinations: {by: mx}", "--reply-rules", rules, "--resolver", dns.Start(t))
	s.subscribe(people...)
	event := s.http.publish(`{"title":"x"}`)
	var all []client.Destination
	eventually(t, "the provider is left alone", func() bool {
		all = into[struct{ Destinations []client.Destination }](t, s.http.must(200, "GET", "/v1/channels/email/destinations", "", "")).Destinations
		so := s.http.broadcast(event).Counts
		return len(all) == 1 && all[0].Postponed > 0 && all[0].Postponed+so[fanfare.Deferred] == 60 && so[fanfare.Accepted] == 30
	})
	if all[0].Name != "provider.example" || all[0].State != "suspended" {
		t.Errorf("listed is %+v", all[0])
	}
	s.mustRun("", "destinations", "resume", "news/email", "provider.example")
}
