package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

const (
	// replayBytes is the approximate size of the part of a journal that one transaction replays.
	replayBytes = 1 << 20
	// nearBytes is the size of the rest of a journal at which the databases switch.
	nearBytes = 128 << 10
	// shutPatience limits the wait for running writes when a part is shut for a moment; then new
	// writes continue, and the part is shut again.
	shutPatience = 10 * time.Second
	shutTries    = 6
	// changePatience limits the wait of writes while the database switches; then they continue,
	// and the switch is tried again.
	changePatience = 2 * time.Second
	changeTries    = 20
	// readPatience limits the wait for readers of the old database.
	readPatience = 200 * time.Millisecond
)

func (m *moving) all() []*following {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return slices.Clone(m.followed)
}

// catchUp returns when little is left to replay of all journals: nearBytes and one
// transaction of each. The rest does not grow meanwhile: writers wait for the target if they
// are faster, and their limit is halved as long as the rest does not shrink.
func (m *moving) catchUp() error {
	m.phase(CatchingUp, 0)
	followed := m.all()
	limit := max(nearBytes, behind(followed))
	for {
		lag := behind(followed)
		m.o.Progress.behind(lag)
		if limit <= nearBytes || !slices.ContainsFunc(followed, func(f *following) bool { return f.journal.lag() > nearBytes }) {
			return nil
		}
		for _, f := range followed {
			f.journal.hold(limit)
		}
		for _, f := range followed {
			if err := f.journal.reached(m.ctx, f.journal.end()); err != nil {
				return err
			}
		}
		if behind(followed) > lag/2 {
			limit = max(nearBytes, limit/2)
		}
		followed = m.all()
	}
}

func behind(followed []*following) (sum int64) {
	for _, f := range followed {
		sum += f.journal.lag()
	}
	return sum
}

// compare reads both databases in one consistent state of each part.
func (m *moving) compare() error {
	followed := m.all()
	var total int64
	for _, f := range followed {
		n, err := countRows(m.ctx, f.target, f.tables)
		if err != nil {
			return err
		}
		total += 2 * n
	}
	m.phase(Comparing, total)
	for _, f := range followed {
		tables, err := m.comparePart(f)
		if err != nil {
			return err
		}
		m.report.Tables = append(m.report.Tables, tables...)
	}
	return m.report.verdict("the server is still using the old database; please report this error together with the names of the tables")
}

func (m *moving) comparePart(f *following) ([]Compared, error) {
	m.o.Progress.at(f.name, "")
	defer f.journal.stopAt(math.MaxInt64)
	var here, there []Sum
	both, ctx := errgroup.WithContext(m.ctx)
	stop := func(position int64) {
		f.journal.stopAt(position)
		both.Go(func() error {
			if err := f.journal.reached(ctx, position); err != nil {
				return err
			}
			return f.target.Snapshot(ctx, func(s store.Session) (err error) {
				there, err = sums(s, f.tables, m.o.Progress)
				return err
			})
		})
	}
	err := f.moment(ctx, stop, func(s store.Session) (err error) {
		here, err = sums(s, f.tables, m.o.Progress)
		return err
	})
	if other := both.Wait(); other != nil {
		err = other
	}
	if err != nil {
		return nil, err
	}
	return compared(f.name, f.tables, here, there), nil
}

// verdict returns an error that names the tables that differ.
func (r *Report) verdict(hint string) error {
	differ := r.Differences()
	if len(differ) == 0 {
		return nil
	}
	err := &fanfare.Error{Code: fanfare.Internal, Message: fmt.Sprintf("%d of %d tables differ between %s and %s", len(differ), len(r.Tables), r.From, r.To), Hint: hint}
	for _, c := range differ {
		err.Details = append(err.Details, &fanfare.Error{Code: fanfare.Internal,
			Message: fmt.Sprintf("table %s of %s: the source has %d rows (hash %.12s), the target has %d rows (hash %.12s)", c.Table, c.Part, c.From.Rows, c.From.Hash, c.To.Rows, c.To.Hash)})
	}
	return err
}

