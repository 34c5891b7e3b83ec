package postgres

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const (
	aDay  fanfare.Day = 20777 // 2026-11-20
	later             = aDay + 1
)

func daysOf(t *testing.T, conn *pgx.Conn) []fanfare.Day {
	t.Helper()
	days, err := listDays(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

// tablesOf counts the tables that a day has.
func tablesOf(t *testing.T, conn *pgx.Conn, of fanfare.Day) int {
	t.Helper()
	return value[int](t, conn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'fanfare' AND tablename LIKE '%\\_' || $1", of.String())
}

func sqlState(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

func TestConcurrentCallersCreateADayOnce(t *testing.T) {
	at := pgtest.Database(t)
	conn := connect(t, at)
	if err := migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		other := connect(t, at)
		wg.Go(func() {
			if err := createDay(t.Context(), other, aDay); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := createDay(t.Context(), conn, later); err != nil {
		t.Fatal(err)
	}
	if days := daysOf(t, conn); !slices.Equal(days, []fanfare.Day{later, aDay}) {
		t.Fatalf("days %v", days)
	}
	each := tablesOf(t, conn, later)
	if each == 0 || tablesOf(t, conn, aDay) != each {
		t.Fatalf("%d tables of one day, %d of the other", tablesOf(t, conn, aDay), each)
	}
	execute(t, conn, "INSERT INTO switches (day, seq, channel, state, reason, at) VALUES ('2026-11-20', 1, 0, 'paused', '', 1)")
	execute(t, conn, "INSERT INTO controls (day, seq, name, value, at) VALUES ('2026-11-20', 1, 'rate', '1/s', 1)")
	if err := removeDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	if days := daysOf(t, conn); !slices.Equal(days, []fanfare.Day{later}) {
		t.Errorf("days %v", days)
	}
	if n := tablesOf(t, conn, aDay); n != 0 {
		t.Errorf("%d tables were left", n)
	}
	for _, table := range []string{"switches", "controls", "counters", "history_position"} {
		if n := value[int](t, conn, "SELECT count(*) FROM "+table+" WHERE day = '2026-11-20'"); n != 0 {
			t.Errorf("%d rows were left in %s", n, table)
		}
	}
	if n := tablesOf(t, conn, later); n != each {
		t.Errorf("the other day has %d tables of %d", n, each)
	}
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, conn, "SELECT count(*) FROM switches"); n != 0 {
		t.Errorf("a day that was made again has %d switches of the old one", n)
	}
}

func TestRowsOfADayAreVisibleInTheTablesOfAllDays(t *testing.T) {
	conn := migrated(t)
	for i, day := range []fanfare.Day{aDay, later} {
		if err := createDay(t.Context(), conn, day); err != nil {
			t.Fatal(err)
		}
		execute(t, conn, "INSERT INTO frozen_"+day.String()+" (id, seq) VALUES (1, $1)", i)
	}
	if n := value[int](t, conn, "SELECT count(*) FROM frozen"); n != 2 {
		t.Errorf("%d rows of 2", n)
	}
	if seq := value[int](t, conn, "SELECT seq FROM frozen WHERE day = '2026-11-21'"); seq != 1 {
		t.Errorf("the row of the other day: %d", seq)
	}
}

// An operator's transaction that was left open must not stop the intake at
// midnight.
func TestADayIsMadeWhileSomebodyHoldsTheTablesOfAllDays(t *testing.T) {
	at := pgtest.Database(t)
	conn, operator := connect(t, at), connect(t, at)
	if err := migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	execute(t, operator, "BEGIN")
	execute(t, operator, "LOCK TABLE attempts IN SHARE UPDATE EXCLUSIVE MODE") // as ANALYZE does
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	insert := func(day fanfare.Day) {
		execute(t, conn, "INSERT INTO frozen_"+day.String()+" (id, seq) VALUES (1, 1)")
	}
	insert(aDay)
	all := "SELECT count(*) FROM frozen"
	if n := value[int](t, conn, all); n != 0 {
		t.Fatalf("the day is attached, so the lock was none: %d rows", n)
	}
	execute(t, operator, "COMMIT")
	if err := createDay(t.Context(), conn, later); err != nil {
		t.Fatal(err)
	}
	insert(later)
	if n := value[int](t, conn, all); n != 2 {
		t.Errorf("%d rows of 2: the day that was left over was not caught up with", n)
	}
	if n := value[int](t, conn, "SELECT count(*) FROM pg_constraint WHERE conname = 'of_day'"); n != 0 {
		t.Errorf("%d tables check their day twice", n)
	}
}

// A reader of a day keeps its snapshot; afterwards the day is removed as a whole.
func TestRemoveDayFailsWhileTheDayIsRead(t *testing.T) {
	at := pgtest.Database(t)
	conn, reader := connect(t, at), connect(t, at)
	if err := migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	before := tablesOf(t, conn, aDay)
	execute(t, reader, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	execute(t, reader, "SELECT * FROM history_20261120")
	if err := removeDay(t.Context(), conn, aDay); sqlState(err) != "55P03" {
		t.Fatalf("got %v", err)
	}
	if n := tablesOf(t, conn, aDay); n != before || len(daysOf(t, conn)) != 1 {
		t.Errorf("%d tables of %d are left, days %v", n, before, daysOf(t, conn))
	}
	execute(t, reader, "COMMIT")
	if err := removeDay(t.Context(), conn, aDay); err != nil {
		t.Error(err)
	}
}
