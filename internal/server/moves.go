package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// filesName is what the files of the data directory are called where a database
// is named.
const filesName = "sqlite"

// moves puts another database in the place of the one that the server works on,
// while it works. One is under way at a time.
type moves struct {
	config  config.Config
	version string
	db      *database
	clock   clock.Clock
	log     *slog.Logger
	copying ctxlock.Lock // of a backup and an erasure too
	floor   *datadir.DiskFloor

	mu   sync.Mutex
	last *moving // nil: there was none
}

// moving is a move from its start on.
type moving struct {
	from, to string
	began    time.Time
	progress move.Progress
	stop     context.CancelFunc
	over     chan struct{} // closed when it has ended

	// Of who closes over, until then:
	ended  time.Time
	report *move.Report
	err    error
	hint   string
}

// Start opens the other database and begins the move.
func (m *moves) Start(ctx context.Context, to string) (wire.Move, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && !m.last.isOver() {
		return wire.Move{}, &fanfare.Error{Code: fanfare.Conflict, Message: "a move to " + m.last.to + " is under way", Hint: "wait until it is done, or stop it"}
	}
	target, err := openTarget(ctx, to, &m.config, m.version, m.log)
	if err != nil {
		return wire.Move{}, err
	}
	current := m.db.now.Load()
	if target.Name == current.Name {
		return wire.Move{}, errors.Join(&fanfare.Error{Code: fanfare.Conflict, Message: "everything is in " + to + " already"}, target.DB.Close())
	}
	moving := &moving{from: current.Name, to: target.Name, began: m.clock.Now(), over: make(chan struct{})}
	ctx, moving.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.last = moving
	m.log.Info("a move begins", "from", moving.from, "to", moving.to)
	go m.run(ctx, moving, target)
	return moving.wire(), nil
}

// openTarget opens the database that is meant by to.
func openTarget(ctx context.Context, to string, c *config.Config, version string, log *slog.Logger) (*opened, error) {
	if to == filesName {
		return openFiles(ctx, c.DataDir, store.Durability(c.Durability))
	}
	of := *c
	of.DB, of.DBReads = to, ""
	if err := checkURL(to); err != nil {
		return nil, err
	}
	options := databaseOptions(&of, version)
	options.Logger = log
	where := postgres.Describe(to)
	db, err := postgres.Open(ctx, to, options)
	if err != nil {
		err = located(where, err)
		if told, ok := errors.AsType[*fanfare.Error](err); ok {
			told.Pointer = "/to"
		}
		return nil, err
	}
	return learn(ctx, db, where)
}

// run moves, and notes what came of it.
func (m *moves) run(ctx context.Context, moving *moving, target *opened) {
	defer close(moving.over)
	defer moving.stop()
	report, err := m.move(ctx, moving, target)
	moving.report, moving.err, moving.ended = report, err, m.clock.Now()
	if err != nil {
		m.log.Error("the move failed, and the old database is in charge", "from", moving.from, "to", moving.to, "error", errors.Join(err, target.DB.Close()))
		return
	}
	moving.hint = m.settle(m.db.now.Swap(target), target)
	m.log.Warn("everything has moved, and "+moving.hint, "from", moving.from, "to", moving.to, "rows", report.Rows(), "pause", report.Pause.Round(time.Millisecond).String())
}

func (m *moves) move(ctx context.Context, moving *moving, target *opened) (*move.Report, error) {
	if err := m.copying.Lock(ctx); err != nil {
		return &move.Report{}, err
	}
	defer m.copying.Unlock()
	return m.db.Move(ctx, target.Side, move.Options{Dir: m.config.DataDir, JournalBytes: min(move.JournalBytes, m.floor.Free()/2),
		Clock: m.clock, Log: m.log, Progress: &moving.progress})
}

// settle does in the data directory what a start with the new database expects,
// and says what an operator has to do before that.
func (m *moves) settle(source, target *opened) string {
	if target.remote != nil {
		if err := follow(m.config.DataDir, source.pair(), target.pair()); err != nil {
			m.log.Error("the data directory is still said to belong to the old database", "file", filepath.Join(m.config.DataDir, pairFile), "error", err, "hint", "remove that file before the next start")
		}
		return "set the setting db to " + target.about.Where + " before the next start"
	}
	if err := unpair(m.config.DataDir); err != nil {
		m.log.Error("the data directory is still said to belong to the old database", "file", filepath.Join(m.config.DataDir, pairFile), "error", err, "hint", "remove that file")
	}
	return "unset the setting db before the next start: everything is in the files of the data directory"
}

// unpair forgets which database a data directory belongs to.
func unpair(dir string) error {
	err := os.Remove(filepath.Join(dir, pairFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (m *moves) current() *moving {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Move is the one that is under way, or the last.
func (m *moves) Move() (wire.Move, bool) {
	last := m.current()
	if last == nil {
		return wire.Move{}, false
	}
	return last.wire(), true
}

// Stop ends the one that is under way.
func (m *moves) Stop() {
	if last := m.current(); last != nil {
		last.stop()
		<-last.over
	}
}

// after is what db must be set to before the next start; "" if it is.
func (m *moves) after() string {
	if last := m.current(); last != nil && last.isOver() && last.err == nil {
		return last.hint
	}
	return ""
}

func (m *moving) isOver() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// wire tells how far it is.
func (m *moving) wire() wire.Move {
	w := shown(m.from, m.to, m.began, m.progress.State())
	if m.isOver() {
		conclude(&w, m.report, m.err, m.ended)
		if m.err == nil {
			w.Hint = m.hint
		}
	}
	return w
}

func shown(from, to string, began time.Time, s move.State) wire.Move {
	w := wire.Move{State: "running", Phase: string(s.Phase), From: from, To: to, Part: s.Part, Table: s.Table,
		Rows: s.Rows, Total: s.Total, Bytes: s.Bytes, Behind: s.Behind, Began: began, Phased: s.Since}
	if s.Phase == "" || s.Phase == move.Done || s.Phase == move.Failed {
		w.Phase = string(move.Preparing)
	}
	return w
}

// conclude adds what came of a move.
func conclude(w *wire.Move, report *move.Report, err error, ended time.Time) {
	w.State, w.Ended = "done", &ended
	w.Pause = float64(report.Pause.Microseconds()) / 1000
	for _, t := range report.Tables {
		w.Tables = append(w.Tables, wire.MoveTable{Part: t.Part, Table: t.Table, FromRows: t.From.Rows, ToRows: t.To.Rows, FromHash: t.From.Hash, ToHash: t.To.Hash})
	}
	if err == nil {
		return
	}
	w.State, w.Error = "failed", "see the server's log"
	if told, ok := errors.AsType[*fanfare.Error](err); ok {
		w.Error, w.Hint = told.Message, told.Hint
	} else if errors.Is(err, context.Canceled) {
		w.Error = "it was stopped"
	}
}
