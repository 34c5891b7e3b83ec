// Package store is the contract between the code that stores data and the two databases.
// The packages control and deliveries run named statements. A driver (sqlite, postgres)
// has the SQL of the statements in its dialect, runs them in transactions, and does not
// know their meaning.
//
// A database has parts: the control tables, the sessions, the mailboxes, and one part for each
// day. Parts share no transaction, so that an import delays neither recording nor sessions nor mailboxes.
//
// The rows that a statement writes follow from its arguments and from the rows of the
// part, never from a clock or a random number: the same statements in the same order write
// the same rows in every database.
//
// Failure. A transaction commits as a whole or not at all, and a committed one survives
// the failures that the durability mode covers. Errors that a user can see are
// *fanfare.Error: DiskFull if the disk is full, NotFound for a day that the store does not
// have, else Unavailable, with the cause wrapped for the log. A driver is usable after an
// error and replaces a lost connection.
package store

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
)

// ErrAway is in the chain of an error that was caused by an unreachable database. The call can be repeated. If Write returns it, nothing was
// stored, unless all statements of the transaction are idempotent: then the transaction may have been stored, and it can be repeated safely.
var ErrAway = errors.New("the database cannot be reached")

// Durability is the kind of failure that a commit survives.
type Durability string

// The durabilities.
const (
	Fsync   Durability = "fsync"   // survives a loss of power
	Relaxed Durability = "relaxed" // survives a kill of the process
)

// A Database is an opened driver.
type Database interface {
	// Control returns the part with the configuration and the subscriptions.
	Control() Part
	// Sessions returns the part with the sessions and their requests and responses.
	Sessions() Part
	// Mailboxes returns the part with the accounts, their mailboxes and messages.
	Mailboxes() Part
	// Day returns the part of a day of receipt. It is NotFound if the day has none; with create,
	// Day creates it.
	Day(ctx context.Context, of fanfare.Day, create bool) (Part, error)
	// Days lists the days that have a part, newest first.
	Days(ctx context.Context) ([]fanfare.Day, error)
	// RemoveDay removes the part of a day with everything in it.
	RemoveDay(ctx context.Context, of fanfare.Day) error
	// Close waits for running transactions and refuses new ones.
	Close() error
}

// A Part is one part of a database with its own transactions. Its methods are safe for concurrent
// use. A Session is valid until the function that received it returns.
type Part interface {
	// Write runs fn in one transaction. It commits if fn returns nil, and rolls back if fn
	// returns an error or panics. After a conflict or a lost connection, fn may run again, so it
	// must reset its results at its start.
	Write(ctx context.Context, fn func(Session) error) error
	// Read runs fn; each of its statements sees everything that was committed before it.
	Read(ctx context.Context, fn func(Session) error) error
	// Snapshot runs fn; all of its statements see the same moment.
	Snapshot(ctx context.Context, fn func(Session) error) error
	// Erase is Write for the removal of a person's data: the removed data are overwritten if the
	// database can do that.
	Erase(ctx context.Context, fn func(Session) error) error
	// Scrub removes all remains of names, in lower case, outside of stored rows. It may run at
	// the same time as Write.
	Scrub(ctx context.Context, names [][]byte) error
}

// A Session runs the named statements of a part. Arguments are int64, string, []byte, or nil for
// NULL; an argument has the same type in each call, except for NULL. A nil []byte is an empty
// blob, and a text is stored in the form of Text.
//
// A Session is for one goroutine and one statement at a time: it refuses a statement while the
// rows of another are visited. After an error of a statement in a transaction, further statements
// may be refused, and fn returns the error. After an error that a row function returned, fn may
// continue.
type Session interface {
	// Run executes a statement. The statements after it see its changes; one of them, or the
	// end of the transaction, may return its error.
	Run(statement string, args ...any) error
	// Each calls row for each row that a statement returns, in order, until row
	// returns an error, which it returns.
	Each(statement string, row func(Row) error, args ...any) error
	// EachOf is Each for n sets of arguments in one call; row receives the number of the set.
	EachOf(statement string, n int, args func(i int) []any, row func(i int, r Row) error) error
	// Insert writes n rows with as few statements as it can. bind passes the values of row i, in the order of the columns.
	Insert(statement string, n int, bind func(i int, to Values)) error
}

// A Row is one row of a result. It is valid until the function that received it returns. Columns
// count from 0.
type Row interface {
	IsNull(column int) bool
	Int64(column int) int64  // 0 for NULL
	Text(column int) string  // a copy; "" for NULL
	Bytes(column int) []byte // a copy
	// Len returns the number of bytes of a text or blob; Copy writes them into b, which has that
	// length.
	Len(column int) int
	Copy(column int, b []byte)
}

// Values reads the values of one row in the order of the statement's columns.
type Values interface {
	Int64(v int64)
	Text(v string)
	Bytes(v []byte) // of a blob
	Null()
}
