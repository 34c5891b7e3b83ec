package report

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Look finds an event where it is kept: stored reads it from the store, and one
// that is not there yet waits in the queue, from which it is returned with the time
// at which it was kept. One that is in neither has gone from the queue to the store
// between the two looks, or is nowhere; so the store is asked once more.
func Look[T any](ctx context.Context, queue Queue, ref fanfare.EventRef, stored func() (T, error)) (found T, waiting *fanfare.AcceptedEvent, kept time.Time, err error) {
	found, err = stored()
	if err == nil || fanfare.CodeOf(err) != fanfare.NotFound {
		return found, nil, kept, err
	}
	waiting, kept, err = queue.Queued(ctx, ref)
	if err == nil && waiting == nil {
		found, err = stored()
	}
	return found, waiting, kept, err
}

// Accepted returns an event as it was accepted, and whether it waits to be matched.
func Accepted(ctx context.Context, queue Queue, events Events, ref fanfare.EventRef) (posted *fanfare.AcceptedEvent, queued bool, err error) {
	posted, waiting, _, err := Look(ctx, queue, ref, func() (*fanfare.AcceptedEvent, error) { return events.Posted(ctx, ref) })
	if err == nil && waiting != nil {
		return waiting, true, nil
	}
	return posted, false, err
}
