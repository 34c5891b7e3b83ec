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

func TestFlowsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan struct{})
		var order []uint32
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			<-first
			order = append(order, l.Delivery.Position)
			return driver.Accepted
		}))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		f.Submit(f.batchOf(flow(1), fanfare.Bulk, 5)) // 0 to 4, of which 0 is in flight
		synctest.Wait()
		f.Submit(f.batchOf(flow(1), fanfare.Bulk, 2))   // 5 6
		f.Submit(f.batchOf(flow(2), fanfare.Bulk, 2))   // 7 8
		f.Submit(f.batchOf(Flow{}, fanfare.Bulk, 1))    // 9
		f.Submit(f.batchOf(flow(3), fanfare.Urgent, 1)) // 10
		close(first)
		synctest.Wait()
		f.Stop()
		if want := []uint32{0, 10, 7, 9, 1, 8, 2, 3, 4, 5, 6}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

// TestSmallBroadcastDoesNotWaitForALargeOne has two flows that always have jobs.
func TestSmallBroadcastDoesNotWaitForALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(func(*driver.Message) driver.Verdict { <-time.After(time.Second); return driver.Accepted }))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		for n := range 2 {
			f.Submit(f.batchOf(flow(n+1), fanfare.Bulk, 1000))
		}
		<-time.After(10 * time.Second)
		came := time.Now()
		small := f.batchOf(flow(3), fanfare.Bulk, 20)
		over := make(chan struct{})
		small.Finish = func(int, int) { close(over) }
		f.Submit(small)
		<-over
		if took := time.Since(came); took > 63*time.Second {
			t.Errorf("20 of one among three took %v, 3 s each are its due", took)
		}
		f.Stop()
	})
}

func TestFlowMayQueueOneBatchBesideTheCurrentOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		f := newFixture(t, gateFunc(allowAll), settings(answering(func(*driver.Message) driver.Verdict { <-next; return driver.Accepted })))
		submit := func(n int) {
			t.Helper()
			if !f.HasCapacity(fanfare.Bulk, flow(n)) {
				t.Fatalf("no capacity for flow %d beside %d jobs", n, f.Status().Queued)
			}
			f.Submit(f.batchOf(flow(n), fanfare.Bulk, fanfare.MaxBatch))
			synctest.Wait()
		}
		submit(1)
		submit(1) // 4 of the first are in flight
		if f.HasCapacity(fanfare.Bulk, flow(1)) {
			t.Error("a flow has capacity for a third batch")
		}
		if !f.HasCapacity(fanfare.Urgent, flow(1)) || !f.HasCapacity(fanfare.Bulk, flow(2)) {
			t.Error("it takes the capacity of another lane or flow")
		}
		more := f.CapacityChanged()
		for range fanfare.MaxBatch - 4 {
			next <- struct{}{}
			synctest.Wait()
		}
		if f.HasCapacity(fanfare.Bulk, flow(1)) {
			t.Error("there is capacity before a batch has left")
		}
		next <- struct{}{}
		<-more
		if !f.HasCapacity(fanfare.Bulk, flow(1)) {
			t.Error("CapacityChanged fired without capacity")
		}
		close(next)
		f.Stop()
	})
}

func TestManyQueuedJobsLeaveCapacityForNewFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-next; return driver.Accepted }))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		batches := 0
		for n := range 100 {
			for f.HasCapacity(fanfare.Normal, flow(n)) {
				f.Submit(f.batchOf(flow(n), fanfare.Normal, fanfare.MaxBatch))
				synctest.Wait()
				batches++
			}
		}
		if queued := f.Status().Queued; queued > maxQueued || batches != maxQueued/fanfare.MaxBatch {
			t.Errorf("%d batches and %d jobs wait, %d is the most", batches, queued, maxQueued)
		}
		f.Sender.mu.Lock()
		flows := len(f.waiting.lanes[fanfare.Normal].perFlow)
		f.Sender.mu.Unlock()
		if flows != batches-1 {
			t.Errorf("%d flows share the capacity, want all but the first to have one batch each", flows)
		}
		more := f.CapacityChanged()
		close(next)
		<-more
		f.Stop()
	})
}
