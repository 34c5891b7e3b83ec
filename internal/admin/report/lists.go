package report

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// errEnough ends a walk through the history.
var errEnough = errors.New("the callback stopped the iteration")

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

// A Pick contains the filters and the cursor of a list. The zero value selects the whole list. Times are those at which events were appended;
// Since is inclusive and Until exclusive.
type Pick struct {
	Service, Topic, Lane string
	Kind                 string // fanfare.KindEvent, and so on, or "" for all
	Channel              string // of deliveries
	State                string // of the broadcast, or of the delivery
	Since, Until         time.Time

	After string // public id of the last element of the previous page; "": begin with the newest
	Limit int
}

// wants reports whether the list may contain b.
func (p *Pick) wants(b *fanfare.Broadcast) bool {
	return (p.Service == "" || b.Service == p.Service) && (p.Topic == "" || b.Topic == p.Topic) && (p.Lane == "" || b.Lane == p.Lane) && (p.Kind == "" || b.Kind == p.Kind) &&
		(p.Since.IsZero() || !b.Stages.Kept.Before(p.Since)) && (p.Until.IsZero() || b.Stages.Kept.Before(p.Until))
}

// day reports whether a day may have elements of the list, and whether it and all older days are too old. A day is that of
// receipt, a moment before an event is appended.
func (p *Pick) day(day fanfare.Day) (look, old bool) {
	const receipt = time.Minute
	if !p.Since.IsZero() && (day + 1).Time().Add(receipt).Before(p.Since) {
		return false, true
	}
	return p.Until.IsZero() || day.Time().Before(p.Until), false
}

// maxLooks is the maximum number of broadcasts that are read for one page. With a filter that matches few broadcasts, a
// page may be short or empty and still have a next page.
const maxLooks = 20_000

// looksAtOnce is the number of broadcasts that are read together.
const looksAtOnce = 500

// Broadcasts lists broadcasts, the newest first. next is the cursor of the next page, "" at the end. Broadcasts that begin
// while a client reads pages come before the pages that were read, so no element comes twice.
func (t *Traces) Broadcasts(ctx context.Context, p Pick) (list []fanfare.Broadcast, next string, err error) {
	list, next, err = t.broadcasts(ctx, p)
	if err == nil {
		err = t.inboxCounts(ctx, list)
	}
	return list, next, err
}

func (t *Traces) broadcasts(ctx context.Context, p Pick) (list []fanfare.Broadcast, next string, err error) {
	days, err := t.Store.Days(ctx)
	if err != nil {
		return nil, "", err
	}
	after, _ := fanfare.ParseEventRef(p.After) // "" parses to the zero ref, which is not a day
	list = []fanfare.Broadcast{}
	looks := 0
	for _, day := range days {
		look, old := p.day(day)
		if old {
			break
		}
		if !look || p.After != "" && day > after.Day {
			continue
		}
		before := fanfare.EventSeq(math.MaxInt64)
		if p.After != "" && day == after.Day {
			before = after.Seq
		}
		for {
			found, err := t.Store.Broadcasts(ctx, day, p.Service, before, looksAtOnce)
			if gone(err) {
				break
			}
			if err != nil {
				return nil, "", err
			}
			for _, b := range found {
				ref, ok := fanfare.ParseEventRef(b.Event)
				if !ok {
					continue
				}
				before = ref.Seq
				looks++
				if p.wants(b) && (p.State == "" || b.State == p.State || p.State == isPaused && b.State == running) {
					if len(list) == p.Limit {
						return list, list[len(list)-1].Event, nil
					}
					now, err := t.soFar(ctx, ref, b)
					if err != nil && !gone(err) {
						return nil, "", err
					}
					if err == nil && (p.State == "" || now.State == p.State) {
						list = append(list, *now)
					}
				}
				if looks == maxLooks {
					return list, b.Event, nil
				}
			}
			if len(found) < looksAtOnce {
				break
			}
		}
	}
	return list, "", nil
}
