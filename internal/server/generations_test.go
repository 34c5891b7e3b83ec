package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// publishMany publishes n stories in one request and returns them when all have been sent.
func (s *testServer) publishMany(n int) []fanfare.Broadcast {
	s.t.Helper()
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `{"title":"story %d"}`+"\n", i)
	}
	answer := s.must(202, "POST", "/v1/topics/story/events", "application/x-ndjson", body.String())
	var all []fanfare.Broadcast
	for line := range strings.Lines(answer) {
		var one struct{ ID string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		if one.ID == "" {
			continue // the summary
		}
		s.eventually(one.ID+" is matched", func() bool {
			code, _ := s.call("GET", "/v1/events/"+one.ID, "", "") // 404 within its window
			return code == 200
		})
		s.until(one.ID, "completed")
		all = append(all, s.broadcast(one.ID))
	}
	if len(all) != n {
		s.t.Fatalf("%d of %d events were taken: %s", len(all), n, answer)
	}
	return all
}

func TestTopicDecidesWhenMessagesAreGenerated(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"ada@example.org","data":{"why":"you asked"}}`)
	generation := func(text string) {
		s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntopics:\n  story: {template: story, generation: "+text+"}\n")
	}
	const n = 20
	sent := 0
	for _, text := range []string{"continuous", "per_change", "1s"} {
		generation(text)
		all := s.publishMany(n)
		frozen := map[time.Time]int{}
		for _, b := range all {
			if sent++; b.Messages != 1 || b.Counts[fanfare.Accepted] != 1 {
				t.Errorf("%s: %s has %d messages, %v", text, b.Event, b.Messages, b.Counts)
			}
			if frozen[b.Stages.Frozen]++; text == "1s" && b.Stages.Frozen.Before(b.Stages.Kept.Truncate(time.Second).Add(time.Second)) {
				t.Errorf("%s was kept at %v and made at %v, before the end of its second", b.Event, b.Stages.Kept, b.Stages.Frozen)
			}
		}
		if text == "per_change" && len(frozen) != n {
			t.Errorf("%d events were made in %d transactions, want one for each: %v", n, len(frozen), frozen)
		}
	}
	if sum := s.sink.Stats(); sum.Messages != int64(sent) || sum.Duplicates != 0 {
		t.Errorf("%d mails came, %d of them twice, want %d", sum.Messages, sum.Duplicates, sent)
	}
}
