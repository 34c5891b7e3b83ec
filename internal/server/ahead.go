package server

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// ahead reads events before they are needed: a batch of many small events would
// else ask the store for each of them by itself.
type ahead struct {
	store *deliveries.Store
	read  map[fanfare.EventRef]*fanfare.AcceptedEvent
}

// eventsAhead is how many events are read at a time: one may have a megabyte.
const eventsAhead = 16

// posted returns the event of the first of members, and reads those of the next
// ones with it. Members of one event are neighbours.
func (a *ahead) posted(ctx context.Context, members []pending) (*fanfare.AcceptedEvent, error) {
	first := eventOf(&members[0])
	if known := a.read[first]; known != nil {
		return known, nil
	}
	a.read = make(map[fanfare.EventRef]*fanfare.AcceptedEvent, eventsAhead)
	wanted := make([]fanfare.EventSeq, 0, eventsAhead)
	for i := 0; i < len(members) && len(wanted) < eventsAhead; i++ {
		if seq := eventOf(&members[i]).Seq; !slices.Contains(wanted, seq) {
			wanted = append(wanted, seq)
		}
	}
	err := a.store.Moment(ctx, first.Day, func(moment *deliveries.Moment) error {
		return moment.Posted(wanted, func(posted *fanfare.AcceptedEvent) {
			a.read[fanfare.EventRef{Day: first.Day, Seq: posted.Seq}] = posted
		})
	})
	return a.read[first], err
}

func eventOf(m *pending) fanfare.EventRef {
	return fanfare.EventRef{Day: m.ref.Day, Seq: m.ref.Manifest.Event()}
}
