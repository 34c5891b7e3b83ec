package registry

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/control"
)

// kindFloor is the kind of the record, number 1, of what SkipPlaces keeps.
const kindFloor = "floor"

// placeFloor is the lowest number that a new row of each partition may have.
type placeFloor struct {
	Subscribers   [fanfare.Partitions]uint32 `json:"subscribers"`
	Subscriptions [fanfare.Partitions]uint32 `json:"subscriptions"`
}

// SkipPlaces leaves out the next n places of each partition, for subscribers and
// for subscriptions. A store that was restored from a backup does not know which
// places were given out after it; links in mails that left then still name them,
// and must not end the subscription of somebody else. It is durable when it
// returns.
func (r *Registry) SkipPlaces(ctx context.Context, n uint32) error {
	return r.writer.submit(ctx, &job{run: func(w *writer) error {
		floor := placeFloor{w.nextSubscriber, w.nextSubscription}
		for p := range fanfare.Partitions {
			floor.Subscribers[p] = min(floor.Subscribers[p]+n, fanfare.MaxLocal)
			floor.Subscriptions[p] = min(floor.Subscriptions[p]+n, fanfare.MaxLocal)
		}
		body, err := json.Marshal(&floor)
		if err != nil {
			return err
		}
		if err := r.commit(&control.Batch{Config: []control.ConfigRecord{{Kind: kindFloor, Number: 1, Body: body}}}); err != nil {
			return err
		}
		w.raise(&floor)
		return nil
	}})
}

// raise lets no new row be below a floor.
func (w *writer) raise(floor *placeFloor) {
	for p := range fanfare.Partitions {
		w.nextSubscriber[p] = max(w.nextSubscriber[p], floor.Subscribers[p])
		w.nextSubscription[p] = max(w.nextSubscription[p], floor.Subscriptions[p])
	}
}

func (r *Registry) loadFloor(c *control.ConfigRecord) error { return json.Unmarshal(c.Body, &r.floor) }
