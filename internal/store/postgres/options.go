package postgres

import (
	"fmt"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Options are the settings of an operator. A zero value means the default.
type Options struct {
	Durability      store.Durability // "" means store.Fsync
	Logger          *slog.Logger
	ApplicationName string // as pg_stat_activity shows it; the URL takes precedence

	// ReadURL is a standby for reads that may be slightly out of date (see DB.Late). The primary is used while the standby
	// cannot be reached. Empty: no standby.
	ReadURL string

	// MaxConnections limits the connections to the primary, of all kinds together.
	MaxConnections int

	// StatementTimeout limits one writing statement.
	StatementTimeout time.Duration

	// RetryFor is how long a call is repeated after a conflict or a lost connection before it fails with Unavailable.
	RetryFor time.Duration

	// AnswerLimit is how long a new connection may wait for its answer before the database counts as silent.
	AnswerLimit time.Duration

	// Lease is the lease under which a node of a cluster uses the database; nil: the server is alone. The node then shares
	// the ownership lock with the other nodes, and each of its transactions fails once another node holds the lease.
	Lease *NodeLease

	// Node is the name of a node of a cluster that uses the database without holding the lease; empty: Lease counts. Such a node uses the part
	// Mailboxes only, whose transactions lock the accounts that they change.
	Node string

	shared bool // the ownership lock is shared with other nodes
}

// A NodeLease is the lease LeaderLease of a node.
type NodeLease struct {
	Node  string
	Epoch int64
}

const (
	defaultApplicationName  = "fanfare"
	defaultMaxConnections   = 16
	leastConnections        = 4
	defaultStatementTimeout = time.Minute
	defaultRetryFor         = 8 * time.Second

	// scanTimeout limits one reading statement, such as loading all subscriptions.
	scanTimeout = 15 * time.Minute
	// lockTimeout limits the wait for a row or a table that another transaction has locked. The transaction is then
	// repeated.
	lockTimeout = 5 * time.Second
	// idleInTransaction ends the session of a program that stopped answering within a transaction, so that its locks are
	// released.
	idleInTransaction = 30 * time.Second
	// nodeIdleInTransaction replaces it for a node of a cluster. It is shorter than a lease, so that the locks of a node
	// that stopped do not delay the next one.
	nodeIdleInTransaction = 5 * time.Second
	connectTimeout        = 5 * time.Second

	// A dead connection is detected after peerTimeout if data was sent, and otherwise after keepAliveIdle and a few
	// probes.
	peerTimeout       = 20 * time.Second
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveProbes   = 3

	maxConnLifetime = time.Hour // also frees the memory that the backend has accumulated
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
			Message: fmt.Sprintf("db_connections is too low: %d", o.MaxConnections),
			Hint:    fmt.Sprintf("set db_connections to at least %d", leastConnections)}
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = defaultStatementTimeout
	}
	if o.RetryFor == 0 {
		o.RetryFor = defaultRetryFor
	}
	if o.AnswerLimit == 0 {
		o.AnswerLimit = answerLimit
	}
	o.shared = o.shared || o.Lease != nil || o.Node != ""
	return o, nil
}

// shares divides the connections by use: recording outcomes, sessions and mailboxes, changing the control tables, reading, and finding
// the result of a commit do not wait for each other. With few connections, reads and commit results share them. One more connection
// holds the ownership lock.
func (o Options) shares() (recording, control, reading, settling int32) {
	n := int32(o.MaxConnections) - 1
	recording, control = max(1, n/4), max(1, n/8)
	reading = n - recording - control
	if reading > 1 {
		settling = 1
	}
	return recording, control, reading - settling, settling
}
