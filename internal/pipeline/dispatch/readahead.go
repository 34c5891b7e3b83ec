package dispatch

import (
	"context"
	"encoding/json"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

const (
	// maxReadAhead limits the batches of a channel and lane that are read ahead. It is large, so
	// that other broadcasts behind a large one are seen. The rest stays on the bus. A batch
	// needs about 100 bytes here and contains up to a thousand members, so a broadcast to ten
	// million is read ahead
	// as a whole; the leases of all are renewed together.
	maxReadAhead = bus.MaxHeld / 2
	// membersPerTurn bounds the members that a broadcast may load each turn: the batches of small
	// broadcasts are loaded before the next thousand members of a large one.
	membersPerTurn = plan.MinOwnBatch
)

// leasedBatch is a batch that was read ahead.
type leasedBatch struct {
	lease *bus.Lease
	batch *fanfare.Batch
	flow  deliver.Flow
}

// readAhead holds the batches of one channel and lane that wait to be loaded, and chooses the
// next one. It belongs to one goroutine.
type readAhead struct {
	queue      *bus.Queue
	sender     *deliver.Sender
	lane       fanfare.Lane
	unreadable func(*bus.Lease, error)

	waiting *fairqueue.Queue[deliver.Flow, leasedBatch]
}

func newReadAhead(queue *bus.Queue, sender *deliver.Sender, lane fanfare.Lane, unreadable func(*bus.Lease, error)) *readAhead {
	return &readAhead{queue, sender, lane, unreadable, fairqueue.New[deliver.Flow, leasedBatch](membersPerTurn)}
}

// next waits for the next batch that the sender can take; broadcasts take turns. It returns
// an error when ctx ends or the bus closes.
func (r *readAhead) next(ctx context.Context) (leasedBatch, error) {
	for ctx.Err() == nil {
		more := r.sender.CapacityChanged()
		if err := r.fill(); err != nil {
			return leasedBatch{}, err
		}
		_, next, ok := r.waiting.PopAllowed(func(flow deliver.Flow) bool { return r.sender.HasCapacity(r.lane, flow) })
		if ok {
			return next, nil
		}
		if err := r.await(ctx, more); err != nil {
			return leasedBatch{}, err
		}
	}
	return leasedBatch{}, ctx.Err()
}

// fill reads the batches that the bus has ready.
func (r *readAhead) fill() error {
	for r.waiting.Len() < maxReadAhead {
		lease, err := r.queue.Poll()
		if lease == nil || err != nil {
			return err
		}
		r.add(lease)
	}
	return nil
}

// await waits for a batch, if one more may be read ahead, or for capacity in the sender.
func (r *readAhead) await(ctx context.Context, more <-chan struct{}) error {
	if r.waiting.Len() == 0 {
		more = nil
	}
	if r.waiting.Len() < maxReadAhead {
		lease, err := r.queue.NextOr(ctx, more)
		if lease != nil {
			r.add(lease)
		}
		return err
	}
	select {
	case <-more:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *readAhead) add(lease *bus.Lease) {
	batch := &fanfare.Batch{}
	err := json.Unmarshal(lease.Data, batch)
	if err == nil && len(batch.Slices) == 0 {
		err = errors.New("the batch has no recipients")
	}
	if err != nil {
		r.unreadable(lease, err)
		return
	}
	plan.KeepLatestAttempts(batch)
	flow := flowOf(batch)
	r.waiting.Push(flow, leasedBatch{lease, batch, flow}, batch.Members())
}

// flowOf returns the broadcast of a batch, and the zero Flow for small batches and for those of
// several broadcasts.
func flowOf(batch *fanfare.Batch) deliver.Flow {
	event := batch.Slices[0].Manifest.Event()
	for _, slice := range batch.Slices[1:] {
		if slice.Manifest.Event() != event {
			return deliver.Flow{}
		}
	}
	if batch.Members() < plan.MinOwnBatch {
		return deliver.Flow{}
	}
	return deliver.Flow{Day: batch.Day, Seq: event}
}

// giveBack returns all waiting batches to the bus.
func (r *readAhead) giveBack() {
	for _, b := range r.waiting.Remove(func(leasedBatch) bool { return true }) {
		_ = b.lease.Later(0) // otherwise the batch is delivered again when its lease ends
	}
}
