package database

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

const (
	// outagePoll is how often the state of the database is checked.
	outagePoll = 200 * time.Millisecond
	// reportAfter is how long the database may be away before the outage is reported. A reconnect takes less.
	reportAfter = time.Second
	// clientRetry is the time after which a client may try again.
	clientRetry = 5 * time.Second
)

// An Outage reports whether the database cannot be reached. A nil Outage reports no outage.
type Outage struct {
	db    interface{ Away() (time.Time, error) }
	clock clock.Clock
	err   atomic.Pointer[fanfare.Error] // nil while the database can be reached
}

// NewOutage returns the Outage of a database; Run keeps it up to date.
func NewOutage(db *DB, c clock.Clock) *Outage { return &Outage{db: db, clock: c} }

// Run checks the database until ctx ends. The database itself logs the changes.
func (o *Outage) Run(ctx context.Context) {
	ticker := time.NewTicker(outagePoll)
	defer ticker.Stop()
	for {
		o.poll()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (o *Outage) poll() {
	since, _ := o.db.Away()
	switch {
	case since.IsZero():
		o.err.Store(nil)
	case o.clock.Now().Sub(since) >= reportAfter && o.err.Load() == nil:
		o.err.Store(&fanfare.Error{Code: fanfare.Unavailable, Message: "the database has been unreachable since " + since.UTC().Format(time.RFC3339),
			Hint: "try again in a moment: nothing was changed, and the server still accepts events", RetryAfter: clientRetry})
	}
}

// Err returns the error for a request that needs the database, or nil if the database can be reached.
func (o *Outage) Err() error {
	if o != nil {
		if err := o.err.Load(); err != nil {
			return err
		}
	}
	return nil
}

// Active reports whether the database cannot be reached at this moment.
func (o *Outage) Active() bool {
	if o == nil {
		return false
	}
	since, _ := o.db.Away()
	return !since.IsZero()
}

// Ready returns Err for a readiness check, which changes nothing. It checks the database first.
func (o *Outage) Ready() error {
	if o != nil {
		o.poll()
	}
	return o.readyError()
}

func (o *Outage) readyError() error {
	if err, away := errors.AsType[*fanfare.Error](o.Err()); away { // the outage may have ended since
		ready := *err
		ready.Hint = "the server still accepts events, and resumes processing when the database is available again"
		return &ready
	}
	return nil
}
