package migrate

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/move"
)

// Options are the dependencies of a Mover.
type Options struct {
	Config    config.Config
	Version   string
	DB        *database.DB
	Clock     clock.Clock
	Logger    *slog.Logger
	Exclusive ctxlock.Lock // held while a move copies; backups and erasures hold it too
	Disk      *datadir.DiskFloor
}

// A Mover replaces the database of a running server. It runs one move at a time.
type Mover struct {
	options Options

	mu   sync.Mutex
	last *job // nil: there was no move
}

// NewMover returns a Mover without a move.
func NewMover(o Options) *Mover { return &Mover{options: o} }

// A job is a move that has started.
type job struct {
	from, to string
	began    time.Time
	progress move.Progress
	stop     context.CancelFunc
	done     chan struct{} // closed when the move has ended

	// Set before done is closed:
	ended  time.Time
	report *move.Report
	err    error
	hint   string
}

// Start opens the target database and begins a move.
func (m *Mover) Start(ctx context.Context, to string) (wire.Move, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && !m.last.isDone() {
		return wire.Move{}, &fanfare.Error{Code: fanfare.Conflict, Message: "a move to " + m.last.to + " is running", Hint: "wait until it is finished, or stop it"}
	}
	if m.options.Config.Clustered() {
		return wire.Move{}, &fanfare.Error{Code: fanfare.Conflict, Message: "the data of a cluster cannot be moved while nodes are running", Hint: "stop all nodes, then move the data with fanfare migrate"}
	}
	target, err := database.OpenTarget(ctx, to, &m.options.Config, m.options.Version, m.options.Logger)
	if err != nil {
		return wire.Move{}, err
	}
	current := m.options.DB.Current()
	if target.Name == current.Name {
		return wire.Move{}, errors.Join(&fanfare.Error{Code: fanfare.Conflict, Message: "the data is already in " + to + " already"}, target.DB.Close())
	}
	j := &job{from: current.Name, to: target.Name, began: m.options.Clock.Now(), done: make(chan struct{})}
	ctx, j.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.last = j
	m.options.Logger.Info("starting a move", "from", j.from, "to", j.to)
	go m.run(ctx, j, target)
	return j.wire(), nil
}

// run moves the data and stores the result in the job.
func (m *Mover) run(ctx context.Context, j *job, target *database.Side) {
	defer close(j.done)
	defer j.stop()
	report, err := m.move(ctx, j, target)
	j.report, j.err, j.ended = report, err, m.options.Clock.Now()
	if err != nil {
		m.options.Logger.Error("the move failed; the old database remains in use", "from", j.from, "to", j.to, "error", errors.Join(err, target.DB.Close()))
		return
	}
	j.hint = m.changePairing(m.options.DB.Replace(target), target)
	m.options.Logger.Warn("all data was moved: "+j.hint, "from", j.from, "to", j.to, "rows", report.Rows(), "pause", report.Pause.Round(time.Millisecond).String())
}

func (m *Mover) move(ctx context.Context, j *job, target *database.Side) (*move.Report, error) {
	if err := m.options.Exclusive.Lock(ctx); err != nil {
		return &move.Report{}, err
	}
	defer m.options.Exclusive.Unlock()
	return m.options.DB.Move(ctx, target.Side, move.Options{Dir: m.options.Config.DataDir, JournalBytes: min(move.JournalBytes, m.options.Disk.Free()/2),
		Clock: m.options.Clock, Log: m.options.Logger, Progress: &j.progress})
}

// changePairing updates the pairing of the data directory, and returns what the operator must do before the next
// start.
func (m *Mover) changePairing(source, target *database.Side) string {
	dir := m.options.Config.DataDir
	file := filepath.Join(dir, database.PairingFile)
	if target.Remote() {
		if err := database.ChangePairing(dir, source.Pairing(), target.Pairing()); err != nil {
			m.options.Logger.Error("the data directory is still paired with the old database", "file", file, "error", err, "hint", "remove that file before the next start")
		}
		return "set the setting db to " + target.About().Where + " before the next start"
	}
	if err := database.RemovePairing(dir); err != nil {
		m.options.Logger.Error("the data directory is still paired with the old database", "file", file, "error", err, "hint", "remove that file")
	}
	return "remove the setting db before the next start: all data is in the data directory"
}

func (m *Mover) lastJob() *job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Move returns the running move or the last one.
func (m *Mover) Move() (wire.Move, bool) {
	last := m.lastJob()
	if last == nil {
		return wire.Move{}, false
	}
	return last.wire(), true
}

// Stop ends the running move.
func (m *Mover) Stop() {
	if last := m.lastJob(); last != nil {
		last.stop()
		<-last.done
	}
}

// BeforeNextStart returns what the operator must do before the next start, or "".
func (m *Mover) BeforeNextStart() string {
	if last := m.lastJob(); last != nil && last.isDone() && last.err == nil {
		return last.hint
	}
	return ""
}

func (j *job) isDone() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// wire returns the progress of a move.
func (j *job) wire() wire.Move {
	w := progressOf(j.from, j.to, j.began, j.progress.State())
	if j.isDone() {
		addResult(&w, j.report, j.err, j.ended)
		if j.err == nil {
			w.Hint = j.hint
		}
	}
	return w
}

func progressOf(from, to string, began time.Time, s move.State) wire.Move {
	w := wire.Move{State: "running", Phase: string(s.Phase), From: from, To: to, Part: s.Part, Table: s.Table,
		Rows: s.Rows, Total: s.Total, Bytes: s.Bytes, Behind: s.Behind, Began: began, Phased: s.Since}
	if s.Phase == "" || s.Phase == move.Done || s.Phase == move.Failed {
		w.Phase = string(move.Preparing)
	}
	return w
}

// addResult adds the result of a move.
func addResult(w *wire.Move, report *move.Report, err error, ended time.Time) {
	w.State, w.Ended = "done", &ended
	w.Pause = float64(report.Pause.Microseconds()) / 1000
	for _, t := range report.Tables {
		w.Tables = append(w.Tables, wire.MoveTable{Part: t.Part, Table: t.Table, FromRows: t.From.Rows, ToRows: t.To.Rows, FromHash: t.From.Hash, ToHash: t.To.Hash})
	}
	if err == nil {
		return
	}
	w.State, w.Error = "failed", "the server log contains the reason"
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		w.Error, w.Hint = e.Message, e.Hint
	} else if errors.Is(err, context.Canceled) {
		w.Error = "it was stopped"
	}
}
