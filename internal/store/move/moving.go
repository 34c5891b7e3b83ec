package move

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// JournalBytes is the default limit of the disk space of the journals of a move. A move that needs
// more fails.
const JournalBytes = 16 << 30

// Options are the options of a move.
type Options struct {
	Dir          string // of the journals: on a disk with space for the writes of the meantime
	JournalBytes int64  // 0: JournalBytes
	Clock        clock.Clock
	Log          *slog.Logger
	Progress     *Progress // may be nil
}

// A Report is the result of a move.
type Report struct {
	Move     string
	From, To string
	Tables   []Compared
	Pause    time.Duration // for which nothing was written
	Took     time.Duration
}

// Rows returns the number of rows that were compared on each side.
func (r *Report) Rows() (n int64) {
	for i := range r.Tables {
		n += r.Tables[i].From.Rows
	}
	return n
}

// Differences returns the tables that differ.
func (r *Report) Differences() []Compared {
	return slices.DeleteFunc(slices.Clone(r.Tables), func(c Compared) bool { return c.Equal() })
}

// moving is a running move.
type moving struct {
	of     *Switch
	from   *side
	to     Side
	o      Options
	id     string
	budget budget
	report Report

	stop      context.CancelCauseFunc
	ctx       context.Context // of those who follow
	following sync.WaitGroup
	over      chan struct{} // closed when it has ended

	// Of of.mu: followed has the parts that have a journal; a day that is made
	// before the days were listed is one of the list.
	followed []*following
	listed   bool
}

// following is a part that is written in both databases.
type following struct {
	*part
	journal *journal
	source  store.Part
	target  store.Part
}

// Move moves all data into another database, which is in use afterwards. Readers and writers of the Switch continue,
// except for a moment in which writes wait. If it returns nil, the Switch has closed the old database, and will close the
// new one. Otherwise the old database remains in use, and the caller must close the other.
func (s *Switch) Move(ctx context.Context, to Side, o Options) (_ *Report, err error) {
	m, err := s.begin(ctx, to, o)
	if err != nil {
		return nil, err
	}
	defer m.end()
	began := o.Clock.Now()
	for _, step := range []func() error{m.prepare, m.copy, m.catchUp, m.compare, m.change} {
		// The check is before each step and not after the last one, which cannot be undone: a
		// later stop has no effect.
		if err = context.Cause(m.ctx); err == nil {
			err = step()
		}
		if err != nil {
			if cause := context.Cause(m.ctx); cause != nil {
				err = cause // the error that made the others end
			}
			o.Progress.change(func(s *State) { s.Phase = Failed })
			return &m.report, err
		}
	}
	m.report.Took = o.Clock.Now().Sub(began)
	o.Progress.phase(Done, m.report.Rows(), o.Clock.Now())
	return &m.report, nil
}

func (s *Switch) begin(ctx context.Context, to Side, o Options) (*moving, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosing
	}
	if s.moving != nil {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: "a move to " + s.moving.to.Name + " is running", Hint: "wait until it is finished, or stop it"}
	}
	if o.JournalBytes == 0 {
		o.JournalBytes = JournalBytes
	}
	from := s.current.Load()
	m := &moving{of: s, from: from, to: to, o: o, id: rand.Text(), over: make(chan struct{})}
	m.report = Report{Move: m.id, From: from.Name, To: to.Name}
	m.budget.dir = o.Dir
	m.budget.left.Store(o.JournalBytes)
	m.ctx, m.stop = context.WithCancelCause(ctx)
	s.moving = m
	return m, nil
}

