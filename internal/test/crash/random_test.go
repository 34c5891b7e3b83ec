//go:build crashsteps

package crash

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestNothingIsLostWhenTheServerIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"relaxed", "fsync"} {
		t.Run(durability, func(t *testing.T) {
			w := newWorld(t, durability, setting(t, "CRASH_PEOPLE", 30_000), 0)
			kills := setting(t, "CRASH_KILLS", 10)
			all := 0
			w.during(func() {
				random := w.random(1)
				for hits := 0; hits < kills && w.given.Err() == nil; all++ {
					if w.killSoon(random, func() {}) {
						hits++
					}
					w.server.start()
				}
				w.server.awaitReady(w.server.current())
			})
			w.check(all)
		})
	}
}

// The moments of random kills: most come while the server works, some while it
// starts.
const (
	startingKills = 5 // one of so many
	working       = 800 * time.Millisecond
	starting      = 300 * time.Millisecond
)

// killSoon kills the server at a random moment, just after something else, and
// reports whether a story was on its way.
func (w *world) killSoon(random *rand.Rand, after func()) bool {
	w.t.Helper()
	l := w.server.current()
	moment := time.Duration(random.Int64N(int64(working)))
	if random.IntN(startingKills) == 0 {
		moment = time.Until(l.begun.Add(time.Duration(random.Int64N(int64(starting)))))
	} else {
		w.server.awaitReady(l)
	}
	<-time.After(moment)
	underway := w.open.Load() > 0
	after()
	w.server.kill(l)
	return underway
}
