package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// bulletin is a document whose template renders what each subscription says of itself.
func bulletin(relay, text string) string {
	return fmt.Sprintf(`service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited}
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}}}
    template: story
templates:
  story:
    subject: "{{ event.title }}"
    text: |
      Hello,
      %s
`, relay, text)
}

// subscribeSince lets people have every story, with data that a template reads.
func (s *server) subscribeSince(since string, people ...string) {
	s.t.Helper()
	var b strings.Builder
	for _, p := range people {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":%q,"data":{"since":%q}}`+"\n", p, since)
	}
	if sum := into[summary](s.t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())); sum.Failed != 0 {
		s.t.Fatalf("of %d subscriptions: %+v", len(people), sum)
	}
}

// pausedNow waits until a broadcast is paused.
func (s *server) pausedNow(event string) (b fanfare.Broadcast) {
	s.t.Helper()
	eventuallyWith(s.t, "the broadcast is paused", func() bool {
		status, text, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		if status == 200 {
			b = into[fanfare.Broadcast](s.t, text)
		}
		return b.State == "paused"
	}, func() string { return fmt.Sprintf("%+v", b) })
	return b
}

const secretSince = "Xwrong-since-of-a-person"

// A template that fails for most recipients pauses the broadcast, which nobody has
// failed of then. A corrected version reaches all of them, also where the server was
// killed before it was applied.
func TestABroadcastWhoseTemplateFailsPausesAndGoesOnWithACorrectedVersion(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `a member since {{ subscription.data.since | date: "long" }}`))
	people := crowd(150)
	s.subscribeSince(secretSince, people[:120]...)
	s.subscribeSince("2024-02-01", people[120:]...)
	event := s.http.publish(`{"title":"to all"}`)
	b := s.pausedNow(event)
	for _, part := range []string{"template story@1 fails for ", " of the first 100 recipients", "text, line 2", "subscription.data.since"} {
		if !strings.Contains(b.Reason, part) {
			t.Errorf("the reason %q does not name %q", b.Reason, part)
		}
	}
	if b.Counts[fanfare.Failed] != 0 {
		t.Errorf("%d have failed", b.Counts[fanfare.Failed])
	}
	status := s.mustRun("", "status")
	trace := s.mustRun("", "trace", event)
	doctor := s.doctor()
	for what, text := range map[string]string{"status": status, "trace": trace, "doctor": doctor, "log": s.logged()} {
		if !strings.Contains(text, "story@1") || !strings.Contains(text, "subscription.data.since") {
			t.Errorf("%s does not name the template and the variable:\n%s", what, text)
		}
		if strings.Contains(text, secretSince) || strings.Contains(text, "Hello,") {
			t.Errorf("%s has a value or a body:\n%s", what, text)
		}
	}
	all := into[client.Status](t, s.http.must(200, "GET", "/v1/status", "", ""))
	if len(all.TemplateFaults) != 1 || all.TemplateFaults[0].Recipients < 51 || all.TemplateFaults[0].Version != 1 || all.TemplateFaults[0].Replaced {
		t.Errorf("the status counts %+v", all.TemplateFaults)
	}

	s.kill()
	s.start()
	if b := s.pausedNow(event); b.Counts[fanfare.Failed] != 0 {
		t.Errorf("after a restart %d have failed", b.Counts[fanfare.Failed])
	}
	s.mustRun("", "resume", "--broadcast", event) // the template still fails
	s.pausedNow(event)

	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `a member since {{ subscription.data.since }}`))
	b = s.http.completed(event)
	if b.Counts[fanfare.Accepted] != 150 || b.Counts.Total() != 150 {
		t.Errorf("got %v", b.Counts)
	}
	r.only(people...)
}

// A version that fails in its turn pauses the broadcast again, and names itself.
func TestACorrectionThatFailsPausesTheBroadcastAgain(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `{{ subscription.data.since | date: "long" }}`))
	s.subscribeSince(secretSince, crowd(3)...)
	event := s.http.publish(`{"title":"to all"}`)
	if b := s.pausedNow(event); !strings.HasPrefix(b.Reason, "template story@1 fails for 3 of the first 3 recipients (") {
		t.Errorf("the reason is %q", b.Reason)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `x {{ subscription.data.since | date: "full" }}`))
	eventually(t, "it is paused because of the second version", func() bool {
		b := s.http.broadcast(event)
		return b.State == "paused" && strings.HasPrefix(b.Reason, "template story@2 fails for 3 of the first 3 recipients (")
	})
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `{{ subscription.data.since }}`))
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 3 {
		t.Errorf("got %v", b.Counts)
	}
}

// A template that fails for few fails for them alone, and is named.
func TestATemplateThatFailsForFewIsCountedAndPausesNothing(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `a member since {{ subscription.data.since | date: "long" }}`))
	people := crowd(150)
	s.subscribeSince(secretSince, people[:10]...)
	s.subscribeSince("2024-02-01", people[10:]...)
	event := s.http.publish(`{"title":"to all"}`)
	if b := s.http.completed(event); b.Counts[fanfare.Failed] != 10 || b.Counts[fanfare.Accepted] != 140 {
		t.Errorf("got %v", b.Counts)
	}
	if status := s.mustRun("", "status"); !strings.Contains(status, "template news/story@1 failed for 10 recipients: text, line 2, which uses subscription.data.since") {
		t.Errorf("the status says\n%s", status)
	}
	if logged := s.logged(); !strings.Contains(logged, "story@1") || strings.Contains(logged, secretSince) {
		t.Errorf("the log says\n%s", logged)
	}
}

// A recipient without a rule gets the message of a template that reads params of rules.
func TestTheTemplateOfTheGuideReachesWhoHasNoRule(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, bulletin(r.addr, `{% for s in subscriptions %}- {{ s.rule }} {{ s.params | json }}{% endfor %}`))
	s.subscribe("ada@example.org")
	event := s.http.publish(`{"title":"to all"}`)
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("got %v", b.Counts)
	}
}

// In a topic without a schema a variable that no event has is empty, and told once.
func TestAVariableThatNoSchemaKnowsIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, strings.Replace(bulletin(r.addr, `{{ event.titel }}.`), "    schema: {type: object, required: [title], properties: {title: {type: string}}}\n", "", 1))
	s.subscribe(crowd(20)...)
	for i := range 3 {
		if b := s.http.completed(s.http.publish(fmt.Sprintf(`{"title":"number %d"}`, i))); b.Counts[fanfare.Accepted] != 20 {
			t.Errorf("got %v", b.Counts)
		}
	}
	if n := strings.Count(s.logged(), "event.titel"); n != 1 {
		t.Errorf("the log names the variable %d times", n)
	}
	if status := s.mustRun("", "status"); !strings.Contains(status, "template news/story@1 uses event.titel, but an event did not have this field") {
		t.Errorf("the status says\n%s", status)
	}
}

// doctor is what the doctor says of the server.
func (s *server) doctor() string {
	s.t.Helper()
	u, err := url.Parse(s.http.url)
	if err != nil {
		s.t.Fatal(err)
	}
	return run(s.t, []string{"FANFARE_KEY=" + s.key}, "", "doctor", "--data-dir", s.dir, "--listen", u.Host, "--disk-floor", "0").out
}
