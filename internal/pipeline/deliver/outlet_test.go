package deliver

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestEachJobOfABatchIsSentAndRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		batch := b.batch(fanfare.Normal, 100)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		seen := map[uint32]bool{}
		for _, e := range b.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 || e.Code != 250 || e.Relay != "relay:25" || e.Address != fmt.Sprintf("p%d@example.org", e.Delivery.Position) || e.At.IsZero() {
				t.Errorf("entry %+v", e)
			}
			seen[e.Delivery.Position] = true
		}
		if len(seen) != 100 || len(b.book.all()) != 100 {
			t.Errorf("%d entries of %d deliveries, want 100 of 100", len(b.book.all()), len(seen))
		}
		b.Stop()
	})
}

func TestAnEmptyBatchEndsAtOnce(t *testing.T) {
	b := newBench(t, gateFunc(open), settings(answering(taking)))
	batch := b.batch(fanfare.Bulk, 0)
	b.Submit(batch)
	b.mustEnd(batch, ending{})
	b.Stop()
}

func TestUrgentLeavesBeforeWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan struct{})
		var order []uint32
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			<-first
			order = append(order, l.Delivery.Position)
			return driver.Accepted
		}))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		b.Submit(b.batch(fanfare.Bulk, 3)) // 0 1 2, of which 0 is on the wire
		synctest.Wait()
		b.Submit(b.batch(fanfare.Normal, 2)) // 3 4
		b.Submit(b.batch(fanfare.Urgent, 2)) // 5 6
		b.Submit(b.batch(fanfare.Bulk, 1))   // 7
		close(first)
		synctest.Wait()
		b.Stop()
		if want := []uint32{0, 5, 6, 3, 4, 1, 2, 7}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

func TestADeferredJobIsDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(func(*driver.Message) driver.Verdict { return driver.Temporary })))
		batch := b.batch(fanfare.Bulk, 1)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		b.Stop()
		if b.book.coming != 0 {
			t.Errorf("the recorder expects %d more", b.book.coming)
		}
		entry := b.book.all()[0]
		if len(b.book.dues) != 1 || entry.State != fanfare.Deferred {
			t.Fatalf("recorded %+v with %d dues", entry, len(b.book.dues))
		}
		due := b.book.dues[0]
		ref := batch.Jobs[0].Message.Delivery
		if !due.At.Equal(entry.NextAt) || due.Channel != 7 || due.Lane != fanfare.Bulk || due.Slice.Manifest != ref.Manifest ||
			!slices.Equal(due.Slice.Positions, []uint32{ref.Position}) || due.Slice.Attempt != 2 {
			t.Errorf("due %+v of entry %+v", due, entry)
		}
	})
}

func TestWhatCannotBeRecordedComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.book.refuse = errors.New("stopped")
		batch := b.batch(fanfare.Normal, 2)
		b.Submit(batch)
		<-time.After(time.Hour) // of the bubble
		b.mustEnd(batch, ending{again: 2})
		b.Stop()
	})
}

func TestNothingIsBegunUnderAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := false
		b := newBench(t, gateFunc(open), settings(answering(func(*driver.Message) driver.Verdict { sent = true; return driver.Accepted })))
		batch := b.batch(fanfare.Normal, 2)
		batch.Leased = func() time.Time { return time.Now().Add(59 * time.Second) } // a send may take a minute
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{again: 2})
		if sent {
			t.Error("a message left")
		}
		b.Stop()
	})
}

func TestStopGivesTheRestBackAndTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-reply; return driver.Accepted }))
		s.Connections = 2
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 1500)
		b.Submit(batch)
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { b.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("stopped while two messages were on the wire")
		default:
		}
		close(reply)
		<-stopped
		b.mustEnd(batch, ending{again: 1498})
		if got := b.book.states(); got[fanfare.Accepted] != 2 || len(got) != 1 {
			t.Errorf("recorded %v", got)
		}
		late := b.batch(fanfare.Urgent, 3)
		b.Submit(late)
		b.mustEnd(late, ending{again: 3})
		b.Stop()
	})
}
