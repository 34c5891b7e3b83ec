package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/retry"
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
	// maxAside is how long a batch waits for a worker until it is loaded again: its members may have expired or unsubscribed.
	maxAside = time.Minute
)

// leasedBatch is a batch that was read ahead.
type leasedBatch struct {
	lease *bus.Lease
	batch *fanfare.Batch
	flow  deliver.Flow
}

// asideBatch is a batch whose members wait for instances of workers.
type asideBatch struct {
	leasedBatch
	waits []workerName
	until time.Time
}

// readAhead holds the batches of one channel and lane that wait to be loaded, and chooses the
// next one. It belongs to one goroutine.
type readAhead struct {
	queue       *bus.Queue
	sender      *deliver.Sender
	lane        fanfare.Lane
	mayContinue func(*asideBatch) bool // reports whether a batch no longer waits for workers
	unreadable  func(*bus.Lease, error)

	waiting *fairqueue.Queue[deliver.Flow, leasedBatch]
	aside   []asideBatch
	asked   time.Time // when mayContinue was last asked
}

func newReadAhead(queue *bus.Queue, sender *deliver.Sender, lane fanfare.Lane, mayContinue func(*asideBatch) bool, unreadable func(*bus.Lease, error)) *readAhead {
	return &readAhead{queue: queue, sender: sender, lane: lane, mayContinue: mayContinue, unreadable: unreadable, waiting: fairqueue.New[deliver.Flow, leasedBatch](membersPerTurn)}
}

// putAside lets a batch wait until mayContinue returns true for it. The lease stays.
func (r *readAhead) putAside(b asideBatch) { r.aside = append(r.aside, b) }

// takeBack moves the batches that no longer wait for workers to the others. It asks once in a second.
func (r *readAhead) takeBack() {
	if len(r.aside) == 0 || time.Since(r.asked) < retry.Pause {
		return
	}
	r.asked = time.Now()
	r.aside = slices.DeleteFunc(r.aside, func(b asideBatch) bool {
		if !r.mayContinue(&b) {
			return false
		}
		r.push(b.leasedBatch)
		return true
	})
}

// next waits for the next batch that the sender can take; broadcasts take turns. It returns
// an error when ctx ends or the bus closes.
func (r *readAhead) next(ctx context.Context) (leasedBatch, error) {
	for {
		more := r.sender.CapacityChanged()
		next, ok, err := r.poll(ctx)
		if ok || err != nil {
			return next, err
		}
		if err := r.await(ctx, more); err != nil {
			return leasedBatch{}, err
		}
	}
}

// poll is next without waiting: ok is false if there is no batch that the sender can take now.
func (r *readAhead) poll(ctx context.Context) (next leasedBatch, ok bool, err error) {
	if ctx.Err() != nil {
		return next, false, ctx.Err()
	}
	r.takeBack()
	if err := r.fill(); err != nil {
		return next, false, err
	}
	_, next, ok = r.waiting.PopAllowed(func(flow deliver.Flow) bool { return r.sender.HasCapacity(r.lane, flow) })
	return next, ok, nil
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

// await waits for a batch, if one more may be read ahead, or for capacity in the sender, or until takeBack asks again.
func (r *readAhead) await(ctx context.Context, more <-chan struct{}) error {
	if len(r.aside) == 0 {
		return r.awaitChange(ctx, more)
	}
	limited, cancel := context.WithTimeout(ctx, retry.Pause)
	defer cancel()
	if err := r.awaitChange(limited, more); err != nil && limited.Err() == nil {
		return err
	}
	return ctx.Err()
}

func (r *readAhead) awaitChange(ctx context.Context, more <-chan struct{}) error {
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
	r.push(leasedBatch{lease, batch, flowOf(batch)})
}

func (r *readAhead) push(b leasedBatch) { r.waiting.Push(b.flow, b, b.batch.Members()) }

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
	for _, b := range r.aside {
		r.push(b.leasedBatch)
	}
	r.aside = nil
	for _, b := range r.waiting.Remove(func(leasedBatch) bool { return true }) {
		_ = b.lease.Later(0) // otherwise the batch is delivered again when its lease ends
	}
}