// end removes the journals, whatever the result of the move.
func (m *moving) end() {
	m.stop(errEnded)
	m.of.mu.Lock()
	followed := m.followed
	m.of.mu.Unlock()
	for _, f := range followed {
		f.journal.fail(errEnded) // writers that wait for space in it continue
		f.writes.close()
		_ = f.writes.empty(context.Background())
		f.part.journal = nil
		f.writes.open()
	}
	m.following.Wait()
	for _, f := range followed {
		if err := f.journal.close(); err != nil {
			m.o.Log.Warn("a journal of the move could not be closed cleanly", "error", err)
		}
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.moving = nil
	close(m.over)
}

func (m *moving) now() time.Time { return m.o.Clock.Now() }

func (m *moving) phase(p Phase, total int64) { m.o.Progress.phase(p, total, m.now()) }

// prepare checks that the target may be written, marks it, and empties it.
func (m *moving) prepare() error {
	m.phase(Preparing, 0)
	if err := admit(m.ctx, m.from.Side, m.to); err != nil {
		return err
	}
	mark := m.mark(Filling, m.from.Name)
	if err := mark.write(m.ctx, m.to.DB); err != nil {
		return err
	}
	days, err := m.to.DB.Days(m.ctx)
	for _, day := range days {
		err = errors.Join(err, m.to.DB.RemoveDay(m.ctx, day))
	}
	if err != nil {
		return err
	}
	if err := clearTables(m.ctx, m.to.DB.Sessions(), store.SessionTables()); err != nil {
		return err
	}
	if err := clearTables(m.ctx, m.to.DB.Mailboxes(), store.MailboxTables()); err != nil {
		return err
	}
	return clearTables(m.ctx, m.to.DB.Control(), store.ControlTables())
}

func (m *moving) mark(state, peer string) *Mark {
	return &Mark{State: state, Move: m.id, Peer: peer, At: m.now()}
}

// parts returns the parts to copy: the older days first, and today last, so that it has a journal
// for the shortest time.
func (m *moving) parts() ([]*part, error) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	days, err := m.from.DB.Days(m.ctx)
	if err != nil {
		return nil, err
	}
	m.listed = true
	var parts []*part
	for _, day := range slices.Backward(days) {
		p, err := m.of.day(m.ctx, day, false)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return slices.Insert(parts, max(0, len(parts)-1), m.of.control, m.of.sessions, m.of.mailboxes), nil
}

// copy copies all parts. Each part has a journal from the moment of its copy.
func (m *moving) copy() error {
	parts, err := m.parts()
	if err != nil {
		return err
	}
	var total int64
	for _, p := range parts {
		n, err := countRows(m.ctx, p, p.tables)
		if err != nil {
			return err
		}
		total += n
	}
	m.phase(Copying, total)
	for i, p := range parts {
		if i == len(parts)-1 {
			failpoint.Hit("before-last-part")
		}
		if m.isFollowed(p) { // the day was created after the move began
			continue
		}
		if err := m.copyPart(p); err != nil {
			return err
		}
	}
	return nil
}

func (m *moving) isFollowed(p *part) bool {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return slices.ContainsFunc(m.followed, func(f *following) bool { return f.part == p })
}

func (m *moving) copyPart(p *part) error {
	f, err := m.pair(m.ctx, p)
	if err != nil {
		return err
	}
	if err := clearTables(m.ctx, f.target, p.tables); err != nil {
		return err
	}
	err = f.moment(m.ctx, func(int64) { m.follow(f) }, func(s store.Session) error {
		for i := range p.tables {
			m.o.Progress.at(p.name, p.tables[i].Name)
			if err := copyTable(m.ctx, s, f.target, &p.tables[i], m.o.Progress); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.replay(f)
	return nil
}

// pair returns a part in both databases.
func (m *moving) pair(ctx context.Context, p *part) (*following, error) {
	f := &following{part: p, journal: newJournal(&m.budget)}
	var err error
	if f.source, err = p.in(ctx, m.from); err != nil {
		return nil, err
	}
	switch p {
	case m.of.control:
		f.target = m.to.DB.Control()
		return f, nil
	case m.of.sessions:
		f.target = m.to.DB.Sessions()
		return f, nil
	case m.of.mailboxes:
		f.target = m.to.DB.Mailboxes()
		return f, nil
	}
	f.target, err = m.to.DB.Day(ctx, p.day, true)
	return f, err
}

// born adds a day to the move that was just created and that nobody uses yet. The Switch's mu is
// held.
func (m *moving) born(p *part) {
	if !m.listed {
		return
	}
	f, err := m.pair(m.ctx, p)
	if err != nil {
		m.stop(err)
		return
	}
	p.journal = f.journal
	m.followed = append(m.followed, f)
	m.replay(f)
}

// follow begins a journal for a part, whose gate is shut.
func (m *moving) follow(f *following) {
	f.part.journal = f.journal
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.followed = append(m.followed, f)
}

// shut closes the gate for writes, and waits for the writes that are running.
func (f *following) shut(ctx context.Context) error {
	for range shutTries {
		shutting, cancel := context.WithTimeout(ctx, shutPatience)
		err := f.writes.closed(shutting)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("writes to the old database that were running did not finish within %v", shutPatience),
		Hint: "start the move again when the server is less busy"}
}

// moment runs fn on a consistent state of the source. It calls at while there are no writes, with
// the position in the journal of the same moment.
func (f *following) moment(ctx context.Context, at func(position int64), fn func(store.Session) error) error {
	if err := f.shut(ctx); err != nil {
		return err
	}
	open := sync.OnceFunc(f.writes.open)
	defer open()
	began := false
	return f.source.Snapshot(ctx, func(s store.Session) error {
		if began {
			return errMomentLost
		}
		first := &f.tables[0]
		hold := append(before(first), int64(1))
		if err := s.Each("copy_"+first.Name, func(store.Row) error { return nil }, hold...); err != nil { // the first statement holds the moment
			return err
		}
		began = true
		at(f.journal.end())
		open()
		return fn(s)
	})
}

var errMomentLost = &fanfare.Error{Code: fanfare.Unavailable, Message: "the connection to the source database of the move was lost", Hint: "start the move again"}

// replay replays the journal of a part in the target until the move ends.
func (m *moving) replay(f *following) {
	m.following.Go(func() {
		for {
			log, err := f.journal.next(m.ctx, replayBytes)
			if err == nil {
				err = replay(m.ctx, f.target, log)
			}
			if err == nil {
				err = f.journal.done(int64(len(log)))
			}
			if err != nil {
				m.stop(err)
				return
			}
		}
	})
}
