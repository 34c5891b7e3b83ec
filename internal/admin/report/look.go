package report

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Look finds an event in the store, with stored, or in EVENTS, with the time at which it was appended. An event that is in
// neither may have moved to the store between the two look-ups, so Look reads the store again.
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

// Accepted returns an accepted event, and whether it is not matched yet.
func Accepted(ctx context.Context, queue Queue, events Events, ref fanfare.EventRef) (posted *fanfare.AcceptedEvent, queued bool, err error) {
	posted, waiting, _, err := Look(ctx, queue, ref, func() (*fanfare.AcceptedEvent, error) { return events.Posted(ctx, ref) })
	if err == nil && waiting != nil {
		return waiting, true, nil
	}
	return posted, false, err
}
