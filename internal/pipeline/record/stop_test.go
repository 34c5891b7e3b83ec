package record

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"fanfare.dev/fanfare"
)

func TestStopKeepsWhatWaitsAndRefusesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		hold := make(chan struct{})
		b.store.set(func(s *memoryStore) { s.hold = hold })
		b.Expect() // of a connection that never answers
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() { b.record(t, event, i, 1, fanfare.Accepted) })
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { b.Stop(); close(stopped) }()
		synctest.Wait()
		for name, late := range map[string]error{
			"Record":         b.Record(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordExpected": b.RecordExpected(entryOf(event, 99, 1, fanfare.Accepted), nil),
			"RecordAll":      b.RecordAll([]fanfare.Entry{*entryOf(event, 99, 1, fanfare.Accepted)}),
		} {
			if fanfare.CodeOf(late) != fanfare.Unavailable {
				t.Errorf("%s after Stop: %v", name, late)
			}
		}
		select {
		case <-stopped:
			t.Error("stopped before what waited was kept")
		default:
		}
		b.store.set(func(s *memoryStore) { s.hold = nil })
		close(hold)
		<-stopped
		callers.Wait()
		if n := len(b.store.times()); n != 50 {
			t.Errorf("%d entries are kept, want 50", n)
		}
		b.Stop()
	})
}

func TestStopGivesUpOnAStoreThatRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		refused := errors.New("broken")
		b.store.set(func(s *memoryStore) { s.refuse = refused })
		got := make(chan error, 2)
		go func() { got <- b.Record(entryOf(event, 1, 1, fanfare.Accepted), nil) }()
		synctest.Wait()
		go func() { got <- b.RecordAll([]fanfare.Entry{*entryOf(event, 2, 1, fanfare.Accepted)}) }()
		synctest.Wait()
		b.Stop()
		for range cap(got) {
			if err := <-got; !errors.Is(err, refused) {
				t.Errorf("a caller got %v", err)
			}
		}
	})
}

func TestStopWaitsForWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, store := make(chan struct{}), &memoryStore{}
		r := Start(Options{Store: store, Clock: testClock{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), OnAllFailed: func(fanfare.EventRef) { <-hold }})
		r.Begin(event, 500, fanfare.Progress{})
		for i := range sourAfter {
			if err := r.Record(entryOf(event, i, 1, fanfare.Failed), nil); err != nil {
				t.Fatal(err)
			}
		}
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stopped while somebody was being told")
		default:
		}
		close(hold)
		<-stopped
	})
}
