package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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

func TestWhatWasAppendedIsThereAfterARestartWithItsSequence(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("synced: %v", sync), func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, Options{Dir: dir, Sync: sync})
			seqs := appendGroups(t, b, fanfare.Normal, 3)
			publish(t, b, "one", "two")
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("a second time: %v", err)
			}

			b = open(t, Options{Dir: dir, Sync: sync})
			group, kept, err := b.EventGroup(t.Context(), seqs[1])
			if err != nil || string(group) != "normal 1" || time.Since(kept) > time.Minute {
				t.Errorf("got %q of %v, %v", group, kept, err)
			}
			if group, _, err := b.EventGroup(t.Context(), 0); group != nil || err != nil {
				t.Errorf("sequence 0, which is none: %q %v", group, err)
			}
			for _, none := range []uint64{0, seqs[2] + 1} {
				if group, _, err := b.EventGroup(t.Context(), none); group != nil || err != nil {
					t.Errorf("a sequence that is not there: got %q, %v", group, err)
				}
			}
			if next := appendGroups(t, b, fanfare.Urgent, 1); next[0] != seqs[2]+1 {
				t.Errorf("the next sequence is %d after %d", next[0], seqs[2])
			}
			q := batchQueue(t, b)
			take(t, q, "one")
			take(t, q, "two")
		})
	}
}

