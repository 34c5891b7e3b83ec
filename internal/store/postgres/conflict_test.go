package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// another changes another row than count.
func another(s store.Session) error {
	return s.Each("history_new", func(store.Row) error { return nil })
}

func TestOfTwoTransactionsInADeadlockBothAreKept(t *testing.T) {
	db, part := opened(t)
	var both, first sync.WaitGroup
	first.Add(2)
	var attempts [2]int
	for i, order := range [][2]func(store.Session) error{{count, another}, {another, count}} {
		both.Go(func() {
			err := part.Write(t.Context(), func(s store.Session) error {
				if err := order[0](s); err != nil {
					return err
				}
				if err := s.Each("due_next", func(store.Row) error { return nil }); err != nil { // so that it ran
					return err
				}
				if attempts[i]++; attempts[i] == 1 {
					first.Done()
					first.Wait() // the other has its first row too
				}
				return order[1](s)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if retries := db.Stats().Retries; retries == 0 || int64(attempts[0]+attempts[1]) != 2+retries {
		t.Errorf("%d and %d attempts, %d retries", attempts[0], attempts[1], db.Stats().Retries)
	}
	if got := counted(t, part); got != 2 {
		t.Errorf("counted %d, want 2", got)
	}
}

func TestAStatementThatTakesTooLongIsEndedAndTheNextRuns(t *testing.T) {
	at := pgtest.Database(t)
	db := open(t, at, Options{StatementTimeout: 5 * time.Second}) // what the others need under load
	days, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	slow := *days.(*part)
	slow.known = catalog{"slow": newStatement("slow", "SELECT pg_sleep(60)::text", false)}
	err = slow.Write(t.Context(), func(s store.Session) error { return s.Run("slow") })
	if fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
	if err := days.Write(t.Context(), count); err != nil {
		t.Errorf("the next: %v", err)
	}
	// A reader is given up by its caller.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = slow.Read(ctx, func(s store.Session) error { return s.Each("slow", func(store.Row) error { return nil }) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reader: got %v", err)
	}
	if found := positions(t, days, 1); len(found) != 0 {
		t.Error(found)
	}
}

// While a failover goes on the server may find a primary that does not write yet.
func TestADatabaseThatDoesNotWriteIsWaitedForAndNamed(t *testing.T) {
	at := pgtest.Database(t)
	db := open(t, at, Options{RetryFor: 300 * time.Millisecond})
	part, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	readOnly := func(on string) {
		t.Helper()
		_, err := other.Exec(t.Context(), "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = "+on+"', current_database()); END$$")
		if err != nil {
			t.Fatal(err)
		}
	}
	readOnly("on")
	db.recording.Reset()
	err = part.Write(t.Context(), count)
	if fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
	if db.Stats().Retries == 0 {
		t.Error("it was not waited for")
	}
	if _, err := other.Exec(t.Context(), "SET default_transaction_read_only = off"); err != nil {
		t.Fatal(err)
	}
	readOnly("off")
	if err := part.Write(t.Context(), count); err != nil {
		t.Errorf("when it writes again: %v", err)
	}
}
