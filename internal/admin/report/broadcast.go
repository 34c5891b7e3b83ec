package report

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Broadcast returns an event with the progress of its broadcast.
func (t *Traces) Broadcast(ctx context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error) {
	b, err := t.broadcast(ctx, ref)
	if err != nil {
		return fanfare.Broadcast{}, err
	}
	if b.State == queued {
		return *b, nil
	}
	if b, err = t.soFar(ctx, ref, b); err != nil {
		return fanfare.Broadcast{}, err
	}
	if b.Kind == fanfare.KindEvent {
		b.Gathered, err = t.Digests.Gathered(ctx, ref)
	}
	return *b, err
}

// States of a broadcast: accepted and not matched yet, matched, and matched with nothing that may be sent.
const (
	queued   = "queued"
	running  = "running"
	isPaused = "paused"
)

// broadcast reads an event from the store or, before it is matched, from EVENTS.
func (t *Traces) broadcast(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	b, posted, kept, err := Look(ctx, t.Queue, ref, func() (*fanfare.Broadcast, error) { return t.Store.Broadcast(ctx, ref) })
	if err != nil || posted == nil {
		return b, err
	}
	b = &fanfare.Broadcast{Event: ref.String(), State: queued, Stages: fanfare.Stages{Kept: kept}}
	b.Describe(posted)
	return b, nil
}

// soFar adds the progress to a broadcast that was read from the store.
func (t *Traces) soFar(ctx context.Context, ref fanfare.EventRef, b *fanfare.Broadcast) (*fanfare.Broadcast, error) {
	if !b.Stages.Completed.IsZero() {
		return b, nil
	}
	p, open := t.Progress.Progress(ref)
	if !open {
		return t.closed(ctx, ref)
	}
	if err := t.setPaused(ctx, ref, b); err != nil {
		return nil, err
	}
	b.Counts, b.Stages.First, b.Stages.Last = p.Counts, p.First, p.Last
	if err := t.waitsOfBroadcast(ctx, ref, b); err != nil {
		return nil, err
	}
	if b.PerSecond, b.End = t.Progress.Estimate(ref, b.Waits); b.State != running {
		b.End = time.Time{} // only messages that were being sent are left
	}
	return b, nil
}

// closed reads a broadcast again that was open in the store and that the recorder does not know: it was completed between
// the two look-ups, or is about to begin.
func (t *Traces) closed(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	b, err := t.Store.Broadcast(ctx, ref)
	if err == nil && b.Stages.Completed.IsZero() && b.Counts.Total() == 0 {
		b.Counts[fanfare.Pending] = b.Messages
	}
	return b, err
}
