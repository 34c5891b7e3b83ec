package report

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fanfare.dev/fanfare"
)

// errEnough ends a walk through the history.
var errEnough = errors.New("report: enough")

// History returns deliveries of a person, the newest event first. A person has a row id for each address. next is the cursor
// of the next page, "" at the end.
func (t *Traces) History(ctx context.Context, places []fanfare.RowID, p Pick) (list []fanfare.Delivery, next string, err error) {
	list = []fanfare.Delivery{}
	err = t.eachPicked(ctx, places, &p, func(d *fanfare.Delivery) error {
		switch {
		case p.Channel != "" && d.Channel != p.Channel, p.State != "" && d.State != p.State:
			return nil
		case len(list) == p.Limit:
			next = list[len(list)-1].ID
			return errEnough
		}
		list = append(list, *d)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, next, err
}

// EachDelivery visits all deliveries of a person, the newest first. It stops at an error of visit and returns it.
func (t *Traces) EachDelivery(ctx context.Context, service string, places []fanfare.RowID, visit func(*fanfare.Delivery) error) error {
	return t.eachPicked(ctx, places, &Pick{Service: service}, visit)
}

func (t *Traces) eachPicked(ctx context.Context, places []fanfare.RowID, p *Pick, visit func(*fanfare.Delivery) error) error {
	days, err := t.Store.Days(ctx)
	if err != nil {
		return err
	}
	after, paging := fanfare.ParseDeliveryRef(p.After)
	for _, day := range days {
		look, old := p.day(day)
		if old {
			break
		}
		if !look || paging && day > after.Day {
			continue
		}
		if err := t.eachOfDay(ctx, day, places, p, visit); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// An occasion is an event with a delivery to an address of the person.
type occasion struct {
	seq   fanfare.EventSeq
	place fanfare.RowID
}

func (t *Traces) eachOfDay(ctx context.Context, day fanfare.Day, places []fanfare.RowID, p *Pick, visit func(*fanfare.Delivery) error) error {
	last, paging := fanfare.ParseDeliveryRef(p.After)
	paging = paging && last.Day == day
	skip := paging // until the last delivery of the previous page
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
		if paging && o.seq > last.Manifest.Event() {
			continue
		}
		skip = skip && o.seq == last.Manifest.Event()
		ref := fanfare.EventRef{Day: day, Seq: o.seq}
		b, err := t.Store.Broadcast(ctx, ref)
		if err != nil {
			return err
		}
		if !p.wants(b) {
			continue
		}
		found, err := t.deliveriesOf(ctx, b, ref, o.place)
		if err != nil {
			return err
		}
		for i := range found {
			if skip {
				skip = found[i].ID != p.After
				continue
			}
			if err := visit(&found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
