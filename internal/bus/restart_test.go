package bus

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// restart opens the bus on the files of an earlier run.
func restart(t *testing.T, dir string) (*Bus, *Queue) {
	t.Helper()
	b, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	return b, q
}

// take makes sure that a group comes next, and not only after its lease. Groups that were done shortly before a
// restart may come again before it: a NATS server that stops waits only 100 ms until an acknowledgement is on the disk.
func take(t *testing.T, q *Queue, want string, again ...string) *Lease {
	t.Helper()
	for {
		l, err := q.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if string(l.Data) == want {
			return l
		}
		if len(again) == 0 || string(l.Data) != again[0] {
			t.Fatalf("got %q, want %q", l.Data, want)
		}
		if again = again[1:]; l.Done() != nil {
			t.Fatal("the bus is closed")
		}
	}
}

// done takes the oldest group off and waits until the bus has processed the acknowledgement.
func done(t *testing.T, b *Bus, l *Lease) {
	t.Helper()
	if err := l.Done(); err != nil {
		t.Fatal(err)
	}
	for {
		consumer, err := b.events.Consumer(t.Context(), consumerName(eventsSubject(fanfare.Normal)))
		if err != nil {
			t.Fatal(err)
		}
		if consumer.CachedInfo().AckFloor.Stream >= l.Seq {
			return
		}
	}
}

func TestARestartBeginsWhereTheOneBeforeEnded(t *testing.T) {
	dir := t.TempDir()
	b, q := restart(t, dir)
	for _, group := range []string{"one", "two"} {
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte(group)); err != nil {
			t.Fatal(err)
		}
	}
	done(t, b, take(t, q, "one"))
	take(t, q, "two") // and does nothing with it
	b.Close()

	b, q = restart(t, dir)
	done(t, b, take(t, q, "two", "one"))
	b.Close()

	// Now nothing is under way, and the consumer is not the one of the first run.
	b, q = restart(t, dir)
	if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte("three")); err != nil {
		t.Fatal(err)
	}
	take(t, q, "three", "two")
}

func TestAConsumerThatAKillLeftHalfMadeHoldsNothingBack(t *testing.T) {
	dir := t.TempDir()
	b, q := restart(t, dir)
	for _, group := range []string{"one", "two"} {
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte(group)); err != nil {
			t.Fatal(err)
		}
	}
	done(t, b, take(t, q, "one"))
	take(t, q, "two") // and does nothing with it
	b.Close()
	halves, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "EVENTS", "obs", "*", "meta.sum"))
	if err != nil || len(halves) != 1 {
		t.Fatalf("the server keeps its consumers elsewhere: %q, %v", halves, err)
	}
	if err := os.Remove(halves[0]); err != nil { // it is written last
		t.Fatal(err)
	}

	b, q = restart(t, dir)
	take(t, q, "two", "one")
	b.Close()

	_, q = restart(t, dir)
	take(t, q, "two", "one")
}

// A loss of power can undo the removal of a batch, although the consumer has stored that the batch is done.
func TestABatchWhoseRemovalWasUndoneIsDeliveredOnceMore(t *testing.T) {
	dir, saved := t.TempDir(), t.TempDir()
	b := open(t, Options{Dir: dir})
	q := batchQueue(t, b)
	publish(t, b, "one")
	l := take(t, q, "one")
	messages := filepath.Join(dir, "jetstream", "$G", "streams", batchesStream, "msgs")
	copyOf := func(to, from string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	copyOf(saved, messages)
	if err := l.Done(); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{})
	name := consumerName(batchesSubject(7, fanfare.Bulk))
	for floor := uint64(0); floor == 0; {
		consumer, err := b.batches.Consumer(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		floor = consumer.CachedInfo().AckFloor.Stream
	}
	b.Close()
	copyOf(messages, saved)

	b = open(t, Options{Dir: dir})
	q = batchQueue(t, b)
	if err := take(t, q, "one").Done(); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{})
}
