package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// dumped is a database with two days, and a connection that dumps it: that holds
// all tables for as long as it takes.
func dumped(t *testing.T, options Options) (*DB, *pgx.Conn) {
	t.Helper()
	at := pgtest.Database(t)
	db := open(t, at, options)
	for _, day := range []fanfare.Day{aDay, later} {
		if _, err := db.Day(t.Context(), day, true); err != nil {
			t.Fatal(err)
		}
	}
	dump := connect(t, at)
	execute(t, dump, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	execute(t, dump, "LOCK TABLE frozen IN ACCESS SHARE MODE")
	return db, dump
}

func recordOn(t *testing.T, db *DB, of fanfare.Day) {
	t.Helper()
	part, err := db.Day(t.Context(), of, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Error(err)
	}
}

func TestADayThatCannotBeRemovedYetHoldsUpNoOther(t *testing.T) {
	db, dump := dumped(t, Options{RetryFor: time.Minute})
	removed := make(chan error, 1)
	go func() { removed <- db.RemoveDay(t.Context(), aDay) }()
	for value[int](t, dump, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
		if len(removed) > 0 {
			t.Fatalf("removed beside the dump: %v", <-removed)
		}
	}
	recordOn(t, db, later)
	if days, err := db.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{later, aDay}) {
		t.Errorf("days %v, %v", days, err)
	}
	if len(removed) > 0 {
		t.Fatalf("the others waited for it: %v", <-removed)
	}
	execute(t, dump, "COMMIT")
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if _, err := db.Day(t.Context(), aDay, false); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestADayThatWasNotRemovedIsAsBefore(t *testing.T) {
	db, _ := dumped(t, Options{RetryFor: time.Nanosecond})
	if err := db.RemoveDay(t.Context(), aDay); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("got %v", err)
	}
	recordOn(t, db, aDay)
}
