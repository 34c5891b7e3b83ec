package postgres

import (
	"fmt"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Options are what an operator may set. Zero values stand for the defaults.
type Options struct {
	Durability      store.Durability // store.Fsync if empty
	Logger          *slog.Logger
	ApplicationName string // as pg_stat_activity shows it; what the URL says goes first

	// ReadURL is a standby for what may be a little late (see DB.Late); the
	// primary answers while it is away. Empty: there is none.
	ReadURL string

	// MaxConnections to the primary, of all kinds together.
	MaxConnections int

	// StatementTimeout is how long one statement of a write may take.
	StatementTimeout time.Duration

	// RetryFor is how long a call tries again after a conflict or a lost
	// connection before it fails with Unavailable.
	RetryFor time.Duration
}

const (
	defaultApplicationName  = "fanfare"
	defaultMaxConnections   = 16
	leastConnections        = 4
	defaultStatementTimeout = time.Minute
	defaultRetryFor         = 8 * time.Second

	// scanTimeout ends a statement that reads: loading all subscriptions is one.
	scanTimeout = 15 * time.Minute
	// lockTimeout ends the wait for a row or a table that another transaction
	// has; the transaction is then run again.
	lockTimeout = 5 * time.Second
	// idleInTransaction ends the session of a program that stopped answering
	// within a transaction, so that its locks go.
	idleInTransaction = 30 * time.Second
	connectTimeout    = 5 * time.Second

	// A connection whose other end is gone is found after peerTimeout where
	// something was sent, after keepAliveIdle and a few probes where not.
	peerTimeout       = 20 * time.Second
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveProbes   = 3

	maxConnLifetime = time.Hour // memory that a backend has gathered goes with it
	maxConnIdle     = 5 * time.Minute
)

func (o Options) withDefaults() (Options, error) {
	if o.Durability == "" {
		o.Durability = store.Fsync
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ApplicationName == "" {
		o.ApplicationName = defaultApplicationName
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultMaxConnections
	}
	if o.MaxConnections < leastConnections {
		return o, &fanfare.Error{Code: fanfare.Invalid,
			Message: fmt.Sprintf("%d connections to the database are too few", o.MaxConnections),
			Hint:    fmt.Sprintf("allow at least %d", leastConnections)}
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = defaultStatementTimeout
	}
	if o.RetryFor == 0 {
		o.RetryFor = defaultRetryFor
	}
	return o, nil
}

// shares divides the connections: recording outcomes, changing the control
// tables, reading, and finding out what became of a commit do not wait for each
// other; the last reads where there are few. One more holds the ownership.
func (o Options) shares() (recording, control, reading, settling int32) {
	n := int32(o.MaxConnections) - 1
	recording, control = max(1, n/4), max(1, n/8)
	reading = n - recording - control
	if reading > 1 {
		settling = 1
	}
	return recording, control, reading - settling, settling
}
