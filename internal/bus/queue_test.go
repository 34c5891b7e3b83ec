package bus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestEveryMessageIsHandedOutOnceToManyTakers(t *testing.T) {
	const n = 1000
	b := open(t, Options{})
	q := batchQueue(t, b)
	if again := batchQueue(t, b); again != q {
		t.Error("a second call gives another queue")
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	publish(t, b, texts...)
	taken := make(chan string, n)
	for range 8 {
		go func() {
			for {
				l, err := q.Next(t.Context())
				if err != nil {
					return
				}
				if err := l.Done(); err != nil {
					t.Error(err)
				}
				taken <- string(l.Data)
			}
		}()
	}
	seen := map[string]int{}
	for range n {
		seen[<-taken]++
	}
	if len(seen) != n {
		t.Errorf("%d different messages of %d", len(seen), n)
	}
	settled(t, b, Backlog{})
	if len(b.leases) != 0 {
		t.Errorf("%d leases are kept of messages that are done", len(b.leases))
	}
}

func TestPollReturnsOnlyPendingMessages(t *testing.T) {
	b := open(t, Options{})
	q := batchQueue(t, b)
	if l, err := q.Poll(); l != nil || err != nil {
		t.Errorf("an empty queue gave %+v, %v", l, err)
	}
	publish(t, b, "one", "two")
	take(t, q, "one")
	limit := time.After(2 * time.Minute)
	for {
		l, err := q.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if l != nil {
			if string(l.Data) != "two" {
				t.Errorf("got %q", l.Data)
			}
			break
		}
		select {
		case <-limit:
			t.Fatal("what waits does not become ready")
		default:
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Poll(); !errors.Is(err, ErrClosed) {
		t.Errorf("Poll of a closed bus: %v", err)
	}
	if _, err := q.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Next of a closed bus: %v", err)
	}
	if _, err := b.Batches(t.Context(), 8, fanfare.Bulk); !errors.Is(err, ErrClosed) {
		t.Errorf("a queue of a closed bus: %v", err)
	}
}

func TestAQueueWhoseConsumerWasDeletedIsOpenedAgain(t *testing.T) {
	b := open(t, Options{})
	q := batchQueue(t, b)
	publish(t, b, "one")
	if err := take(t, q, "one").Done(); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{})
	name := consumerName(batchesSubject(7, fanfare.Bulk))
	for waiting := 0; waiting == 0; { // for it to ask for the next message
		consumer, err := b.batches.Consumer(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		waiting = consumer.CachedInfo().NumWaiting
	}
	if err := b.batches.DeleteConsumer(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "two")
	take(t, q, "two")
}

func TestLanesAndChannelsAreQueuesOfTheirOwn(t *testing.T) {
	b := open(t, Options{})
	var batches []Batch
	for channel := range uint16(3) {
		for _, lane := range fanfare.Lanes {
			batches = append(batches, Batch{channel, lane, fmt.Appendf(nil, "%d %s", channel, lane)})
		}
	}
	if err := b.PublishBatches(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	for _, lane := range fanfare.Lanes {
		appendGroups(t, b, lane, 1)
	}
	for _, want := range batches {
		q, err := b.Batches(t.Context(), want.Channel, want.Lane)
		if err != nil {
			t.Fatal(err)
		}
		take(t, q, string(want.Data))
	}
	for _, lane := range fanfare.Lanes {
		q, err := b.Events(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		take(t, q, fmt.Sprintf("%s 0", lane))
	}
}

func TestBacklogCountsUnacknowledgedMessages(t *testing.T) {
	b := open(t, Options{})
	events, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	q := batchQueue(t, b)
	appendGroups(t, b, fanfare.Normal, 5)
	publish(t, b, "a", "b", "c")
	settled(t, b, Backlog{EventGroups: 5, Batches: 3})
	group, batch := take(t, events, "normal 0"), take(t, q, "a")
	settled(t, b, Backlog{EventGroups: 5, Batches: 3})
	if err := errors.Join(group.Done(), batch.Done()); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{EventGroups: 4, Batches: 2})
}
