package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func TestTheNextWriterCreatesADayThatAFailoverLost(t *testing.T) {
	at := pgtest.Database(t)
	var log bytes.Buffer
	db := open(t, at, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	part, err := db.Day(t.Context(), aDay, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	other := connect(t, at)
	if err := removeDay(t.Context(), other, aDay); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return record(part, 2, 0, 3) },
		func() error { return part.Write(t.Context(), count) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if lost, kept := positions(t, part, 1), positions(t, part, 2); len(lost) != 0 || len(kept) != 3 {
		t.Errorf("of before %v, of afterwards %v", lost, kept)
	}
	if days := daysOf(t, other); !slices.Equal(days, []fanfare.Day{aDay}) {
		t.Errorf("days %v", days)
	}
	if n := strings.Count(log.String(), "were created again"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
}

func TestARemovedDayStaysRemovedDuringWrites(t *testing.T) {
	at := pgtest.Database(t)
	db := open(t, at, Options{})
	other := connect(t, at)
	for range 2 {
		part, err := db.Day(t.Context(), aDay, true)
		if err != nil {
			t.Fatal(err)
		}
		var writing sync.WaitGroup
		begun := make(chan struct{}, 3)
		for manifest := range cap(begun) {
			writing.Go(func() {
				for from := int64(0); ; from += 3 {
					if err := record(part, int64(manifest), from, 3); err != nil {
						if fanfare.CodeOf(err) != fanfare.NotFound {
							t.Errorf("got %v", err)
						}
						return
					}
					if from == 0 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range cap(begun) {
			<-begun
		}
		if err := db.RemoveDay(t.Context(), aDay); err != nil {
			t.Error(err)
		}
		writing.Wait()
		if days := daysOf(t, other); len(days) != 0 {
			t.Fatalf("days %v", days)
		}
	}
}

// A server that is frozen at midnight takes what is sent, and says nothing.
func TestADayThatCannotBeMadeHoldsUpNobodyElse(t *testing.T) {
	server := pgtest.Start(t, pgtest.Quick...)
	proxy := server.Proxy(server.URL)
	db := open(t, proxy.URL+"&connect_timeout=1", Options{RetryFor: time.Nanosecond})
	if _, err := db.Day(t.Context(), aDay, true); err != nil {
		t.Fatal(err)
	}
	proxy.Silence()
	made := make(chan error, 1)
	go func() {
		_, err := db.Day(t.Context(), later, true)
		made <- err
	}()
	for len(db.making) == 0 {
		if len(made) > 0 {
			t.Fatalf("made beside the silence: %v", <-made)
		}
	}
	if days, err := db.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{aDay}) {
		t.Errorf("days %v, %v", days, err)
	}
	if _, err := db.Day(t.Context(), aDay, true); err != nil {
		t.Error(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := db.Day(gone, later, true); !errors.Is(err, context.Canceled) {
		t.Errorf("who had gone: %v", err)
	}
	if len(made) > 0 {
		t.Fatal("the others waited for it")
	}
	select {
	case err := <-made:
		if fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it was waited for without end")
	}
	proxy.Heal()
	proxy.Cut()
	eventually(t, "it is back", func() bool { return !db.Stats().Away })
	if _, err := db.Day(t.Context(), later, true); err != nil {
		t.Error(err)
	}
}
