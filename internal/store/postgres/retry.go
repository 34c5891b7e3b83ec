package postgres

import (
	"context"
	"math/rand/v2"
	"time"
)

// After a conflict or a loss the next try follows at once, and then ever later,
// by a random share of a wait that doubles between these two.
const (
	leastWait = 10 * time.Millisecond
	mostWait  = time.Second
)

// A retry decides for one call whether to try again.
type retry struct {
	db    *DB
	first time.Time // of the failures
	tries int
}

// again reports whether to try again after a failure, having waited.
func (r *retry) again(ctx context.Context, of trouble) bool {
	if !of.again() || ctx.Err() != nil || r.tries == 0 && r.hopeless() {
		return false
	}
	now := time.Now()
	if r.tries == 0 {
		r.first = now
	}
	if now.Sub(r.first) > r.db.options.RetryFor {
		return false
	}
	r.db.retries.Add(1)
	return r.pause(ctx)
}

// longOutage is how long the database is away before a call that finds it so
// does not wait for it.
const longOutage = 2 * time.Second

func (r *retry) hopeless() bool {
	since, _ := r.db.Away()
	return !since.IsZero() && time.Since(since) > longOutage
}

// pause waits before the next try, and reports whether there is to be one.
func (r *retry) pause(ctx context.Context) bool {
	r.tries++
	wait := min(leastWait<<min(r.tries-1, 10), mostWait)
	if r.tries == 1 {
		wait = 0
	} else {
		wait = rand.N(wait) + 1
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	case <-r.db.closing:
		return false
	}
}