func TestWhatWasTakenAndNotDoneComesAtOnceAfterARestart(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir, Lease: time.Hour})
	publish(t, b, "zero", "one", "two", "three")
	q := batchQueue(t, b)
	for i := range 3 {
		l := take(t, q, []string{"zero", "one", "two"}[i])
		if i == 1 {
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled(t, b, Backlog{Batches: 3})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, Options{Dir: dir, Lease: time.Hour})
	q = batchQueue(t, b)
	for _, want := range []string{"zero", "two", "three"} {
		if err := take(t, q, want).Done(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, b, Backlog{})
	nothingWithin(t, q, 50*time.Millisecond)
}

func TestWhatWasGivenBackComesAgainAfterItsDelay(t *testing.T) {
	b := open(t, Options{})
	q := batchQueue(t, b)
	publish(t, b, "at once", "later")
	first, second := take(t, q, "at once"), take(t, q, "later")
	if first.Deliveries != 1 || first.Seq != 1 || second.Seq != 2 {
		t.Errorf("leases %+v and %+v", first, second)
	}
	given := time.Now()
	if err := second.Later(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := first.Later(0); err != nil {
		t.Fatal(err)
	}
	if again := take(t, q, "at once"); again.Deliveries != 2 || again.Seq != first.Seq {
		t.Errorf("the lease is %+v, want the second delivery", again)
	}
	take(t, q, "later")
	if waited := time.Since(given); waited < 300*time.Millisecond {
		t.Errorf("it came again after %v", waited)
	}
}

// TestALeaseIsRenewedWhileItsHolderLives holds a message for several times the
// length of a lease, in hand and lying ready, and then gives it back.
func TestALeaseIsRenewedWhileItsHolderLives(t *testing.T) {
	const lease = time.Second
	b := open(t, Options{Lease: lease})
	q := batchQueue(t, b)
	publish(t, b, "in hand", "ready")
	l := take(t, q, "in hand")
	limit := time.After(3 * lease)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for waiting := true; waiting; {
		select {
		case <-limit:
			waiting = false
		case <-look.C:
			if left := time.Until(l.Until()); left < lease/2 || left > lease {
				t.Fatalf("%v are left of a lease of %v", left, lease)
			}
		}
	}
	ready := take(t, q, "ready")
	if ready.Deliveries != 1 || time.Until(ready.Until()) < lease/2 {
		t.Errorf("what lay ready was delivered %d times and has %v left", ready.Deliveries, time.Until(ready.Until()))
	}
	nothingWithin(t, q, lease/10)
	if err := ready.Done(); err != nil {
		t.Fatal(err)
	}
	if err := l.Later(0); err != nil {
		t.Fatal(err)
	}
	if again := take(t, q, "in hand"); again.Deliveries != 2 {
		t.Errorf("it was delivered %d times, want 2", again.Deliveries)
	}
}

func TestALeaseOfAHolderThatFellSilentRunsOut(t *testing.T) {
	b := open(t, Options{Lease: time.Second})
	q := batchQueue(t, b)
	publish(t, b, "one")
	take(t, q, "one").forget() // nobody renews it
	if again := take(t, q, "one"); again.Deliveries != 2 {
		t.Errorf("it was delivered %d times, want 2", again.Deliveries)
	}
}

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

func TestPollGivesWhatIsHereAndNothingElse(t *testing.T) {
	b := open(t, Options{})
	q := batchQueue(t, b)
	if l, err := q.Poll(); l != nil || err != nil {
		t.Errorf("an empty queue gave %+v, %v", l, err)
	}
	publish(t, b, "one", "two")
	take(t, q, "one")
	limit := time.After(10 * time.Second)
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

func TestANewStreamNumbersFromWhereItIsTold(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir, FirstSeq: 12345})
	if seqs := appendGroups(t, b, fanfare.Normal, 2); !slices.Equal(seqs, []uint64{12345, 12346}) {
		t.Errorf("sequences %v", seqs)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, Options{Dir: dir, FirstSeq: 99999}) // it is not new any more
	if seqs := appendGroups(t, b, fanfare.Normal, 1); !slices.Equal(seqs, []uint64{12347}) {
		t.Errorf("sequences %v", seqs)
	}
}

func TestWhatIsTooLargeIsRefusedInWords(t *testing.T) {
	b := open(t, Options{})
	large := bytes.Repeat([]byte("x"), MaxPayload+1)
	_, err := b.AppendEvents(t.Context(), fanfare.Normal, large)
	if fanfare.CodeOf(err) != fanfare.TooLarge {
		t.Errorf("events: %v", err)
	}
	for _, batches := range [][]Batch{{{7, fanfare.Bulk, large}}, {{7, fanfare.Bulk, []byte("fits")}, {7, fanfare.Bulk, large}}} {
		if err := b.PublishBatches(t.Context(), batches); fanfare.CodeOf(err) != fanfare.TooLarge {
			t.Errorf("%d batches: %v", len(batches), err)
		}
	}
	settled(t, b, Backlog{})
	if _, err := b.AppendEvents(t.Context(), fanfare.Normal, large[:MaxPayload]); err != nil {
		t.Errorf("the largest that fits: %v", err)
	}
}

func TestBacklogCountsWhatIsNotDone(t *testing.T) {
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

func TestReplayVisitsWhatWasKeptSinceATimeInOrder(t *testing.T) {
	b := open(t, Options{})
	visited := func(since time.Time) (seqs []uint64) {
		t.Helper()
		err := b.ReplayEvents(t.Context(), since, func(seq uint64, kept time.Time, group []byte) error {
			if kept.Before(since) || len(group) == 0 {
				t.Errorf("group %d of %v: %q", seq, kept, group)
			}
			seqs = append(seqs, seq)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	if got := visited(time.Time{}); got != nil {
		t.Errorf("an empty stream: %v", got)
	}
	all := appendGroups(t, b, fanfare.Normal, 3)
	all = append(all, appendGroups(t, b, fanfare.Bulk, 2)...)
	_, kept, err := b.EventGroup(t.Context(), all[2])
	if err != nil {
		t.Fatal(err)
	}
	if got := visited(time.Time{}); !slices.Equal(got, all) {
		t.Errorf("since ever: %v, want %v", got, all)
	}
	if got := visited(kept); !slices.Equal(got, all[2:]) {
		t.Errorf("since the third: %v, want %v", got, all[2:])
	}
	if got := visited(time.Now().Add(time.Minute)); got != nil {
		t.Errorf("since the future: %v", got)
	}
	stop := errors.New("enough")
	if err := b.ReplayEvents(t.Context(), time.Time{}, func(uint64, time.Time, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error became %v", err)
	}
}

// TestTrimForgetsOnlyWhatIsMatchedAndOld leaves one group of each lane where it
// is on its way: not taken, taken, and given back.
func TestTrimForgetsOnlyWhatIsMatchedAndOld(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir})
	seqs := appendGroups(t, b, fanfare.Urgent, 4) // 1 to 4
	future := time.Now().Add(time.Minute)
	left := func() (first, n uint64) {
		t.Helper()
		info, err := b.events.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.FirstSeq, info.State.Msgs
	}
	trim := func(before time.Time, first, n uint64) {
		t.Helper()
		if err := b.TrimEvents(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if gotFirst, got := left(); gotFirst != first || got != n {
			t.Errorf("the stream has %d groups from %d on, want %d from %d on", got, gotFirst, n, first)
		}
	}
	trim(future, seqs[0], 4) // nobody has matched anything yet
	queues := map[fanfare.Lane]*Queue{}
	for _, lane := range fanfare.Lanes {
		q, err := b.Events(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		queues[lane] = q
	}
	trim(future, seqs[0], 4)
	for i := range 2 {
		if err := take(t, queues[fanfare.Urgent], fmt.Sprintf("urgent %d", i)).Done(); err != nil {
			t.Fatal(err)
		}
	}
	held := take(t, queues[fanfare.Urgent], "urgent 2")
	settled(t, b, Backlog{EventGroups: 2})
	_, second, err := b.EventGroup(t.Context(), seqs[1])
	if err != nil {
		t.Fatal(err)
	}
	trim(second, seqs[1], 3) // the second is matched, but not old enough
	trim(future, seqs[2], 2)
	if err := held.Later(time.Hour); err != nil {
		t.Fatal(err)
	}
	last := take(t, queues[fanfare.Urgent], "urgent 3")
	if err := last.Done(); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{EventGroups: 1})
	trim(future, seqs[2], 2) // given back, it is not done
	bulk := appendGroups(t, b, fanfare.Bulk, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, Options{Dir: dir})
	for lane, want := range map[fanfare.Lane]string{fanfare.Urgent: "urgent 2", fanfare.Bulk: "bulk 0"} {
		q, err := b.Events(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(t, q, want).Done(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Events(t.Context(), fanfare.Normal); err != nil {
		t.Fatal(err)
	}
	q, err := b.Events(t.Context(), fanfare.Urgent)
	if err != nil {
		t.Fatal(err)
	}
	for range seqs[3] - seqs[2] { // what was done behind one that was not may come again
		if l, err := q.Poll(); err == nil && l != nil {
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled(t, b, Backlog{})
	trim(future, bulk[0]+1, 0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, Options{Dir: dir})
	if next := appendGroups(t, b, fanfare.Normal, 1); next[0] != bulk[0]+1 {
		t.Errorf("a stream that was emptied goes on at %d, want %d: an id would be used twice", next[0], bulk[0]+1)
	}
}
