package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// multicast applies a channel that sends a message to up to most recipients in one transaction, a topic with shared
// content and one with personal content.
func (s *testServer) multicast(most int) {
	s.t.Helper()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, multicast: %d, connections: 4, retry: [1s, 1s, 1s]}
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}, level: {type: number}}}
    template: story
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  personal:
    template: personal
templates:
  story: {subject: "{{ event.title }}", text: "{{ event.title }}\n"}
  personal: {subject: "For you", text: "Hello {{ subscriber.address }}\n"}
`, s.addr, most))
}

func TestSharedContentIsMulticast(t *testing.T) {
	s := start(t, sink.Inject{})
	s.multicast(100)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(2000))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It works","level":4}`)
	s.eventually("1000 recipients", func() bool { return s.sink.Stats().Unique == 1000 })
	s.eventually("the broadcast to complete", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
	got := s.sink.Stats()
	if got.Duplicates != 0 || got.Accepted != 1000 {
		t.Errorf("%d recipients, %d duplicates", got.Accepted, got.Duplicates)
	}
	if got.Messages > 100 {
		t.Errorf("%d messages went to 1000 recipients, want about 10", got.Messages)
	}
	body := string(s.sink.Messages()[0].Body)
	if strings.Contains(body, "person") || !strings.Contains(body, "To: undisclosed-recipients:;\r\n") {
		t.Errorf("a recipient sees other recipients:\n%s", body)
	}
	for _, person := range []string{"person0@example.org", "person1994@example.org"} {
		if one := s.must(200, "GET", "/v1/subscribers/"+person+"/deliveries", "", ""); !strings.Contains(one, `"accepted"`) || !strings.Contains(one, "queued as") {
			t.Errorf("%s has %s", person, one)
		}
	}
}

func TestPersonalMessagesAreNotMulticast(t *testing.T) {
	s := start(t, sink.Inject{})
	s.multicast(100)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson",
		personalSubscriptions(200))
	s.must(202, "POST", "/v1/topics/personal/events", "application/json", `{}`)
	s.eventually("200 recipients", func() bool { return s.sink.Stats().Unique == 200 })
	if got := s.sink.Stats(); got.Messages != 200 || got.Duplicates != 0 {
		t.Errorf("%d messages, %d duplicates, want 200 and 0", got.Messages, got.Duplicates)
	}
}

// personalSubscriptions returns subscriptions to the topic with personal content.
func personalSubscriptions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"topic":"personal","channel":"email","to":"person%d@example.org"}`+"\n", i)
	}
	return b.String()
}

// The relay closes connections after bodies, before and after it has accepted them.
func TestLostMulticastIsRetriedForEachRecipient(t *testing.T) {
	s := start(t, sink.Inject{Seed: 7, TempFail: 0.1, PermFail: 0.05, DropInData: 0.1, DropBeforeReply: 0.1})
	s.multicast(20)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(2000))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It works","level":4}`)
	s.eventually("the broadcast to complete", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
	got := s.sink.Stats()
	if most := got.DroppedBeforeReply * 20; got.Duplicates > most {
		t.Errorf("%d duplicates, but %d connections were dropped after a message to at most 20", got.Duplicates, got.DroppedBeforeReply)
	}
	answer := s.must(200, "GET", "/v1/broadcasts", "", "")
	var page struct {
		Broadcasts []struct{ Deliveries map[string]int64 }
	}
	if err := json.Unmarshal([]byte(answer), &page); err != nil || len(page.Broadcasts) != 1 {
		t.Fatal(err, answer)
	}
	counts := page.Broadcasts[0].Deliveries
	if counts["accepted"]+counts["failed"] != 1000 || counts["failed"] < 20 || got.Unique < counts["accepted"] {
		t.Errorf("the counts are %v, and %d people have a message: %s", counts, got.Unique, answer)
	}
	if most := got.DroppedBeforeReply * 20; got.Unique-counts["accepted"] > most {
		t.Errorf("%d people have a message that failed for them", got.Unique-counts["accepted"])
	}
}

// Recipients of the same events share a digest, even if their subscriptions differ.
func TestEqualDigestsAreMulticast(t *testing.T) {
	s := start(t, sink.Inject{})
	s.multicast(100)
	s.must(200, "POST", "/v1/apply", "application/yaml", `
service: news
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}, level: {type: number}}}
    template: story
    digest: {template: stories}
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
templates:
  stories: {subject: "{{ count }} stories", text: "{% for item in items %}{{ item.event.title }}\n{% endfor %}"}
`)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", strings.ReplaceAll(people(400), `"rule"`, `"cadence":"window 1s","rule"`))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It works","level":4}`)
	s.eventually("200 recipients", func() bool { return s.sink.Stats().Unique == 200 })
	got := s.sink.Stats()
	if got.Duplicates != 0 || got.Messages > 20 {
		t.Errorf("%d messages went to 200 recipients, with %d duplicates, want about 2 and none", got.Messages, got.Duplicates)
	}
	if body := string(s.sink.Messages()[0].Body); !strings.Contains(body, "Subject: 1 stories") || !strings.Contains(body, "It works") || strings.Contains(body, "person") {
		t.Errorf("the digest says\n%s", body)
	}
}
