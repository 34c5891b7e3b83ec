package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// open opens a bus that is closed with the test.
func open(t testing.TB, options Options) *Bus {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if options.Lease == 0 {
		options.Lease = time.Minute
	}
	options.Logger = slog.New(slog.DiscardHandler)
	b, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func batchQueue(t testing.TB, b *Bus) *Queue {
	t.Helper()
	q, err := b.Batches(t.Context(), 7, fanfare.Bulk)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// publish puts batches into the queue of batchQueue.
func publish(t testing.TB, b *Bus, texts ...string) {
	t.Helper()
	batches := make([]Batch, len(texts))
	for i, text := range texts {
		batches[i] = Batch{Channel: 7, Lane: fanfare.Bulk, Data: []byte(text)}
	}
	if err := b.PublishBatches(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
}

func appendGroups(t testing.TB, b *Bus, lane fanfare.Lane, n int) (seqs []uint64) {
	t.Helper()
	for i := range n {
		seq, err := b.AppendEvents(t.Context(), lane, fmt.Appendf(nil, "%s %d", lane, i))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	return seqs
}

// settled waits until the bus has heard all that was said to it.
func settled(t testing.TB, b *Bus, want Backlog) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		backlog, err := b.Backlog(limit)
		if err != nil {
			t.Fatalf("the backlog is %+v and not %+v: %v", backlog, want, err)
		}
		if backlog == want {
			return
		}
	}
}

// nothingWithin checks that a queue gives nothing for a time.
func nothingWithin(t testing.TB, q *Queue, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if l, err := q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %+v, %v", l, err)
	}
}
