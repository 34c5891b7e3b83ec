package e2e

import (
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// TestATraceSaysWhatADeliveryWaitsFor looks at one person's deliveries and at the
// event, before and after a kill.
func TestATraceSaysWhatADeliveryWaitsFor(t *testing.T) {
	t.Parallel()
	clock := func(at time.Time) string { return at.UTC().Format("15:04") }
	now := time.Now()
	for _, test := range []struct {
		name, settings, publish string // the last is a query
		reason, words           string
		open                    int64
	}{
		{"quiet hours", "rate: unlimited, quiet_hours: {from: '" + clock(now.Add(-2*time.Hour)) + "', to: '" + clock(now.Add(3*time.Hour)) + "', zone: UTC}", "", "quiet_hours", "quiet hours", 3},
		{"not before", "rate: unlimited", "?not_before=" + now.Add(2*time.Hour).UTC().Format(time.RFC3339), "not_before", "scheduled for then", 3},
		{"the quota of a day", "rate: unlimited, daily_quota: {messages: 1, zone: " + longDay() + "}", "", fanfare.WaitDailyQuota, "the daily quota is used up", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newsroom(t, sink.Config{}, test.settings)
			people := crowd(3)
			s.subscribe(people...)
			sent := s.http.must(202, "POST", "/v1/topics/story/events"+test.publish, plain, `{"title":"x"}`)
			event := into[struct{ Events []struct{ ID string } }](t, sent).Events[0].ID
			look := func(when string) {
				t.Helper()
				eventually(t, "it is told "+when, func() bool {
					var waits int64
					for _, person := range people {
						for _, d := range s.http.deliveries(event, "&recipient="+person) {
							if d.Waits != nil && d.Waits.For == test.reason && d.Waits.Until.After(now) {
								waits++
							}
						}
					}
					b := s.http.broadcast(event)
					return waits == test.open && len(b.Waits) == 1 && b.Waits[0].For == test.reason && b.End.IsZero()
				})
				if b := s.http.broadcast(event); test.reason != fanfare.WaitDailyQuota && b.Waits[0].Messages != test.open {
					t.Errorf("%s the broadcast waits for %+v", when, b.Waits)
				}
				text := s.mustRun("", "trace", event) + s.mustRun("", "trace", event, "--recipient", people[0]) + s.mustRun("", "trace", event, "--recipient", people[1])
				if n := strings.Count(text, test.words); n < 2 {
					t.Errorf("%s the commands show\n%s", when, text)
				}
			}
			look("at first")
			s.kill()
			s.start()
			look("after a kill")
		})
	}
}
