package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

// A lender is a database that can be away.
type lender interface {
	// Away tells since when the database cannot be reached, and why; zero while it
	// can.
	Away() (since time.Time, why error)
}

const (
	// absenceLook is how often the database is looked for.
	absenceLook = 200 * time.Millisecond
	// shortAbsence is how long the database may be away before anybody is told: a
	// connection that is made anew is none.
	shortAbsence = time.Second
)

// absence tells whether the database is away. Nil is never.
type absence struct {
	of    lender
	clock clock.Clock
	why   atomic.Pointer[fanfare.Error] // nil while it can be reached
}

// run looks until ctx ends. The log has the change from the database itself.
func (a *absence) run(ctx context.Context) {
	ticker := time.NewTicker(absenceLook)
	defer ticker.Stop()
	for {
		a.look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (a *absence) look() {
	since, _ := a.of.Away()
	switch {
	case since.IsZero():
		a.why.Store(nil)
	case a.clock.Now().Sub(since) >= shortAbsence && a.why.Load() == nil:
		a.why.Store(&fanfare.Error{Code: fanfare.Unavailable, Message: "the database cannot be reached since " + since.UTC().Format(time.RFC3339),
			Hint: "nothing was changed, try again in a moment; events are taken meanwhile", RetryAfter: retryAbsence})
	}
}

// told is check for who looks and wants nothing.
func (a *absence) told() error {
	if why, away := errors.AsType[*fanfare.Error](a.check()); away {
		told := *why // it may be over by now
		told.Hint = "events are taken meanwhile, and all goes on by itself when it is back"
		return &told
	}
	return nil
}

// retryAbsence is after how long a client may ask again.
const retryAbsence = 5 * time.Second

// check returns the error for users while the database is away.
func (a *absence) check() error {
	if a != nil {
		if why := a.why.Load(); why != nil {
			return why
		}
	}
	return nil
}
