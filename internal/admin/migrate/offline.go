package migrate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// A Migration is a move between databases that no server uses. From and To are database.Files for the files in the
// data directory, another directory, or the URL of a PostgreSQL database.
type Migration struct {
	Config   config.Config // data directory, and settings of the connection to PostgreSQL
	Version  string        // of the program
	Logger   *slog.Logger
	From, To string
	Progress func(wire.Move) // called every progressEvery; may be nil

	// Opening is called before a database is opened, and its result after that; it may be nil.
	Opening func(place string) (opened func())
}

// isURL reports whether a location is a URL and not a directory.
func isURL(place string) bool { return strings.Contains(place, "://") }

// dir returns the directory of a location, or "" for a URL.
func (m *Migration) dir(place string) string {
	switch {
	case isURL(place):
		return ""
	case place == database.Files:
		return m.Config.DataDir
	}
	return place
}

// open locks and opens both databases. If the source is a directory, it must have files.
func (m *Migration) open(ctx context.Context) (from, to *database.Side, unlock func() error, err error) {
	var undo []func() error
	undoAll := func() error {
		var errs []error
		for _, f := range undo {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undoAll())
		}
	}()
	if dir := m.dir(m.From); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, datadir.Control)); err != nil {
			return nil, nil, nil, &fanfare.Error{Code: fanfare.NotFound, Message: dir + " has no data to move: it has no control.db", Hint: "specify the data directory with --from DIR or --data-dir"}
		}
	}
	if from, to := m.dir(m.From), m.dir(m.To); from != "" && filepath.Clean(from) == filepath.Clean(to) {
		return nil, nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: "--from and --to are identical", Hint: "use a different location for --to"}
	}
	for _, dir := range []string{m.dir(m.From), m.dir(m.To)} {
		if dir == "" {
			continue
		}
		if err := durablefile.MakeDir(dir, 0o700); err != nil {
			return nil, nil, nil, err
		}
		release, err := datadir.Lock(dir)
		if err != nil {
			return nil, nil, nil, err
		}
		undo = append(undo, release)
	}
	if from, err = m.openSide(ctx, m.From); err != nil {
		return nil, nil, nil, err
	}
	if to, err = m.openSide(ctx, m.To); err != nil {
		return nil, nil, nil, errors.Join(err, from.DB.Close())
	}
	return from, to, undoAll, nil
}

func (m *Migration) openSide(ctx context.Context, place string) (*database.Side, error) {
	c := m.Config
	if dir := m.dir(place); dir != "" {
		c.DataDir, place = dir, database.Files
	} else if m.Opening != nil {
		defer m.Opening(postgres.Describe(place))()
	}
	return database.OpenTarget(ctx, place, &c, m.Version, m.Logger)
}

// Run moves the data. When it has returned nil, servers use the target.
func (m *Migration) Run(ctx context.Context) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx)
	if err != nil {
		return wire.Move{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	journals := cmp.Or(m.dir(m.From), m.dir(m.To), os.TempDir())
	clock := clock.System{}
	began := clock.Now()
	progress, stop := m.watch(func(s move.State) wire.Move { return progressOf(from.Name, to.Name, began, s) })
	report, err := move.Stopped(ctx, from.Side, to.Side, move.Options{Dir: journals, Clock: clock, Log: m.Logger, Progress: progress})
	stop()
	if dir := m.dir(m.To); err == nil && dir != "" {
		err = database.RemovePairing(dir)
	} else if err == nil {
		err = database.ChangePairing(m.Config.DataDir, from.Pairing(), to.Pairing())
	}
	w := progressOf(from.Name, to.Name, began, progress.State())
	addResult(&w, report, err, clock.Now())
	return w, err
}

// Compare compares both databases, and changes nothing.
func (m *Migration) Compare(ctx context.Context) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx)
	if err != nil {
		return wire.Move{}, err
	}
	defer func() { err = errors.Join(err, from.DB.Close(), to.DB.Close(), unlock()) }()
	began := time.Now()
	progress, stop := m.watch(func(s move.State) wire.Move { return progressOf(from.Name, to.Name, began, s) })
	report, err := move.Compare(ctx, from.Side, to.Side, progress)
	stop()
	w := progressOf(from.Name, to.Name, began, progress.State())
	addResult(&w, report, err, time.Now())
	return w, err
}

// Plan returns what would be moved, or why a move is impossible. Its tables have the numbers of rows in the source.
func (m *Migration) Plan(ctx context.Context) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx)
	if err != nil {
		return wire.Move{}, err
	}
	defer func() { err = errors.Join(err, from.DB.Close(), to.DB.Close(), unlock()) }()
	counts, err := move.Plan(ctx, from.Side, to.Side)
	w := wire.Move{From: from.Name, To: to.Name}
	for _, c := range counts {
		w.Tables = append(w.Tables, wire.MoveTable{Part: c.Part, Table: c.Table, FromRows: c.Rows})
		w.Total += c.Rows
	}
	return w, err
}

// A complete move leaves these marks: MarkLeft in the source, and MarkHere in the target.
const (
	MarkLeft = move.Left
	MarkHere = move.Here
)

// Unmarked is the result of Unmark. Without a mark, Unmark did nothing.
type Unmarked struct {
	Database string    `json:"database"`
	Mark     string    `json:"mark,omitempty"`  // left, filling, full or here, as in move.Mark
	Other    string    `json:"other,omitempty"` // the database at the other end of the move
	At       time.Time `json:"at,omitzero"`
}

// Unmark lets a server start again on the source of a move, with the data as it was then.
func (m *Migration) Unmark(ctx context.Context) (u Unmarked, err error) {
	if dir := m.dir(m.From); dir != "" {
		release, err := datadir.Lock(dir)
		if err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	side, err := m.openSide(ctx, m.From)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, side.DB.Close()) }()
	u.Database = side.Name
	mark, err := move.ReadMark(ctx, side.DB)
	if err != nil {
		return u, err
	}
	if mark != nil {
		u.Mark, u.Other, u.At = mark.State, mark.Peer, mark.At
	}
	err = move.Unmark(ctx, side.DB)
	if dir := m.dir(m.From); err == nil && dir != "" {
		err = database.RemovePairing(dir) // since the move, servers have used the directory with the target
	}
	return u, err
}

// progressEvery is the interval at which Progress is called.
const progressEvery = 200 * time.Millisecond

// watch calls Progress until stop is called.
func (m *Migration) watch(show func(move.State) wire.Move) (progress *move.Progress, stop func()) {
	progress = &move.Progress{}
	if m.Progress == nil {
		return progress, func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				m.Progress(show(progress.State()))
			}
		}
	}()
	return progress, func() { close(over); <-ended }
}
