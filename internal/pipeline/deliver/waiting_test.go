package deliver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func flow(n int) Flow { return Flow{Day: 20777, Seq: fanfare.EventSeq(n)} }

func TestFlowsLeaveInTurn(t *testing.T) {
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
		b.Submit(b.batchOf(flow(1), fanfare.Bulk, 5)) // 0 to 4, of which 0 is on the wire
		synctest.Wait()
		b.Submit(b.batchOf(flow(1), fanfare.Bulk, 2))   // 5 6
		b.Submit(b.batchOf(flow(2), fanfare.Bulk, 2))   // 7 8
		b.Submit(b.batchOf(Flow{}, fanfare.Bulk, 1))    // 9
		b.Submit(b.batchOf(flow(3), fanfare.Urgent, 1)) // 10
		close(first)
		synctest.Wait()
		b.Stop()
		if want := []uint32{0, 10, 7, 9, 1, 8, 2, 3, 4, 5, 6}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

// TestASmallBroadcastDoesNotWaitForALargeOne has two that never run dry.
func TestASmallBroadcastDoesNotWaitForALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(func(*driver.Message) driver.Verdict { <-time.After(time.Second); return driver.Accepted }))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		for n := range 2 {
			b.Submit(b.batchOf(flow(n+1), fanfare.Bulk, 1000))
		}
		<-time.After(10 * time.Second)
		came := time.Now()
		small := b.batchOf(flow(3), fanfare.Bulk, 20)
		over := make(chan struct{})
		small.Finish = func(int, int) { close(over) }
		b.Submit(small)
		<-over
		if took := time.Since(came); took > 63*time.Second {
			t.Errorf("20 of one among three took %v, 3 s each are its due", took)
		}
		b.Stop()
	})
}

func TestAFlowHasRoomUntilItHasABatchBesideTheOneThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		b := newBench(t, gateFunc(open), settings(answering(func(*driver.Message) driver.Verdict { <-next; return driver.Accepted })))
		submit := func(n int) {
			t.Helper()
			if !b.HasRoom(fanfare.Bulk, flow(n)) {
				t.Fatalf("no room for flow %d beside %d jobs", n, b.Status().Queued)
			}
			b.Submit(b.batchOf(flow(n), fanfare.Bulk, fanfare.MaxBatch))
			synctest.Wait()
		}
		submit(1)
		submit(1) // 4 of the first are on the wire
		if b.HasRoom(fanfare.Bulk, flow(1)) {
			t.Error("a flow has room for a third batch")
		}
		if !b.HasRoom(fanfare.Urgent, flow(1)) || !b.HasRoom(fanfare.Bulk, flow(2)) {
			t.Error("it takes the room of another lane or flow")
		}
		more := b.RoomSignal()
		for range fanfare.MaxBatch - 4 {
			next <- struct{}{}
			synctest.Wait()
		}
		if b.HasRoom(fanfare.Bulk, flow(1)) {
			t.Error("there is room before a batch has left")
		}
		next <- struct{}{}
		<-more
		if !b.HasRoom(fanfare.Bulk, flow(1)) {
			t.Error("told that there is room, and there is none")
		}
		close(next)
		b.Stop()
	})
}

func TestACrowdLeavesRoomForWhoHasNothingYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-next; return driver.Accepted }))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		batches := 0
		for n := range 100 {
			for b.HasRoom(fanfare.Normal, flow(n)) {
				b.Submit(b.batchOf(flow(n), fanfare.Normal, fanfare.MaxBatch))
				synctest.Wait()
				batches++
			}
		}
		if queued := b.Status().Queued; queued > maxQueued || batches != maxQueued/fanfare.MaxBatch {
			t.Errorf("%d batches and %d jobs wait, %d is the most", batches, queued, maxQueued)
		}
		b.Sender.mu.Lock()
		flows := len(b.waiting.lanes[fanfare.Normal].perFlow)
		b.Sender.mu.Unlock()
		if flows != batches-1 {
			t.Errorf("%d flows share the room, want all but the first to have one batch each", flows)
		}
		more := b.RoomSignal()
		close(next)
		<-more
		b.Stop()
	})
}
