package report

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// errEnough ends a walk through the history.
var errEnough = errors.New("the callback stopped the iteration")

// History returns deliveries of a person, the newest event first. A person has a row id for each address. A search with a filter ends after a time.
func (t *Traces) History(ctx context.Context, places []fanfare.RowID, p Pick) (page Page[fanfare.Delivery], err error) {
	page.List = []fanfare.Delivery{}
	over := t.budget()
	err = t.eachPicked(ctx, places, &p, func(b *fanfare.Broadcast, d *fanfare.Delivery) error {
		switch {
		case d == nil || p.Channel != "" && d.Channel != p.Channel || p.State != "" && d.State != p.State:
			if !over() {
				return nil
			}
			page.SearchedUntil = b.Stages.Kept
			if d != nil {
				page.Next = d.ID
			} else if ref, ok := fanfare.ParseEventRef(b.Event); ok { // the deliveries of this event are not in the list
				page.Next = fanfare.DeliveryRef{Day: ref.Day, Manifest: fanfare.NewManifestID(ref.Seq, 0)}.String()
			}
			return errEnough
		case len(page.List) == p.Limit:
			page.Next = page.List[len(page.List)-1].ID
			return errEnough
		}
		page.List = append(page.List, *d)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// EachDelivery visits all deliveries of a person, the newest first. It stops at an error of visit and returns it.
func (t *Traces) EachDelivery(ctx context.Context, service string, places []fanfare.RowID, visit func(*fanfare.Delivery) error) error {
	return t.eachPicked(ctx, places, &Pick{Service: service}, func(_ *fanfare.Broadcast, d *fanfare.Delivery) error {
		if d == nil {
			return nil
		}
		return visit(d)
	})
}

// eachPicked visits the deliveries of a person and, with nil, the broadcasts that are not wanted.
func (t *Traces) eachPicked(ctx context.Context, places []fanfare.RowID, p *Pick, visit func(*fanfare.Broadcast, *fanfare.Delivery) error) error {
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

func (t *Traces) eachOfDay(ctx context.Context, day fanfare.Day, places []fanfare.RowID, p *Pick, visit func(*fanfare.Broadcast, *fanfare.Delivery) error) error {
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
			if paging && o.seq == last.Manifest.Event() {
				continue // the previous page ended here
			}
			if err := visit(b, nil); err != nil {
				return err
			}
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
			if err := visit(b, &found[i]); err != nil {
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

const (
	looksAtOnce = 500                   // broadcasts that are read together
	seqsAtOnce  = 32 * fanfare.MaxGroup // sequences that are searched for them together
)

// Broadcasts lists broadcasts, the newest first. Broadcasts that begin while a client reads pages come before the pages that were read, so no element comes
// twice. A search with a filter that matches few broadcasts ends after a time.
func (t *Traces) Broadcasts(ctx context.Context, p Pick) (page Page[fanfare.Broadcast], err error) {
	page, err = t.broadcasts(ctx, p)
	if err == nil {
		err = t.inboxCounts(ctx, page.List)
	}
	return page, err
}

func (t *Traces) broadcasts(ctx context.Context, p Pick) (page Page[fanfare.Broadcast], err error) {
	days, err := t.Store.Days(ctx)
	if err != nil {
		return page, err
	}
	after, _ := fanfare.ParseEventRef(p.After) // "" parses to the zero ref, which is not a day
	page.List = []fanfare.Broadcast{}
	over := t.budget()
	for _, day := range days {
		look, old := p.day(day)
		if old {
			break
		}
		if !look || p.After != "" && day > after.Day {
			continue
		}
		first, last, err := t.Store.EventRange(ctx, day)
		if gone(err) {
			continue
		}
		if err != nil {
			return page, err
		}
		before := last + 1
		if p.After != "" && day == after.Day {
			before = after.Seq
		}
		for before > first {
			from := max(first, before-min(before, seqsAtOnce))
			found, err := t.Store.Broadcasts(ctx, day, p.Service, from, before, looksAtOnce)
			if gone(err) {
				break
			}
			if err != nil {
				return page, err
			}
			for _, b := range found {
				if !p.wants(b) || p.State != "" && b.State != p.State && (p.State != isPaused || b.State != running) {
					continue
				}
				ref, ok := fanfare.ParseEventRef(b.Event)
				if !ok {
					continue
				}
				if len(page.List) == p.Limit {
					page.Next = page.List[len(page.List)-1].Event
					return page, nil
				}
				now, err := t.soFar(ctx, ref, b)
				if err != nil && !gone(err) {
					return page, err
				}
				if err == nil && (p.State == "" || now.State == p.State) {
					page.List = append(page.List, *now)
				}
			}
			before = from
			if len(found) == looksAtOnce {
				ref, _ := fanfare.ParseEventRef(found[looksAtOnce-1].Event)
				before = ref.Seq
			}
			if before > first && over() {
				page.Next = fanfare.EventRef{Day: day, Seq: before}.String()
				page.SearchedUntil, err = t.keptAt(ctx, day, before, found)
				return page, err
			}
		}
	}
	return page, nil
}

// keptAt returns the time of the last of some broadcasts or, if there are none, of one that is soon after a sequence.
func (t *Traces) keptAt(ctx context.Context, day fanfare.Day, seq fanfare.EventSeq, found []*fanfare.Broadcast) (time.Time, error) {
	if len(found) == 0 {
		var err error
		if found, err = t.Store.Broadcasts(ctx, day, "", seq, seq+seqsAtOnce, 1); err != nil {
			return time.Time{}, err
		}
	}
	if len(found) == 0 {
		return (day + 1).Time(), nil
	}
	return found[len(found)-1].Stages.Kept, nil
}
