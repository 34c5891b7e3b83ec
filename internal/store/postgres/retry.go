package postgres

import (
	"context"
	"math/rand/v2"
	"time"
)

// The first retry after a conflict or a lost connection follows at once. Later retries wait for a random share of a time
// that doubles from the first of these values to the second.
const (
	leastWait = 10 * time.Millisecond
	mostWait  = time.Second
)

// A retry decides for one call whether to try again.
type retry struct {
	db    *DB
	first time.Time // time of the first failure
	tries int
}

// again waits after a failure, and reports whether to try again.
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

// longOutage is the length of an outage from which a new call no longer waits for its end.
const longOutage = 2 * time.Second

func (r *retry) hopeless() bool {
	since, _ := r.db.Away()
	return !since.IsZero() && time.Since(since) > longOutage
}

// pause waits before the next attempt, and reports whether there should be one.
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
