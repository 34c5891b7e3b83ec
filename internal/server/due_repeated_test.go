package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// In TestRepeatedDueWorkIsAttemptedOnce, both the next attempts of a broadcast and its
// postponed first attempts are due, as after a kill between two postponements.
func TestRepeatedDueWorkIsAttemptedOnce(t *testing.T) {
	s := start(t, sink.Inject{TempFail: 1})
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, retry: [1h]}
topics:
  story: {template: story, rules: [{name: level, when: "event.level >= sub.from", params: {from: number}}]}
templates:
  story: {subject: "{{ event.title }}", text: "{{ event.title }}"}
`, s.addr))
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(300))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Twice due","level":9}`)
	s.eventually("every first attempt", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"deferred":300`)
	})
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Run("all is due", func(t *testing.T) {
		place := s.dir
		if s.database != "" {
			place = s.database
		}
		kept := deliveries.New(storetest.OpenAt(t, place))
		days, err := kept.Days(t.Context())
		if err != nil || len(days) != 1 {
			t.Fatalf("%v: %v", days, err)
		}
		next, err := kept.DueBy(t.Context(), days[0], time.Now().AddDate(0, 0, 3), 1000)
		if err != nil || len(next) != 300 {
			t.Fatalf("%d attempts are due, want 300: %v", len(next), err)
		}
		var again []fanfare.Due
		for _, due := range next {
			for i, attempt := range []uint16{1, 2, 1, 2} {
				due.At, due.Slice.Attempt = time.Unix(int64(1000+i), 0), attempt
				again = append(again, due)
			}
		}
		if err := kept.Commit(t.Context(), days[0], &fanfare.Commit{Dues: again}); err != nil {
			t.Fatal(err)
		}
	})
	s.open()
	s.eventually("the broadcast's end", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
	s.eventually("the end of all that is due", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/status", "", ""), `"batches_pending":0`)
	})
	if got := s.sink.Stats(); got.Unique != 300 || got.Duplicates != 0 {
		t.Errorf("%d got it, and %d again; want 300", got.Unique, got.Duplicates)
	}
}
