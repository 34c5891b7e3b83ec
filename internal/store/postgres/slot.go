package postgres

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A transaction that must not be kept twice writes a token into a row of the
// table writers, its slot, in place of the token of the one before it. When the
// reply to its COMMIT is lost, the row says whether it was kept. The row and not
// pg_xact_status is asked, since it needs no round trip before the COMMIT and
// is right after a crash too, when a transaction id that never reached the disk
// is given out again.
//
// The row has the epoch of the server that owns the database as well. One that
// was cut off and replaced finds another epoch there, and keeps nothing.

// A slot is a row of writers, used by one transaction at a time.
type slot struct {
	number int32
	token  int64 // that the row has
	next   int64 // of the transaction that uses it
	known  bool  // token is what the row has
}

// uncertain is called before COMMIT is sent, certain when it was answered; both
// do nothing without a slot.
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

// slots are those that no transaction uses.
type slots struct {
	idle   chan *slot
	tokens func() int64 // each one once, over all servers
}

// newSlots makes slots as the epoch left them. Tokens are above zero, which is
// what the rows have, and higher than those of older epochs.
func newSlots(epoch int64, n int) slots {
	last := new(atomic.Int64)
	last.Store(epoch << 40)
	s := slots{idle: make(chan *slot, n), tokens: func() int64 { return last.Add(1) }}
	for i := range n {
		s.idle <- &slot{number: int32(i + 1), known: true}
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

// fencedColumn is what the fence leaves NULL when it holds.
const fencedTable, notNullViolation = "writers", "23502"

// isFence reports whether a transaction was stopped by the fence.
func isFence(err error) bool {
	told, ok := errors.AsType[*pgconn.PgError](err)
	return ok && told.Code == notNullViolation && told.TableName == fencedTable
}

// errReplaced is what a server is told that was replaced.
var errReplaced = &fanfare.Error{Code: fanfare.Unavailable, Message: "another server has taken over the database, nothing was kept",
	Hint: "stop this one: two servers cannot have the same database"}

var errNotCommitted = errors.New("the transaction was not committed")

// errOutcome is told where the answer to a COMMIT was lost and cannot be had in
// the time there is.
var errOutcome = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database was lost at the last moment: it is not known whether this was kept",
	Hint: "look before you try again"}

// resolve finds out what became of a transaction whose COMMIT had no answer,
// cause, and gives its slot back. It returns nil where it was kept, an
// attemptError where it was not and will not be. It takes as long as the database
// is away, since nothing else would be true; when ctx ends before, it goes on
// behind.
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
			db.replaced.Do(func() { db.log.Error("another server has taken over the database, this one keeps nothing any more") })
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

// settleSlot makes a slot usable again whose transaction nobody waits for.
func (db *DB) settleSlot(used *slot) {
	retry := retry{db: db}
	for retry.pause(context.Background()) {
		if kept, err := db.outcome(context.Background(), used); kept || err == nil || errors.Is(err, errReplaced) {
			db.slots.put(used)
			return
		}
	}
}

// outcome asks the slot's row, having waited for who may still hold it, and puts
// a new token there: what was not kept by now never is.
func (db *DB) outcome(ctx context.Context, used *slot) (kept bool, err error) {
	pool := db.settling // all others may be with those who wait for a slot, or read for long
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
