package move

import (
	"context"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Side is the source or the target of a move.
type Side struct {
	DB   store.Database
	Name string // for people: no secret is in it
}

// A Switch forwards to the database that the server currently uses. It implements store.Database.
type Switch struct {
	current   atomic.Pointer[side]
	control   *part
	sessions  *part
	mailboxes *part
	days      sync.Map // fanfare.Day: *part

	mu     turn    // held to begin and end a move, and to make and remove days
	moving *moving // nil: no move is running
	closed bool
	left   sync.WaitGroup // databases that were in charge and are read from still
}

var _ store.Database = (*Switch)(nil)

// side is a database that is or was in use.
type side struct {
	Side
	reads gate // never shut
}

// NewSwitch returns a Switch for a database, which the Switch closes.
func NewSwitch(of Side) *Switch {
	s := &Switch{mu: newTurn()}
	s.control = &part{of: s, name: "control", tables: store.ControlTables(), find: func(_ context.Context, db store.Database) (store.Part, error) { return db.Control(), nil }}
	s.sessions = &part{of: s, name: "sessions", tables: store.SessionTables(), find: func(_ context.Context, db store.Database) (store.Part, error) { return db.Sessions(), nil }}
	s.mailboxes = &part{of: s, name: "mailboxes", tables: store.MailboxTables(), find: func(_ context.Context, db store.Database) (store.Part, error) { return db.Mailboxes(), nil }}
	s.current.Store(&side{Side: of})
	return s
}

// Late returns the same database for reads that may be slightly out of date. They use the standby
// if there is one.
func (s *Switch) Late() store.Database { return late{s} }

type late struct{ *Switch }

func lately(db store.Database) store.Database {
	if l, ok := db.(interface{ Late() store.Database }); ok {
		return l.Late()
	}
	return db
}

func (l late) Control() store.Part { return latePart{l.control} }

func (l late) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	p, err := l.Switch.Day(ctx, of, create)
	if err != nil {
		return nil, err
	}
	return latePart{p.(*part)}, nil
}

// latePart reads from the standby, and writes like the part itself.
type latePart struct{ *part }

func (p latePart) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.look(ctx, func(inner store.Part) error { return inner.Read(ctx, fn) })
}

func (p latePart) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.look(ctx, func(inner store.Part) error { return inner.Snapshot(ctx, fn) })
}

func (p latePart) look(ctx context.Context, do func(store.Part) error) error {
	in := p.of.reading()
	defer in.reads.leave()
	inner, err := p.find(ctx, lately(in.DB))
	if err != nil {
		return err
	}
	return do(inner)
}

// Current returns the database in use.
func (s *Switch) Current() Side { return s.current.Load().Side }

// Control returns the control part of the database in use.
func (s *Switch) Control() store.Part { return s.control }

// Sessions returns the part with the sessions of the database in use.
func (s *Switch) Sessions() store.Part { return s.sessions }

// Mailboxes returns the part with the mailboxes of the database in use.
func (s *Switch) Mailboxes() store.Part { return s.mailboxes }

// Day returns the part of a day in the database in use.
func (s *Switch) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	if p, ok := s.days.Load(of); ok {
		return p.(*part), nil
	}
	if err := s.mu.take(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.day(ctx, of, create)
}

// day returns a day, or creates it. mu is held, so a day that is created during a move is part of
// it from the beginning.
func (s *Switch) day(ctx context.Context, of fanfare.Day, create bool) (*part, error) {
	if p, ok := s.days.Load(of); ok {
		return p.(*part), nil
	}
	db := s.Current().DB
	p := newDay(s, of)
	_, err := db.Day(ctx, of, false)
	if create && fanfare.CodeOf(err) == fanfare.NotFound {
		if _, err = db.Day(ctx, of, true); err == nil && s.moving != nil {
			s.moving.born(p)
		}
	}
	if err != nil {
		return nil, err
	}
	s.days.Store(of, p)
	return p, nil
}

func newDay(s *Switch, of fanfare.Day) *part {
	return &part{of: s, name: of.String(), tables: store.DayTables(), day: of, find: func(ctx context.Context, db store.Database) (store.Part, error) { return db.Day(ctx, of, false) }}
}

