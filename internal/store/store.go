// Package store is the contract between the code that stores data and the two databases.
// The packages control and deliveries run named statements. A driver (sqlite, postgres)
// has the SQL of the statements in its dialect, runs them in transactions, and does not
// know their meaning.
//
// A database has parts: the control tables, and one part for each day. Parts share no
// transaction, so that an import never delays recording.
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

// ErrAway is in the chain of an error whose cause is that the database cannot be
// reached: it says nothing about what was asked, which is worth asking again. From
// a Write it says that nothing was kept, but where all its statements are
// idempotent: then it may have been, and can be asked again all the same.
var ErrAway = errors.New("the database cannot be reached")

// Durability says what a commit survives.
type Durability string

// The durabilities.
const (
	Fsync   Durability = "fsync"   // a loss of power
	Relaxed Durability = "relaxed" // a kill of the process
)

// A Database is a driver that was opened.
type Database interface {
	// Control is the part of what people configure and subscribe to.
	Control() Part
	// Day is the part of a day of receipt, NotFound if nothing is kept for it.
	// With create it is made.
	Day(ctx context.Context, of fanfare.Day, create bool) (Part, error)
	// Days lists the days that have a part, newest first.
	Days(ctx context.Context) ([]fanfare.Day, error)
	// RemoveDay removes the part of a day and all it holds.
	RemoveDay(ctx context.Context, of fanfare.Day) error
	// Close waits for what is under way and refuses the rest.
	Close() error
}

// A Part is one piece of a database with transactions of its own. Its methods
// are safe for concurrent use. A Session is valid until the function that it was
// given to returns.
type Part interface {
	// Write runs fn in one transaction, and keeps all of it when fn returns nil,
	// or nothing, also where fn panics. After a conflict or a lost connection fn may run again: it
	// sets what it gives out anew each time.
	Write(ctx context.Context, fn func(Session) error) error
	// Read runs fn; each of its statements sees all that was kept before it.
	Read(ctx context.Context, fn func(Session) error) error
	// Snapshot runs fn on one moment of the part. Like Read it has one of a few
	// connections for as long, so fn must not wait for anything.
	Snapshot(ctx context.Context, fn func(Session) error) error
	// Erase is Write for what removes a person's data: what goes is overwritten
	// where the database can do that.
	Erase(ctx context.Context, fn func(Session) error) error
	// Scrub makes sure that names, in lower case, are in nothing that the
	// database holds beside rows that are kept. It may run beside Write.
	Scrub(ctx context.Context, names [][]byte) error
}

// A Session runs the named statements of a part. Arguments are int64, string,
// []byte or nil for NULL; an argument has the same type in each call, NULL
// aside. A nil []byte is an empty blob, and a text is kept in the form of Text.
//
// A Session is for one goroutine and one statement at a time: one that is run
// while the rows of another are visited is refused. After an error of a
// statement in a transaction the rest of it may be refused, and fn returns the
// error; after an error of its own that a row function returned it may go on.
type Session interface {
	// Run executes a statement. The statements after it see its changes; one of them, or the
	// end of the transaction, may return its error.
	Run(statement string, args ...any) error
	// Each calls row for each row that a statement returns, in order, until row
	// returns an error, which it returns.
	Each(statement string, row func(Row) error, args ...any) error
	// EachOf is Each for n sets of arguments in one go; row is told the number
	// of the set.
	EachOf(statement string, n int, args func(i int) []any, row func(i int, r Row) error) error
	// Insert executes an INSERT of n rows; bind gives the values of each.
	Insert(statement string, n int, bind func(i int, to Values)) error
}

// A Row is one row of a result, valid until the function that it was given to
// returns. Columns count from 0.
type Row interface {
	IsNull(column int) bool
	Int64(column int) int64  // 0 for NULL
	Text(column int) string  // a copy; "" for NULL
	Bytes(column int) []byte // a copy
	// Len is the number of bytes of a text or blob; Copy writes them into b,
	// which has that length.
	Len(column int) int
	Copy(column int, b []byte)
}

// Values takes the values of one row in the order of the statement's columns.
type Values interface {
	Int64(v int64)
	Text(v string)
	Bytes(v []byte) // of a blob
	Null()
}
