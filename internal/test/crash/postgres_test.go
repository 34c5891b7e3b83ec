//go:build crashsteps

package crash

import (
	"math/rand/v2"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A blow is something that happens to the database, and not to the server.
type blow struct {
	name   string
	strike func(*database, *rand.Rand)
}

// A database is a PostgreSQL of the test's own, and the way to it.
type database struct {
	server *pgtest.Server
	proxy  *pgtest.Proxy
}

var (
	kill = blow{"it is killed", func(db *database, random *rand.Rand) {
		db.server.Kill()
		wait(random, away)
		db.server.Restart()
	}}
	stop = blow{"it is stopped", func(db *database, random *rand.Rand) {
		db.server.Stop()
		wait(random, away)
		db.server.Restart()
	}}
	terminate = blow{"its operator ends all connections", func(db *database, _ *rand.Rand) { db.server.Terminate() }}
	cut       = blow{"the network cuts all connections", func(db *database, _ *rand.Rand) { db.proxy.Cut() }}
	freeze    = blow{"it is frozen", func(db *database, random *rand.Rand) {
		db.server.Freeze()
		wait(random, 2*away) // it is found after one to two seconds
		db.server.Thaw()
	}}
	silence = blow{"the network loses what is sent", func(db *database, random *rand.Rand) {
		db.proxy.Silence()
		wait(random, away)
		db.proxy.Heal()
	}}
)

// The longest times that the database is away, and that a blow comes after mails
// arrive again.
const (
	away   = 2 * time.Second
	gentle = 500 * time.Millisecond
)

func wait(random *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(most))))
}

// onPostgres is a world whose server reaches a PostgreSQL of its own through a
// proxy. A statement has less time than it would be given by default, so that a
// connection that is silent is found soon.
func onPostgres(of *testing.T) (*world, *database) {
	of.Helper()
	t := tell(of)
	db := &database{server: pgtest.Start(t)}
	db.proxy = db.server.Proxy(db.server.URL)
	return newWorldOn(t, "fsync", setting(t, "CRASH_PEOPLE", 20_000), 0, db.proxy.URL, "FANFARE_DB_STATEMENT_TIMEOUT=10s"), db
}

func TestNothingIsLostWhenPostgreSQLIsKilledAndCutOff(t *testing.T) {
	t.Parallel()
	w, db := onPostgres(t)
	blows := []blow{stop, terminate, terminate, cut, cut, silence, freeze, freeze}
	for range setting(t, "CRASH_KILLS", 5) {
		blows = append(blows, kill)
	}
	random := w.random(1)
	random.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
	only := w.server.current()
	slowest := map[string]time.Duration{}
	w.during(func() {
		for _, b := range blows {
			w.until("a story is on its way", func() bool { return w.open.Load() > 0 })
			wait(random, gentle)
			b.strike(db, random)
			begun, seen := time.Now(), w.sink.taken()
			w.until("mails arrive after "+b.name, func() bool { return w.sink.taken() > seen })
			slowest[b.name] = max(slowest[b.name], time.Since(begun))
		}
	})
	if only.alive.Err() != nil {
		w.t.Fatalf("the server ended: %v", only.died)
	}
	t.Logf("slowest until mails arrived again: %v", slowest)
	w.check(0)
}

func TestNothingIsLostWhenTheServerAndPostgreSQLAreKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	w, db := onPostgres(t)
	random := w.random(1)
	kills, all := setting(t, "CRASH_KILLS", 10), 0
	w.during(func() {
		for hits := 0; hits < kills && w.given.Err() == nil; all++ {
			both := random.IntN(2) == 0
			if w.killSoon(random, func() {
				if both {
					db.server.Kill()
					wait(random, gentle)
				}
			}) {
				hits++
			}
			w.server.start()
			switch {
			case both: // the server starts before the database is back, or while it recovers
				wait(random, away)
				db.server.Restart()
			case random.IntN(2) == 0:
				kill.strike(db, random)
			}
		}
		w.server.awaitReady(w.server.current())
	})
	w.check(all)
}
