package app

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// ahead reads events before they are needed: a batch of many small events would
// else ask the store for each of them by itself.
type ahead struct {
	store *sqlite.Deliveries
	read  map[fanfare.EventRef]*fanfare.Posted
}

// eventsAhead is how many events are read at a time: one may have a megabyte.
const eventsAhead = 16

// posted returns the event of the first of members, and reads those of the next
// ones with it. Members of one event are neighbours.
func (a *ahead) posted(ctx context.Context, members []pending) (*fanfare.Posted, error) {
	first := eventOf(&members[0])
	if known := a.read[first]; known != nil {
		return known, nil
	}
	a.read = make(map[fanfare.EventRef]*fanfare.Posted, eventsAhead)
	err := a.store.Moment(ctx, first.Day, func(moment *sqlite.Moment) error {
		for i := 0; i < len(members) && len(a.read) < eventsAhead; i++ {
			ref := eventOf(&members[i])
			if a.read[ref] != nil {
				continue
			}
			posted, err := moment.Posted(ref.Seq)
			if err != nil {
				return err
			}
			a.read[ref] = posted
		}
		return nil
	})
	return a.read[first], err
}

func eventOf(m *pending) fanfare.EventRef {
	return fanfare.EventRef{Day: m.ref.Day, Seq: m.ref.Manifest.Event()}
}
