package server

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// A Migration is a move between databases that no server works on. From and To
// are "sqlite" for the files in the data directory, another directory, or the
// URL of a PostgreSQL.
type Migration struct {
	Config   config.Config // its data directory, and how to speak to a PostgreSQL
	From, To string
	Progress func(wire.Move) // called now and then; may be nil

	// Opening is called before a database is opened, and what it returns after that; may
	// be nil.
	Opening func(place string) (opened func())
}

// checkURL refuses what is no URL of a PostgreSQL. It does not show it.
func checkURL(to string) error {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/to", Message: "is neither sqlite nor the URL of a PostgreSQL database", Hint: "use sqlite, or postgres://user@host/database"}
	}
	return nil
}

// ServerRuns reports whether a server uses a data directory.
func ServerRuns(dir string) bool { return datadir.InUse(dir) }

// isURL tells a URL from a directory.
func isURL(place string) bool { return strings.Contains(place, "://") }

// dir is the directory that a place names, "" for a URL.
func (m *Migration) dir(place string) string {
	switch {
	case isURL(place):
		return ""
	case place == filesName:
		return m.Config.DataDir
	}
	return place
}

// open locks and opens both databases. Of a source that is a directory, the
// files must be there.
func (m *Migration) open(ctx context.Context, o Options) (from, to *opened, unlock func() error, err error) {
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
		if _, err := os.Stat(filepath.Join(dir, "control.db")); err != nil {
			return nil, nil, nil, &fanfare.Error{Code: fanfare.NotFound, Message: dir + " has nothing to move: it has no control.db", Hint: "name the data directory with --from DIR or --data-dir"}
		}
	}
	if from, to := m.dir(m.From), m.dir(m.To); from != "" && filepath.Clean(from) == filepath.Clean(to) {
		return nil, nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: "--from and --to are the same", Hint: "name in --to where everything shall be"}
	}
	for _, dir := range []string{m.dir(m.From), m.dir(m.To)} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, nil, err
		}
		release, err := datadir.Lock(dir)
		if err != nil {
			return nil, nil, nil, err
		}
		undo = append(undo, release)
	}
	if from, err = m.openSide(ctx, m.From, o); err != nil {
		return nil, nil, nil, err
	}
	if to, err = m.openSide(ctx, m.To, o); err != nil {
		return nil, nil, nil, errors.Join(err, from.DB.Close())
	}
	return from, to, undoAll, nil
}

func (m *Migration) openSide(ctx context.Context, place string, o Options) (*opened, error) {
	c := m.Config
	if dir := m.dir(place); dir != "" {
		c.DataDir, place = dir, filesName
	} else if m.Opening != nil {
		defer m.Opening(postgres.Describe(place))()
	}
	return openTarget(ctx, place, &c, o.Version, o.Logger)
}

// Run moves. When it has returned nil, a server works on the target from then on.
func (m *Migration) Run(ctx context.Context, o Options) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx, o)
	if err != nil {
		return wire.Move{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	journals := cmp.Or(m.dir(m.From), m.dir(m.To), os.TempDir())
	clock := clock.System{}
	began := clock.Now()
	progress, stop := m.watch(func(s move.State) wire.Move { return shown(from.Name, to.Name, began, s) })
	report, err := move.Stopped(ctx, from.Side, to.Side, move.Options{Dir: journals, Clock: clock, Log: o.Logger, Progress: progress})
	stop()
	if dir := m.dir(m.To); err == nil && dir != "" {
		err = unpair(dir)
	} else if err == nil {
		err = follow(m.Config.DataDir, from.pair(), to.pair())
	}
	w := shown(from.Name, to.Name, began, progress.State())
	conclude(&w, report, err, clock.Now())
	return w, err
}

// Compare reads both databases, and changes nothing.
func (m *Migration) Compare(ctx context.Context, o Options) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx, o)
	if err != nil {
		return wire.Move{}, err
	}
	defer func() { err = errors.Join(err, from.DB.Close(), to.DB.Close(), unlock()) }()
	began := time.Now()
	progress, stop := m.watch(func(s move.State) wire.Move { return shown(from.Name, to.Name, began, s) })
	report, err := move.Compare(ctx, from.Side, to.Side, progress)
	stop()
	w := shown(from.Name, to.Name, began, progress.State())
	conclude(&w, report, err, time.Now())
	return w, err
}

// Plan tells what would be moved, or why not. Of the tables it has the rows of
// the source.
func (m *Migration) Plan(ctx context.Context, o Options) (_ wire.Move, err error) {
	from, to, unlock, err := m.open(ctx, o)
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

// The marks that a whole move leaves: of the database that it came from, and of the one
// that it went to.
const (
	MarkLeft = move.Left
	MarkHere = move.Here
)

// Unmarked is what Unmark did. Without a mark it did nothing.
type Unmarked struct {
	Database string    `json:"database"`
	Mark     string    `json:"mark,omitempty"`  // left, filling, full or here, as in move.Mark
	Other    string    `json:"other,omitempty"` // the database at the other end of the move
	At       time.Time `json:"at,omitzero"`
}

// Unmark lets a server start again on a database that was moved from, as it was
// then.
func (m *Migration) Unmark(ctx context.Context, o Options) (u Unmarked, err error) {
	both := Migration{Config: m.Config, From: m.From, Opening: m.Opening}
	if dir := m.dir(m.From); dir != "" {
		release, err := datadir.Lock(dir)
		if err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	side, err := both.openSide(ctx, m.From, o)
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
		err = unpair(dir) // servers have worked here with the other one since
	}
	return u, err
}

// progressEvery is how often Progress is called.
const progressEvery = 200 * time.Millisecond

// watch tells Progress how far it is, until stop is called.
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