// Days lists the days of the database in use.
func (s *Switch) Days(ctx context.Context) ([]fanfare.Day, error) {
	in := s.reading()
	defer in.reads.leave()
	return in.DB.Days(ctx)
}

// RemoveDay removes a day. It waits for the end of a move.
func (s *Switch) RemoveDay(ctx context.Context, of fanfare.Day) error {
	for {
		if err := s.mu.take(ctx); err != nil {
			return err
		}
		if s.moving == nil {
			defer s.mu.Unlock()
			s.days.Delete(of)
			return s.Current().DB.RemoveDay(ctx, of)
		}
		over := s.moving.over
		s.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends a running move, and closes the database in use.
func (s *Switch) Close() error {
	s.mu.Lock()
	s.closed = true
	m := s.moving
	s.mu.Unlock()
	if m != nil {
		m.stop(errClosing)
		<-m.over
	}
	s.left.Wait()
	return s.Current().DB.Close()
}

var errClosing = &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "start the move again after the server has restarted"}

// reading returns the database in use for a read; the caller must leave its reads.
func (s *Switch) reading() *side {
	for {
		in := s.current.Load()
		in.reads.add()
		if s.current.Load() == in {
			return in
		}
		in.reads.leave()
	}
}

// A part is a part of the database in use.
type part struct {
	of     *Switch
	name   string
	tables []store.Table
	day    fanfare.Day // 0: the control part, the sessions or the mailboxes
	find   func(context.Context, store.Database) (store.Part, error)
	found  atomic.Pointer[found]

	writes  gate
	journal *journal // changed only while writes is shut and empty; nil: no move
}

// found is a database's part.
type found struct {
	in   *side
	part store.Part
}

var _ store.Part = (*part)(nil)

func (p *part) in(ctx context.Context, s *side) (store.Part, error) {
	if f := p.found.Load(); f != nil && f.in == s {
		return f.part, nil
	}
	inner, err := p.find(ctx, s.DB)
	if err != nil {
		return nil, err
	}
	p.found.Store(&found{s, inner})
	return inner, nil
}

// Write waits while a move switches the database.
func (p *part) Write(ctx context.Context, fn func(store.Session) error) error {
	return p.change(ctx, func(inner store.Part) error {
		if p.journal != nil {
			return p.journal.keep(ctx, inner, wayWrite, fn)
		}
		return inner.Write(ctx, fn)
	})
}

// Erase is like Write.
func (p *part) Erase(ctx context.Context, fn func(store.Session) error) error {
	return p.change(ctx, func(inner store.Part) error {
		if p.journal != nil {
			return p.journal.keep(ctx, inner, wayErase, fn)
		}
		return inner.Erase(ctx, fn)
	})
}

// Scrub is like Write.
func (p *part) Scrub(ctx context.Context, names [][]byte) error {
	return p.change(ctx, func(inner store.Part) error {
		err := inner.Scrub(ctx, names)
		if err == nil && p.journal != nil {
			p.journal.append(scrubbed(names))
		}
		return err
	})
}

func (p *part) change(ctx context.Context, do func(store.Part) error) error {
	if err := p.writes.enter(ctx); err != nil {
		return err
	}
	defer p.writes.leave()
	inner, err := p.in(ctx, p.of.current.Load()) // it stays in charge while this is inside
	if err != nil {
		return err
	}
	return do(inner)
}

// Read never waits. A long read that begins before the database switches may end after it, and
// then has not seen later writes.
func (p *part) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.look(ctx, func(inner store.Part) error { return inner.Read(ctx, fn) })
}

// Snapshot is like Read.
func (p *part) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.look(ctx, func(inner store.Part) error { return inner.Snapshot(ctx, fn) })
}

func (p *part) look(ctx context.Context, do func(store.Part) error) error {
	in := p.of.reading()
	defer in.reads.leave()
	inner, err := p.in(ctx, in)
	if err != nil {
		return err
	}
	return do(inner)
}
