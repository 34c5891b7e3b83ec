package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
)

// The NATS server tells its consumers of a message only after it has answered the append.
func TestAwaitMatchedIncludesTheLatestAppend(t *testing.T) {
	b := open(t, Options{})
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	var matched atomic.Uint64
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			l, err := q.Next(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			matched.Add(1)
			if err := l.Done(); err != nil {
				t.Error(err)
			}
		}
	}()
	const rounds = 100
	early := 0
	for i := range uint64(rounds) {
		appendGroups(t, b, fanfare.Normal, 1)
		if err := b.AwaitMatched(t.Context()); err != nil {
			t.Fatal(err)
		}
		if matched.Load() < i+1 {
			early++
		}
	}
	if early > 0 {
		t.Errorf("%d of %d times it did not wait", early, rounds)
	}
	stop()
	<-over
}
