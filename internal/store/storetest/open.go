// Package storetest is the suite that every database passes, and the database
// that other packages' tests stand on.
//
// The suite has three layers: the contract of package store, whatever a driver
// makes of it; the promises of what is kept over it (packages control and
// deliveries); and models in memory, against which random operations are held,
// with equal answers from all databases. Each of its tests runs on each driver.
//
// A test of another package opens the database that FANFARE_TEST_DB names:
// sqlite (as without it), or postgres, which package pgtest starts.
package storetest

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// Open opens a new database, which is closed and gone at the end of the test.
func Open(tb pgtest.TB) store.Database {
	tb.Helper()
	return OpenAt(tb, Place(tb))
}

// Place returns where a new database is: a directory, or a URL. It lasts until
// the end of the test.
func Place(tb pgtest.TB) string {
	tb.Helper()
	if url := pgtest.Chosen(tb); url != "" {
		return url
	}
	dir, err := os.MkdirTemp("", "fanfare-store-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("remove the database: %v", err)
		}
	})
	return dir
}

// OpenAt opens the database at a place, again if it was closed. It is closed at
// the end of the test, if it is not by then.
func OpenAt(tb pgtest.TB, place string) store.Database {
	tb.Helper()
	db, err := open(context.Background(), place)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close the database: %v", err)
		}
	})
	return db
}

// patience is how long a database may be silent that no test makes silent: a busy machine is no outage.
const patience = 30 * time.Second

func open(ctx context.Context, place string) (store.Database, error) {
	if strings.Contains(place, "://") {
		return postgres.Open(ctx, place, postgres.Options{Durability: store.Relaxed, Logger: slog.New(slog.DiscardHandler), AnswerLimit: patience})
	}
	return sqlite.Open(ctx, place, store.Relaxed)
}
