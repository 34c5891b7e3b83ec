package ingest

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

// Queue finds accepted events in EVENTS, whether they are matched or not.
type Queue struct {
	Log interface {
		EventGroup(ctx context.Context, seq uint64) (group []byte, at time.Time, err error)
	}
}

// Queued returns an event and when it was appended; nil if EVENTS does not have it.
func (q Queue) Queued(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, time.Time, error) {
	if ref.Seq.Stream() == 0 { // EVENTS counts from 1
		return nil, time.Time{}, nil
	}
	group, at, err := q.Log.EventGroup(ctx, ref.Seq.Stream())
	if err != nil || group == nil {
		return nil, at, err
	}
	events, err := eventgroup.Decode(group, ref.Seq.Stream())
	if err != nil || ref.Seq.Index() >= len(events) {
		return nil, at, err
	}
	posted := events[ref.Seq.Index()]
	if fanfare.DayOf(posted.ReceivedAt) != ref.Day { // the id was never assigned
		return nil, at, nil
	}
	return posted, at, nil
}
