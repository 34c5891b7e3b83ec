package storetest_test

import (
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// drivers are the databases that the suite is run against, and where a new one
// of each is.
var drivers = map[string]func(testing.TB) string{
	"sqlite":   func(tb testing.TB) string { return tb.TempDir() },
	"postgres": func(tb testing.TB) string { return pgtest.Prepared(tb) },
}

// onEach runs a test on each driver, at the place of a new database.
func onEach(t *testing.T, test func(t *testing.T, place string)) {
	t.Helper()
	for name, place := range drivers {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

// today is the day whose part most tests write.
const today = fanfare.Day(20777)

// onEachDay is onEach with a part of a day that is new, and the database that
// has it.
func onEachDay(t *testing.T, test func(t *testing.T, db store.Database, day store.Part)) {
	t.Helper()
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		test(t, db, partOf(t, db, today))
	})
}

// partOf is the part of a day, made if it is not there.
func partOf(t testing.TB, db store.Database, of fanfare.Day) store.Part {
	t.Helper()
	day, err := db.Day(t.Context(), of, true)
	if err != nil {
		t.Fatal(err)
	}
	return day
}
