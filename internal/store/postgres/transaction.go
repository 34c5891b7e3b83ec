package postgres

import (
	"context"
	"errors"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// transact runs fn in a transaction, once. If fn only queues statements, the transaction is
// one round trip, from BEGIN to COMMIT.
func (p *part) transact(ctx context.Context, wary bool, fn func(store.Session) error) error {
	held, err := p.writers.Acquire(ctx)
	if err != nil {
		return &attemptError{err}
	}
	s := &session{conn: connOf(held), known: p.known, begin: p.db.own.begin, end: p.db.own.rollback, wary: wary, limit: p.db.options.StatementTimeout + connectTimeout}
	used, err := p.run(s, fn, held.Release)
	switch {
	case used == nil:
		return err
	case used.known:
		p.db.slots.put(used)
		return err
	}
	return p.db.resolve(ctx, used, err)
}

// run begins a transaction, runs fn, and commits. It returns the slot of the transaction if it has one.
func (p *part) run(s *session, fn func(store.Session) error, release func()) (used *slot, err error) {
	defer release()
	s.open(context.Background()) // a transaction that was begun must be ended
	defer s.close()              // also if fn panics: without a COMMIT nothing is stored
	err = fn(s)
	if s.err != nil && !errors.Is(err, s.err) {
		err = s.err // fn did not return the error
	}
	if err != nil || !s.begun {
		return nil, s.rollback(err)
	}
	if s.guard || p.day == nil || p.db.options.shared {
		if used, err = p.db.slots.take(p.db.closing); err != nil {
			return nil, s.rollback(err)
		}
		if !failpoint.Fault("lease-without-epoch") {
			err = s.own(p.db.own.fence, int64(used.number), used.token, used.next, p.db.epoch)
		}
	}
	if err == nil {
		used.uncertain()
		err = s.finish(p.db.own.commit)
	}
	if err == nil && !s.committed {
		err = errNotCommitted
	}
	switch {
	case s.committed:
		used.certain(true)
		return used, nil
	case !s.lost && !isFence(err):
		used.certain(false)
	}
	return used, s.rollback(err)
}

// rollback rolls a transaction back. It returns err, as an attemptError if it is an error of the server or the connection.
func (s *session) rollback(err error) error {
	if s.err != nil {
		err = &attemptError{err}
	}
	if !s.begun || s.lost {
		return err
	}
	_ = s.settle() // the queued statements; their errors do not matter
	s.begin = nil  // errors no longer end the session
	if end := s.finish(s.end); end != nil {
		s.lost = true // a connection that is still in a transaction is not used again
	}
	return err
}

// finish sends the statement that ends the transaction and reads all answers.
func (s *session) finish(with *statement) error {
	if err := s.own(with); err != nil {
		return err
	}
	return s.settle()
}
