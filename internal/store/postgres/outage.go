package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// An outage is logged twice: when the database was lost, with the cause, and
// when a connection to it was made again.
type outage struct {
	log        *slog.Logger
	level      slog.Level // of the loss
	lost, back string     // what is said

	on    atomic.Bool
	ended atomic.Int64 // when the last one was over, in Unix nanoseconds
	reach atomic.Pointer[reach]

	mu    sync.Mutex
	since time.Time
	cause error
}

// lately is how long after an outage errors come of what began in it.
const lately = connectTimeout

// stale reports whether an error may be of an outage that is over.
func (o *outage) stale() bool { return time.Since(time.Unix(0, o.ended.Load())) < lately }

// begin reports whether the outage is a new one.
func (o *outage) begin(cause error) bool { return o.beginAt(time.Now(), cause) }

// beginAt is begin for an outage that was found later.
func (o *outage) beginAt(since time.Time, cause error) bool {
	if o.on.Load() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.on.Load() {
		return false
	}
	o.since, o.cause = since, cause
	o.on.Store(true)
	o.log.Log(context.Background(), o.level, o.lost, "error", oneLine(cause))
	return true
}

func (o *outage) over() {
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on.Load() {
		return
	}
	o.on.Store(false)
	if o.silent() {
		o.reach.Store(newReach())
	}
	o.ended.Store(time.Now().UnixNano())
	o.log.Info(o.back, "after", time.Since(o.since).Round(time.Millisecond))
}

// Away tells since when the database cannot be reached, and why; the zero time
// while it can.
func (db *DB) Away() (since time.Time, why error) {
	o := &db.outage
	if !o.on.Load() {
		return time.Time{}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.cause
}

const (
	// probeEvery is how often a database that was lost is looked for.
	probeEvery = 250 * time.Millisecond
	// probeBeside is after how long without an answer another connection is tried
	// beside the first: what a network has lost is never answered.
	probeBeside = time.Second
)

// probe looks for the database until it is there: nobody else may need a new
// connection for long.
func (db *DB) probe() {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for db.outage.on.Load() && !db.isClosed() {
		tried := make(chan struct{})
		attempts.Go(func() {
			defer close(tried)
			if db.reachable() {
				db.outage.over()
			}
		})
		select {
		case <-tried:
		case <-time.After(probeBeside):
		case <-db.closing:
		}
		timer := time.NewTimer(probeEvery)
		select {
		case <-timer.C:
		case <-db.closing:
			timer.Stop()
		}
	}
}

// reachable makes a connection for nothing else.
func (db *DB) reachable() bool { return db.connectFor(connectTimeout) == nil }
