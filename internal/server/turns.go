package server

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
	// maxAhead is how many batches of a channel and lane are read ahead, so that
	// those of another broadcast are seen behind them; the rest stays on the bus.
	// A batch has up to a thousand members and is a hint of about 100 bytes, whose
	// lease is renewed with all others. A broadcast to ten million that may leave only
	// slowly is read ahead as a whole: it hides nothing that comes behind it.
	maxAhead = bus.MaxHeld / 2
	// turnMembers is how many members a broadcast may have loaded each turn: the
	// batches of small ones are loaded before the next thousand of a large one.
	turnMembers = plan.Small
)

// A hint is a batch that was read ahead.
type hint struct {
	lease *bus.Lease
	batch *fanfare.Batch
	flow  deliver.Flow
}

// turns has the batches of one channel and lane that wait to be loaded, and says
// which is next. It belongs to one goroutine.
type turns struct {
	queue  *bus.Queue
	outlet *deliver.Sender
	lane   fanfare.Lane
	bad    func(*bus.Lease, error) // takes a batch that cannot be read

	waiting *fairqueue.Queue[deliver.Flow, hint]
}

func newTurns(queue *bus.Queue, outlet *deliver.Sender, lane fanfare.Lane, bad func(*bus.Lease, error)) *turns {
	return &turns{queue, outlet, lane, bad, fairqueue.New[deliver.Flow, hint](turnMembers)}
}

// next returns the next batch for which the outlet has room: each broadcast in
// turn. It returns an error when ctx ends or the bus closes.
func (t *turns) next(ctx context.Context) (hint, error) {
	for ctx.Err() == nil {
		more := t.outlet.RoomSignal()
		if err := t.readAhead(); err != nil {
			return hint{}, err
		}
		_, h, ok := t.waiting.PopAllowed(func(flow deliver.Flow) bool { return t.outlet.HasRoom(t.lane, flow) })
		if ok {
			return h, nil
		}
		if err := t.await(ctx, more); err != nil {
			return hint{}, err
		}
	}
	return hint{}, ctx.Err()
}

// readAhead takes what the bus has ready.
func (t *turns) readAhead() error {
	for t.waiting.Len() < maxAhead {
		lease, err := t.queue.Poll()
		if lease == nil || err != nil {
			return err
		}
		t.take(lease)
	}
	return nil
}

// await waits for a batch, if there is a place for it, or for room in the outlet.
func (t *turns) await(ctx context.Context, more <-chan struct{}) error {
	if t.waiting.Len() == 0 {
		more = nil
	}
	if t.waiting.Len() < maxAhead {
		lease, err := t.queue.NextOr(ctx, more)
		if lease != nil {
			t.take(lease)
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

func (t *turns) take(lease *bus.Lease) {
	batch := &fanfare.Batch{}
	err := json.Unmarshal(lease.Data, batch)
	if err == nil && len(batch.Slices) == 0 {
		err = errors.New("the batch names nobody")
	}
	if err != nil {
		t.bad(lease, err)
		return
	}
	plan.KeepLatestAttempts(batch)
	flow := flowOf(batch)
	t.waiting.Push(flow, hint{lease, batch, flow}, batch.Members())
}

// flowOf is the broadcast that a batch is of, and zero for what is small.
func flowOf(batch *fanfare.Batch) deliver.Flow {
	event := batch.Slices[0].Manifest.Event()
	for _, slice := range batch.Slices[1:] {
		if slice.Manifest.Event() != event {
			return deliver.Flow{}
		}
	}
	if batch.Members() < plan.Small {
		return deliver.Flow{}
	}
	return deliver.Flow{Day: batch.Day, Seq: event}
}

// giveBack returns what waits to the bus.
func (t *turns) giveBack() {
	for _, h := range t.waiting.Remove(func(hint) bool { return true }) {
		_ = h.lease.Later(0) // or it comes after its lease
	}
}