// change switches to the target.
func (m *moving) change() error {
	for try := 1; ; try++ {
		if err := m.catchUp(); err != nil {
			return err
		}
		m.phase(Switching, 0)
		err := m.tryChange()
		if err == nil || try == changeTries || m.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// tryChange stops all writes, replays the rest of the journals, and switches to the target. After
// an error, the source stays in use.
func (m *moving) tryChange() error {
	s := m.of
	s.mu.Lock() // no day is created meanwhile
	defer s.mu.Unlock()
	began := m.now()
	ctx, cancel := context.WithTimeout(m.ctx, changePatience)
	defer cancel()
	for _, f := range m.followed {
		f.writes.close()
		defer f.writes.open()
	}
	for _, f := range m.followed {
		if err := f.writes.empty(ctx); err != nil {
			return err
		}
	}
	for _, f := range m.followed {
		if err := f.journal.reached(ctx, f.journal.end()); err != nil {
			return err
		}
	}
	if err := m.handOver(ctx); err != nil {
		return err
	}
	for _, f := range m.followed {
		f.part.journal = nil
	}
	s.current.Store(&side{Side: m.to})
	m.awaitReads()
	m.report.Pause = m.now().Sub(began)
	return nil
}

// handOver marks both databases. If it is interrupted at any point, one of them can be chosen
// without doubt: the source until it is marked, and then the target.
func (m *moving) handOver(ctx context.Context) error {
	if err := m.mark(Full, m.from.Name).write(ctx, m.to.DB); err != nil {
		return err
	}
	failpoint.Hit("after-move-full")
	before, err := ReadMark(ctx, m.from.DB)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // from here on it is one or the other
	if err := m.mark(Left, m.to.Name).write(ctx, m.from.DB); err != nil {
		return m.takeBack(ctx, before, err)
	}
	if err := firm(ctx, m.from.DB); err != nil {
		m.o.Log.Warn("the old database could not be synced: after a power loss it may not be marked as moved, and a server could start on it", "database", m.from.Name, "error", err,
			"hint", "do not start a server on the old database")
	}
	failpoint.Hit("after-move-left")
	if err := m.mark(Here, m.from.Name).write(ctx, m.to.DB); err != nil { // it is in charge all the same
		m.o.Log.Error("the move is complete, but the new database could not be marked as complete", "database", m.to.Name, "error", err,
			"hint", "if the next start fails, run fanfare migrate again to mark the database as complete")
	}
	failpoint.Hit("after-move-here")
	return nil
}

// takeBack keeps the source in use if marking it failed, or if the result is unknown. It marks the
// target as incomplete, so that no server starts on it.
func (m *moving) takeBack(ctx context.Context, before *Mark, cause error) error {
	err := m.mark(Filling, m.from.Name).write(ctx, m.to.DB)
	if before != nil {
		err = errors.Join(err, before.write(ctx, m.from.DB))
	} else {
		err = errors.Join(err, Unmark(ctx, m.from.DB))
	}
	if err != nil {
		m.o.Log.Error("the move failed in its last step, and its marks could not be removed; the server is still using the old database", "database", m.from.Name, "error", err,
			"hint", "if the next start refuses the old database, run fanfare migrate --unmark; do not start on the new database")
	}
	return cause
}

// awaitReads waits up to readPatience for readers of the old database; the last reader closes it.
func (m *moving) awaitReads() {
	ctx, cancel := context.WithTimeout(context.Background(), readPatience)
	defer cancel()
	_ = m.from.reads.empty(ctx)
	m.of.left.Go(func() {
		_ = m.from.reads.empty(context.Background())
		if err := m.from.DB.Close(); err != nil {
			m.o.Log.Warn("the old database could not be closed cleanly", "database", m.from.Name, "error", err)
		}
	})
}
