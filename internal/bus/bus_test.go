package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestAppendedMessagesKeepTheirSequenceAfterARestart(t *testing.T) {
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

func TestAMessageThatIsTooLargeIsRefused(t *testing.T) {
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

func TestReplayVisitsMessagesSinceATimeInOrder(t *testing.T) {
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

// A replay ends when its consumer is gone and cannot be created again, so that a server can stop.
func TestAReplayWithoutAConsumerEnds(t *testing.T) {
	t.Parallel()
	b := open(t, Options{})
	appendGroups(t, b, fanfare.Normal, 1200) // more than the client asks for at once
	ended := make(chan error, 1)
	go func() {
		visited := 0
		ended <- b.ReplayEvents(t.Context(), time.Time{}, func(uint64, time.Time, []byte) error {
			if visited++; visited > 1 {
				return nil
			}
			return b.js.DeleteStream(t.Context(), eventsStream)
		})
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("all groups of a deleted stream were visited")
		}
	case <-time.After(4 * time.Minute):
		t.Error("the replay does not end")
	}
}

// TestTrimRemovesOnlyMatchedOldEvents leaves one group of each lane where it
// is on its way: not taken, taken, and given back.
func TestTrimRemovesOnlyMatchedOldEvents(t *testing.T) {
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
	queues = map[fanfare.Lane]*Queue{}
	for _, lane := range fanfare.Lanes {
		q, err := b.Events(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		queues[lane] = q
	}
	// A group that was done behind one that was not may come again, at any time until the backlog is empty.
	finished := finishAll(t, b, queues)
	for _, want := range []string{"urgent 2", "bulk 0"} {
		if !slices.Contains(finished, want) {
			t.Errorf("%s did not come", want)
		}
	}
	trim(future, bulk[0]+1, 0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, Options{Dir: dir})
	if next := appendGroups(t, b, fanfare.Normal, 1); next[0] != bulk[0]+1 {
		t.Errorf("a stream that was emptied goes on at %d, want %d: an id would be used twice", next[0], bulk[0]+1)
	}
}

// finishAll finishes what comes from any of the queues until nothing is left, and returns it.
func finishAll(t *testing.T, b *Bus, queues map[fanfare.Lane]*Queue) (finished []string) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		for _, q := range queues {
			l, err := q.Poll()
			if err != nil {
				t.Fatal(err)
			}
			if l == nil {
				continue
			}
			finished = append(finished, string(l.Data))
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
		backlog, err := b.Backlog(limit)
		if err != nil {
			t.Fatalf("%v was finished: %v", finished, err)
		}
		if backlog == (Backlog{}) {
			return finished
		}
	}
}
