package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// Delayed messages do not block others, count as pending, survive a restart and can be cancelled.
func TestQuietHoursDelayOnlyTheirRecipients(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	now := time.Now().UTC()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email:
    driver: smtp
    relay: %q
    from: "News <news@example.org>"
    rate: unlimited
    quiet_hours: {from: %q, to: %q, zone: Etc/GMT-12}
`, s.addr, now.Add(-2*time.Hour).Format("15:04"), now.Add(2*time.Hour).Format("15:04")))
	var lines strings.Builder
	for i := range 20 {
		zone := [...]string{"UTC", "Etc/GMT+12", ""}[min(i/5, 2)]
		fmt.Fprintf(&lines, `{"topic":"story","channel":"email","to":"person%d@example.org","rule":"level","params":{"from":1},"data":{"why":"you asked"},"time_zone":%q}`+"\n", i, zone)
	}
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", lines.String())
	answer := s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Tonight","level":4}`)
	event := answer[strings.Index(answer, "evt-"):]
	event = event[:strings.Index(event, `"`)]
	s.eventually("fifteen mails", func() bool { return s.sink.Stats().Unique == 15 })
	for range 2 {
		s.eventually("fifteen are accepted, and five wait", func() bool {
			b := s.must(200, "GET", "/v1/broadcasts", "", "")
			return strings.Contains(b, `"pending":5`) && strings.Contains(b, `"accepted":15`)
		})
		if err := s.app.Stop(); err != nil {
			t.Fatal(err)
		}
		s.open()
	}
	s.must(202, "POST", "/v1/topics/story/events?lane=urgent", "application/json", `{"title":"At once","level":4}`)
	s.eventually("twenty urgent mails", func() bool { return s.sink.Stats().Unique == 35 })
	s.must(204, "POST", "/v1/cancel", "application/json", `{"scope":{"kind":"broadcast","name":"`+event+`"}}`)
	s.eventually("the broadcast to complete", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"cancelled":5`)
	})
	if got := s.sink.Stats(); got.Duplicates != 0 || got.Unique != 35 {
		t.Errorf("sent %+v", got)
	}
}
