package deliver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// TestOneDestinationMayHaveTheWholeChannel has all messages for one destination, as a
// relay sees them whose people are all at one mailbox provider: a next hop whose
// every answer takes a while is not slow, and what it has room for is not put off.
func TestOneDestinationMayHaveTheWholeChannel(t *testing.T) {
	const answer = 250 * time.Millisecond
	for _, c := range []struct {
		name     string
		direct   bool
		messages int // in rounds of 100
		atOnce   bool
		within   time.Duration
	}{
		{"behind a relay", false, 500, true, 1500 * time.Millisecond},
		{"behind a relay, for long", false, 2000, false, 6 * time.Second},
		{"by connections of its own, of which few are opened at first", true, 500, true, 3 * time.Second},
		{"by connections of its own, for long", true, 2000, false, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settings(nil)
				s.Connections, s.Direct = 100, c.direct
				w := newTown(t, s, func(string, time.Time) reply { return reply{answer, taken} })
				to := slices.Repeat([]string{"all.example"}, c.messages)
				if c.atOnce {
					w.send(fanfare.Bulk, to)
					to = nil
				}
				left := w.work(to, c.within)
				w.mu.Lock()
				accepted, most := w.accepted["all.example"], w.most["all.example"]
				w.mu.Unlock()
				if len(left) > 0 || accepted != c.messages {
					t.Errorf("%d of %d messages are taken after %v, at most %d were under way at once", accepted, c.messages, c.within, most)
				}
				w.Stop()
			})
		})
	}
}
