package deliver

import (
	"context"
	"testing"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestWhatIsDroppedIsSettledWithoutItsAddressAndTheRestKeepsItsOrder(t *testing.T) {
	b := &book{}
	o := NewSender(Options{Name: "news/email", Gate: gateFunc(open), Recorder: b, Clock: clock.System{}},
		Settings{Relays: relaysOf(driverFunc(func(context.Context, driver.Queue) error { return nil })), Connections: 0, Rate: rate.Inf})
	over := make(chan struct{})
	batch := &Batch{Lane: fanfare.Normal, Left: func(*Job) {}, Finish: func(int, int) { close(over) }}
	for i := range 6 {
		batch.Jobs = append(batch.Jobs, Job{Subscriber: fanfare.RowID(i % 2), Attempt: 1,
			Message: driver.Message{Delivery: fanfare.DeliveryRef{Position: uint32(i)}, To: "a@example.org"}})
	}
	o.Submit(batch)
	o.Drop(1, "erased")
	var left []uint32
	for range o.waiting.len() {
		job := o.waiting.pop(allLanes)
		left = append(left, job.Message.Delivery.Position)
		o.waiting.push(job)
	}
	if len(left) != 3 || left[0] != 0 || left[1] != 2 || left[2] != 4 {
		t.Errorf("left in the queue: %v", left)
	}
	o.Stop()
	<-over
	if len(b.entries) != 3 {
		t.Fatalf("%d entries", len(b.entries))
	}
	for _, e := range b.entries {
		if e.State != fanfare.Suppressed || e.Address != "" || e.Text != "erased" || e.Delivery.Position%2 != 1 {
			t.Errorf("recorded %+v", e)
		}
	}
}
