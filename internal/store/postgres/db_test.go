package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const today fanfare.Day = 20777 // 2026-11-20

func open(t *testing.T, url string, options Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// opened is a database of the test's own, and the part of a day in it.
func opened(t *testing.T) (*DB, store.Part) {
	t.Helper()
	db := open(t, pgtest.Database(t), Options{Durability: store.Relaxed})
	part, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	return db, part
}

// bindAttempts gives the attempts of a manifest from a position on.
func bindAttempts(manifest, from int64) func(int, store.Values) {
	return func(i int, to store.Values) {
		to.Int64(manifest)
		to.Int64(from + int64(i))
		for _, v := range []int64{1, 2, 250, 1_700_000_000_000_000_000, 0} {
			to.Int64(v)
		}
		to.Text("2.0.0 queued as 4F2A")
		to.Text("mx.example.org")
		to.Text(fmt.Sprintf("someone-%d@example.org", i))
	}
}

func record(part store.Part, manifest, from int64, n int) error {
	return part.Write(context.Background(), func(s store.Session) error {
		return s.Insert("attempts_insert", n, bindAttempts(manifest, from))
	})
}

// positions are those that a manifest has attempts of.
func positions(t *testing.T, part store.Part, manifest int64) (found []int64) {
	t.Helper()
	err := part.Read(t.Context(), func(s store.Session) error {
		return s.Each("latest", func(r store.Row) error {
			found = append(found, r.Int64(0))
			return nil
		}, manifest, int64(0), int64(1<<31))
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnInsertOfAnyNumberOfRowsKeepsEachOnce(t *testing.T) {
	_, part := opened(t)
	for i, n := range []int{1, 2, 3, 42, 63, 64, 65, 127, 128, 129, 2000, 2001, 5000} {
		manifest := int64(i + 1)
		for range 2 { // the key makes the second a repetition
			if err := record(part, manifest, 7, n); err != nil {
				t.Fatalf("%d rows: %v", n, err)
			}
		}
		found := positions(t, part, manifest)
		if len(found) != n || found[0] != 7 || found[n-1] != int64(n+6) {
			t.Errorf("of %d rows there are %d", n, len(found))
		}
	}
}

// TestRowsThatAreThereAlreadyStay writes rows of which half have a key that is
// taken, by one statement and by COPY. The function runs twice for these alone.
func TestRowsThatAreThereAlreadyStay(t *testing.T) {
	_, part := opened(t)
	for _, n := range []int{2, 2 * copyRows} {
		manifest := int64(n)
		for _, step := range []struct{ from, runs int }{{0, 1}, {n / 2, 2}, {2 * n, 1}} {
			runs := 0
			err := part.Write(t.Context(), func(s store.Session) error {
				runs++
				return s.Insert("attempts_insert", n, bindAttempts(manifest, int64(step.from)))
			})
			if err != nil || runs != step.runs {
				t.Errorf("%d rows from %d on: %d runs, %v", n, step.from, runs, err)
			}
		}
		var address string
		err := part.Read(t.Context(), func(s store.Session) error {
			return s.Each("attempts", func(r store.Row) error {
				address = r.Text(8)
				return nil
			}, manifest, int64(n/2), int64(n/2+1))
		})
		if want := fmt.Sprintf("someone-%d@example.org", n/2); err != nil || address != want {
			t.Errorf("of %d rows the first that came twice has %q, want %q (%v)", n, address, want, err)
		}
		if found := positions(t, part, manifest); len(found) != n/2*3+n {
			t.Errorf("there are %d rows of %d", len(found), n/2*3+n)
		}
	}
}

func TestAFailedTransactionIsRolledBackAndItsConnectionReused(t *testing.T) {
	db, part := opened(t)
	mine := errors.New("mine")
	for name, fn := range map[string]func(store.Session) error{
		"an error of the caller": func(s store.Session) error {
			if err := s.Insert("attempts_insert", 3, bindAttempts(1, 0)); err != nil {
				return err
			}
			return mine
		},
		"an error of a row function": func(s store.Session) error {
			if err := s.Insert("attempts_insert", 3, bindAttempts(1, 0)); err != nil {
				return err
			}
			return s.Each("latest", func(store.Row) error { return mine }, int64(1), int64(0), int64(9))
		},
	} {
		if err := part.Write(t.Context(), fn); !errors.Is(err, mine) || fanfare.CodeOf(err) != fanfare.Internal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = part.Write(t.Context(), func(s store.Session) error {
			if err := s.Insert("attempts_insert", 3, bindAttempts(1, 0)); err != nil {
				return err
			}
			panic("mine")
		})
	}()
	// A mistake that the server finds, kept to itself by the function.
	err := db.Control().Write(t.Context(), func(s store.Session) error {
		for range 2 {
			_ = s.Run("filters_insert", int64(1), "event.a == 1")
		}
		_ = s.Each("change_seq", func(store.Row) error { return nil })
		return nil
	})
	if fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("a refused statement: got %v", err)
	}
	if found := positions(t, part, 1); len(found) != 0 {
		t.Errorf("kept: %v", found)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Error(err)
	}
}

func TestAStatementWithinTheRowsOfAnotherIsRefused(t *testing.T) {
	_, part := opened(t)
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context, func(store.Session) error) error{"Write": part.Write, "Read": part.Read, "Snapshot": part.Snapshot} {
		var inner error
		rows := 0
		err := run(t.Context(), func(s store.Session) error {
			return s.Each("latest", func(store.Row) error {
				rows++
				inner = s.Each("due_next", func(store.Row) error { return nil })
				return nil
			}, int64(1), int64(0), int64(9))
		})
		if err != nil || inner == nil || rows != 3 {
			t.Errorf("%s: %v, within: %v, %d rows", name, err, inner, rows)
		}
	}
}

func TestASecondServerIsRefusedWhileTheFirstLives(t *testing.T) {
	url := pgtest.Database(t)
	db := open(t, url, Options{ApplicationName: "the first"})
	_, err := Open(t.Context(), url, Options{})
	if fanfare.CodeOf(err) != fanfare.Conflict {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, url, Options{})
}
