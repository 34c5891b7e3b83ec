package move_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const today = fanfare.Day(20777)

// A kind of database, by name: how a new one is made, and how one is opened that
// was closed.
type kind struct {
	name string
	made func(t *testing.T) (place string)
	open func(t *testing.T, place string) (store.Database, error)
}

var (
	files = kind{"sqlite", func(t *testing.T) string { return t.TempDir() }, func(t *testing.T, dir string) (store.Database, error) {
		return sqlite.Open(t.Context(), dir, store.Relaxed)
	}}
	server = kind{"postgres", func(t *testing.T) string { return pgtest.Database(t) }, func(t *testing.T, url string) (store.Database, error) {
		return postgres.Open(t.Context(), url, postgres.Options{Durability: store.Relaxed, Logger: slog.New(slog.DiscardHandler)})
	}}
)

// A route is a move between two kinds.
type route struct{ from, to kind }

// along runs a test on every route.
func along(t *testing.T, test func(t *testing.T, r route)) {
	for _, r := range []route{{files, files}, {files, server}, {server, files}} {
		t.Run(r.from.name+" to "+r.to.name, func(t *testing.T) { test(t, r) })
	}
}

// amongFiles runs a test that is about the move alone.
func amongFiles(t *testing.T, test func(t *testing.T, r route)) { test(t, route{files, files}) }

// stride is how many writes lie between those that a test fails one by one, since
// each takes a move of its own. The tests begin at a random one, so that all come up in time.
func (r route) stride() int {
	if r.to.name == files.name && r.from.name == files.name {
		return 4
	}
	return 23
}

// side opens a new database.
func (k kind) side(t *testing.T, name string) move.Side { return k.again(t, name, k.made(t)) }

// again opens the database of a place, which is closed at the end of the test.
func (k kind) again(t *testing.T, name, place string) move.Side {
	t.Helper()
	db, err := k.open(t, place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // a second one does nothing
	return move.Side{DB: db, Name: name}
}

func options(t *testing.T) move.Options {
	return move.Options{Dir: t.TempDir(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
}

// rows are invented for a table: each row has the values of its columns.
func invent(r *rand.Rand, t *store.Table, n int) [][]any {
	rows := make([][]any, n)
	for i := range rows {
		for c, column := range t.Columns {
			rows[i] = append(rows[i], value(r, t, column, c, i))
		}
	}
	return rows
}

// nullable are the columns that may be NULL, by table.
var nullable = map[string]string{
	"subscribers":   "id locale time_zone attributes subscriber parts flags",
	"subscriptions": "filter rule id params data ended_at ended_seq reason title description",
	"audit":         "detail",
}

func value(r *rand.Rand, t *store.Table, c store.Column, at, row int) any {
	key := at < t.Key
	if !key && r.IntN(3) == 0 && strings.Contains(" "+nullable[t.Name]+" ", " "+c.Name+" ") {
		return nil
	}
	switch c.Kind {
	case store.IntColumn:
		if at == t.Key-1 {
			return int64(row) * 3 // ascending, so that keys differ
		}
		if key {
			return int64(row % 7)
		}
		switch {
		case c.Name == "deleted": // a boolean of PostgreSQL
			return r.Int64N(2)
		case strings.HasSuffix(c.Name, "at"):
			return r.Int64() - 1<<62
		}
		return r.Int64N(1 << 15)
	case store.TextColumn:
		if at == t.Key-1 {
			return fmt.Sprintf("key-%03d", row)
		}
		if key {
			return fmt.Sprintf("kind-%02d", row%5)
		}
		return []string{"", "plain", "Grüße, 世界", strings.Repeat("long ", 50)}[r.IntN(4)]
	default:
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if key {
			b = fmt.Appendf(nil, "\x00\xff%08d", row)
		}
		return b
	}
}

// fill inserts rows.
func fill(t *testing.T, part store.Part, table string, rows [][]any) {
	t.Helper()
	if err := insert(t.Context(), part, table, rows); err != nil {
		t.Fatal(err)
	}
}

func insert(ctx context.Context, part store.Part, table string, rows [][]any) error {
	return part.Write(ctx, func(s store.Session) error { return insertIn(s, table, rows) })
}

func insertIn(s store.Session, table string, rows [][]any) error {
	return s.Insert("fill_"+table, len(rows), func(i int, to store.Values) {
		for _, v := range rows[i] {
			switch v := v.(type) {
			case int64:
				to.Int64(v)
			case string:
				to.Text(v)
			case []byte:
				to.Bytes(v)
			default:
				to.Null()
			}
		}
	})
}

// tables are those that a test may fill at will: history_position and the like
// have one row.
func tables(all []store.Table) []store.Table {
	var some []store.Table
	for _, t := range all {
		if t.Only == "" && t.Columns[0].Name != "one" {
			some = append(some, t)
		}
	}
	return some
}

// populate fills all tables of a database.
func populate(t *testing.T, db store.Database, days ...fanfare.Day) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for _, table := range tables(store.ControlTables()) {
		fill(t, db.Control(), table.Name, invent(r, &table, 40))
	}
	for _, table := range tables(store.SessionTables()) {
		fill(t, db.Sessions(), table.Name, invent(r, &table, 40))
	}
	for _, table := range tables(store.MailboxTables()) {
		fill(t, db.Mailboxes(), table.Name, invent(r, &table, 40))
	}
	for _, day := range days {
		fillDay(t, db, day)
	}
}

// fillDay makes a day and fills all tables of it.
func fillDay(t *testing.T, db store.Database, day fanfare.Day) {
	t.Helper()
	part, err := db.Day(t.Context(), day, true)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(day)))
	for _, table := range tables(store.DayTables()) {
		fill(t, part, table.Name, invent(r, &table, 40))
	}
}

// same fails the test where two databases differ.
func same(t *testing.T, a, b move.Side) *move.Report {
	t.Helper()
	report, err := move.Compare(t.Context(), a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A faulty database does to each write of its parts what fault says, by the
// number of the write.
type faulty struct {
	store.Database
	fault func(n int, s store.Session) (store.Session, error)
	n     atomic.Int64
}

func (f *faulty) Control() store.Part { return &faultyPart{f.Database.Control(), f} }

func (f *faulty) Sessions() store.Part { return &faultyPart{f.Database.Sessions(), f} }

func (f *faulty) Mailboxes() store.Part { return &faultyPart{f.Database.Mailboxes(), f} }

func (f *faulty) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	p, err := f.Database.Day(ctx, of, create)
	return &faultyPart{p, f}, err
}

type faultyPart struct {
	store.Part
	of *faulty
}

func (p *faultyPart) Write(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Write(ctx, p.faulted(fn))
}

func (p *faultyPart) Erase(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Erase(ctx, p.faulted(fn))
}

func (p *faultyPart) faulted(fn func(store.Session) error) func(store.Session) error {
	return func(s store.Session) error {
		s, err := p.of.fault(int(p.of.n.Add(1)), s)
		if err != nil {
			return err
		}
		return fn(s)
	}
}

var errFault = errors.New("the cable was pulled")
