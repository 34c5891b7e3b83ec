package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// An outage is logged twice: when the database was lost, with the cause, and when a connection succeeded again.
type outage struct {
	log        *slog.Logger
	level      slog.Level // level of the message about the loss
	lost, back string     // messages

	on    atomic.Bool
	ended atomic.Int64 // end of the last outage, in Unix nanoseconds
	reach atomic.Pointer[reach]

	mu    sync.Mutex
	since time.Time
	cause error
}

// lately is how long after an outage errors may still come from calls that began in it.
const lately = connectTimeout

// stale reports whether an error may come from an outage that is over.
func (o *outage) stale() bool { return time.Since(time.Unix(0, o.ended.Load())) < lately }

// begin begins an outage and reports whether it is new.
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

// Away returns since when the database cannot be reached, and why; the zero time while it can.
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
	// probeEvery is how often an unreachable database is probed.
	probeEvery = 250 * time.Millisecond
	// probeBeside is the time without an answer after which a second connection is tried beside the first: packets that a
	// network has lost are never answered.
	probeBeside = time.Second
)

// probe probes the database until it can be reached, because no other call may need a new connection for a long time.
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

// reachable makes a connection only to check the database.
func (db *DB) reachable() bool { return db.connectFor(connectTimeout) == nil }
