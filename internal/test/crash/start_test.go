//go:build crashsteps

package crash

import (
	"testing"
	"time"
)

// A start reads much, and begins anew where the database goes in the middle of it.
func TestAStartOutlivesTheDatabaseWhereverItIsLost(t *testing.T) {
	t.Parallel()
	w, db := onPostgres(t)
	random := w.random(1)
	blows := []blow{kill, stop, terminate, cut}
	takes := starting
	for range setting(t, "CRASH_STARTS", 16) {
		w.server.kill(w.server.current())
		l := w.server.start()
		wait(random, takes)
		b := blows[random.IntN(len(blows))]
		select {
		case <-l.ready:
			takes = time.Since(l.begun) // it was too late
		default:
		}
		b.strike(db, random)
		w.server.awaitReady(l)
	}
	w.during(func() {
		w.until("a story is on its way", func() bool { return w.open.Load() > 0 })
	})
	w.check(0)
}
