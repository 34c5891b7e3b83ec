package postgres

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A transaction that must not be committed twice writes a token into a row of the table writers, its slot, and replaces
// the token of the previous transaction. If the reply to its COMMIT is lost, the row shows whether the transaction was
// committed. pg_xact_status would need a round trip before the COMMIT, and after a crash it can be wrong, because a
// transaction id that never reached the disk is assigned again.
//
// The row also has the epoch of the server that owns the database. A server that was cut off and replaced finds another
// epoch there, and its transaction fails.

// A slot is a row of writers. One transaction at a time uses it.
type slot struct {
	number int32
	token  int64 // token in the row
	next   int64 // token of the transaction that uses the slot
	known  bool  // token equals the token in the row
}

// uncertain is called before COMMIT is sent, and certain after the answer. Both do nothing without a slot.
func (s *slot) uncertain() {
	if s != nil {
		s.known = false
	}
}

func (s *slot) certain(kept bool) {
	if s == nil {
		return
	}
	s.known = true
	if kept {
		s.token = s.next
	}
}

// slots are the slots that no transaction uses.
type slots struct {
	idle   chan *slot
	tokens func() int64 // returns each token once, over all servers
}

// newSlots returns n slots from the number first on, with the state that raise left. Tokens are greater than zero, the value in new rows, and
// greater than those of older epochs.
func newSlots(epoch int64, first int32, n int) slots {
	last := new(atomic.Int64)
	last.Store(epoch << 40)
	s := slots{idle: make(chan *slot, n), tokens: func() int64 { return last.Add(1) }}
	for i := range n {
		s.idle <- &slot{number: first + int32(i), known: true}
	}
	return s
}

// take waits for a slot. Transactions that were in progress when closing began also get one,
// as long as there are idle slots.
func (s *slots) take(closing <-chan struct{}) (used *slot, err error) {
	select {
	case used = <-s.idle:
	default:
		select {
		case used = <-s.idle:
		case <-closing:
			return nil, errClosed
		}
	}
	used.next = s.tokens()
	return used, nil
}

func (s *slots) put(used *slot) { s.idle <- used }

// fencedColumn is the column that the fence sets to NULL when it stops a transaction.
const fencedTable, notNullViolation = "writers", "23502"

// isFence reports whether the fence stopped a transaction.
func isFence(err error) bool {
	told, ok := errors.AsType[*pgconn.PgError](err)
	return ok && told.Code == notNullViolation && told.TableName == fencedTable
}

// errReplaced is the error of a server that was replaced by another.
var errReplaced = &fanfare.Error{Code: fanfare.Unavailable, Message: "another server has taken over the database; nothing was stored",
	Hint: "stop this server: two servers can share a database only if they are nodes of the same cluster"}

var errNotCommitted = errors.New("the transaction was not committed")

// errOutcome is the error if the answer to a COMMIT was lost and the result cannot be found in time.
var errOutcome = &fanfare.Error{Code: fanfare.Unavailable, Message: "the connection to the database was lost during the commit: the change may or may not have been stored",
	Hint: "check the current state before you try again"}

// resolve finds the result of a transaction whose COMMIT failed with cause and without an answer, and releases its slot.
// It returns nil if the transaction was committed, and an attemptError if it was not and never will be. It takes until the
// database can be reached again, because no earlier answer would be reliable. If ctx ends earlier, it continues in the
// background.
func (db *DB) resolve(ctx context.Context, used *slot, cause error) error {
	if !isFence(cause) {
		db.lost(cause)
	}
	retry := retry{db: db}
	for {
		kept, err := db.outcome(ctx, used)
		switch {
		case kept:
			db.slots.put(used)
			return nil
		case err == nil:
			db.slots.put(used)
			return cause
		case errors.Is(err, errReplaced):
			db.replaced.Do(func() {
				if close(db.fenced); db.options.Node == "" {
					db.log.Error("another server has taken over the database; this server can no longer store data")
				}
			})
			db.slots.put(used)
			return &failure{told: errReplaced, cause: cause}
		}
		if !retry.pause(ctx) {
			break
		}
	}
	db.later(func() { db.settleSlot(used) })
	return &failure{told: errOutcome, cause: cause}
}

// settleSlot makes the slot of a transaction usable again that no caller waits for.
func (db *DB) settleSlot(used *slot) {
	retry := retry{db: db}
	for retry.pause(context.Background()) {
		if kept, err := db.outcome(context.Background(), used); kept || err == nil || errors.Is(err, errReplaced) {
			db.slots.put(used)
			return
		}
	}
}

// outcome waits for any transaction that still holds the slot's row, reads the row, and writes a new token, so that a
// transaction that is not committed by then never will be.
func (db *DB) outcome(ctx context.Context, used *slot) (kept bool, err error) {
	pool := db.settling // transactions that wait for a slot, or long reads, may hold all connections of the other pools
	if pool == nil {
		pool = db.reading
	}
	held, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer held.Release()
	s := &session{conn: connOf(held), known: db.own.all, begin: db.own.beginWriting, end: db.own.rollback, limit: lockTimeout + connectTimeout}
	s.open(ctx)
	defer s.close()
	var token, epoch int64
	next := db.slots.tokens()
	err = s.Each("slot", func(r store.Row) error {
		token, epoch = r.Int64(0), r.Int64(1)
		return nil
	}, int64(used.number))
	if err == nil && token == used.next {
		used.certain(true)
		return true, s.rollback(nil)
	}
	if err == nil {
		err = s.Run("revoke", int64(used.number), next, db.epoch)
	}
	if err == nil {
		err = s.finish(db.own.commit)
	}
	if !s.committed {
		return false, s.rollback(firstOf(err, errNotCommitted))
	}
	used.token, used.known = next, true
	if epoch != db.epoch {
		return false, errReplaced
	}
	return false, nil
}
