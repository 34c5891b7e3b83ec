package deliver

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestWhatTheGateSaysBecomesOfAJob asks at both places: when a job is taken, and
// when its body is about to leave.
func TestWhatTheGateSaysBecomesOfAJob(t *testing.T) {
	past := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // the bubble's clock begins in 2000
	for _, at := range []string{"when taken", "when released"} {
		for _, c := range []struct {
			name     string
			decision Decision
			expires  time.Time
			state    fanfare.State // Pending: no entry
			ending   ending
		}{
			{name: "go", decision: Go, state: fanfare.Accepted},
			{name: "hold", decision: Hold, state: fanfare.Pending, ending: ending{held: 3}},
			{name: "anew", decision: Anew, state: fanfare.Pending, ending: ending{again: 3}},
			{name: "cancel", decision: Cancel, state: fanfare.Cancelled},
			{name: "suppress", decision: Suppress, state: fanfare.Suppressed},
			{name: "go, but expired", decision: Go, expires: past, state: fanfare.Expired},
			{name: "hold, and expired", decision: Hold, expires: past, state: fanfare.Pending, ending: ending{held: 3}},
		} {
			t.Run(c.name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					asked := map[*Job]int{}
					gate := func(job *Job) (Decision, string) {
						mu.Lock()
						defer mu.Unlock()
						asked[job]++
						if at == "when released" && asked[job] == 1 {
							return Go, ""
						}
						job.Expires = c.expires
						return c.decision, "because"
					}
					sent := 0
					b := newBench(t, gateFunc(gate), settings(answering(func(*driver.Message) driver.Verdict {
						mu.Lock()
						defer mu.Unlock()
						sent++
						return driver.Accepted
					})))
					batch := b.batch(fanfare.Normal, 3)
					for i := range batch.Jobs {
						batch.Jobs[i].Attempt = 2
					}
					b.Submit(batch)
					synctest.Wait()
					b.mustEnd(batch, c.ending)
					if (c.state == fanfare.Accepted) != (sent == 3) || c.state != fanfare.Accepted && sent != 0 {
						t.Errorf("%d messages left", sent)
					}
					entries := b.book.all()
					if c.state == fanfare.Pending {
						if len(entries) != 0 {
							t.Errorf("recorded %+v", entries)
						}
					} else if len(entries) != 3 {
						t.Errorf("%d entries, want 3", len(entries))
					}
					for _, e := range entries {
						if e.State != c.state || e.Attempt != 2 || e.At.IsZero() || e.Address == "" {
							t.Errorf("entry %+v, want %s", e, c.state)
						}
						if c.decision != Go && e.Text != "because" {
							t.Errorf("the reason is lost: %q", e.Text)
						}
					}
					if status := b.Status(); status.OnTheWire != 0 || status.Queued != 0 {
						t.Errorf("left behind: %+v", status)
					}
					b.Stop()
				})
			})
		}
	}
}
