package ingest

import (
	"sync"
	"testing"
	"testing/synctest"

	"fanfare.dev/fanfare"
)

func TestAPartOfWhatMayWaitIsKeptForUrgentEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *testClock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, event("under way")) })
		synctest.Wait()
		c.mu.Lock()
		c.count += maxWaiting - maxWaiting/keptForUrgent
		c.mu.Unlock()
		if _, err := c.Post(t.Context(), events("too much")); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("what is kept for urgent events was given to another: %v", err)
		}
		urgent := event("urgent")
		urgent.Lane = fanfare.Urgent
		posts.Go(func() { post(t, c, urgent) })
		synctest.Wait()
		c.mu.Lock()
		c.count -= maxWaiting - maxWaiting/keptForUrgent
		c.mu.Unlock()
		close(hold)
		posts.Wait()
	})
}
