package report

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fanfare.dev/fanfare"
)

// errEnough ends a walk through the past.
var errEnough = errors.New("report: enough")

// History returns the newest deliveries of a person, who may have several
// places: one for each address.
func (t *Traces) History(ctx context.Context, service string, places []fanfare.Place, limit int) ([]fanfare.Delivery, error) {
	list := []fanfare.Delivery{}
	err := t.EachDelivery(ctx, service, places, func(d *fanfare.Delivery) error {
		if len(list) == limit {
			return errEnough
		}
		list = append(list, *d)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}

// EachDelivery visits all deliveries of a person, the newest first, until visit
// returns an error, which it returns.
func (t *Traces) EachDelivery(ctx context.Context, service string, places []fanfare.Place, visit func(*fanfare.Delivery) error) error {
	days, err := t.Store.Days()
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := t.eachOfDay(ctx, day, service, places, visit); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// An occasion is an event that had a delivery to one of a person's places.
type occasion struct {
	seq   fanfare.EventSeq
	place fanfare.Place
}

func (t *Traces) eachOfDay(ctx context.Context, day fanfare.Day, service string, places []fanfare.Place, visit func(*fanfare.Delivery) error) error {
	var all []occasion
	for _, place := range places {
		seqs, err := t.Store.History(ctx, day, place)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			all = append(all, occasion{seq, place})
		}
	}
	if len(places) > 1 {
		slices.SortStableFunc(all, func(a, b occasion) int { return cmp.Compare(b.seq, a.seq) })
	}
	for _, o := range all {
		ref := fanfare.EventRef{Day: day, Seq: o.seq}
		b, err := t.Store.Broadcast(ctx, ref)
		if err != nil {
			return err
		}
		if service != "" && b.Service != service {
			continue
		}
		found, err := t.deliveriesOf(ctx, b, ref, o.place)
		if err != nil {
			return err
		}
		for i := range found {
			if err := visit(&found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
