package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// Subscription returns the subscription with a public id, even an ended one.
func (r *Registry) Subscription(ctx context.Context, service, id string) (people.Subscription, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return people.Subscription{}, err
	}
	var places []fanfare.RowID
	if place, ok := fanfare.ParseSubscriptionID(id); ok {
		places = []fanfare.RowID{place}
		id = ""
	} else {
		first, others := r.identities.Lookup(r.hash.ClientID(svc.Number, id))
		places = control.SortPlaces(append(others, first))
	}
	var found *control.SubscriptionRecord
	err = r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
		if s.ID == id && r.serviceOf(s) == svc.Number {
			kept := cloneSubscription(s)
			found = &kept
		}
		return nil
	})
	switch {
	case err != nil:
		return people.Subscription{}, r.readError(err)
	case found == nil && id == "":
		return people.Subscription{}, people.UnknownSubscription(fanfare.SubscriptionID(places[0]))
	case found == nil:
		return people.Subscription{}, people.UnknownSubscription(id)
	}
	full := r.fullSubscription(found)
	owners, err := r.owners(ctx, []fanfare.RowID{found.Subscriber})
	if err != nil {
		return people.Subscription{}, r.readError(err)
	}
	full.SetOwner(owners[found.Subscriber])
	return full, nil
}

// fullSubscription returns the public form of a subscription without its owner.
func (r *Registry) fullSubscription(s *control.SubscriptionRecord) people.Subscription {
	conf := r.Snapshot()
	topic := conf.Topics[s.Topic]
	full := people.Subscription{
		ID: people.PublicSubscriptionID(s), Place: s.Place, Owner: s.Subscriber, Service: topic.Service, Topic: topic.Name,
		Filter: r.filters.Text(s.Filter), Rule: topic.RuleName(s.Rule), Params: s.Params, Data: s.Data,
		Title: s.Title, Description: s.Description,
		Cadence: r.cadenceOf(s).String(), State: people.StateActive, CreatedAt: time.Unix(0, s.CreatedAt).UTC(), CreatedSeq: s.CreatedSeq,
	}
	if c := conf.Channels[s.Channel]; c != nil {
		full.Channel = c.Name
	}
	if s.PausedSeq != 0 {
		full.PausedSeq, full.ResumedSeq = s.PausedSeq, s.ResumedSeq
	}
	if s.Paused && !s.Ended {
		full.State, full.PausedAt = people.StatePaused, time.Unix(0, s.PausedAt).UTC()
	}
	if s.Ended {
		full.State, full.EndedAt, full.EndedSeq, full.Reason = people.StateEnded, time.Unix(0, s.EndedAt).UTC(), s.EndedSeq, s.Reason
	}
	return full
}

// Subscriptions visits the rows at places, which must be sorted, in that order. Missing rows are
// skipped. It stops at an error of visit and returns it.
func (r *Registry) Subscriptions(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriptionRow) error) error {
	conf := r.Snapshot()
	var row people.SubscriptionRow
	return r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
		row = people.SubscriptionRow{Place: s.Place, Subscriber: s.Subscriber, ID: people.PublicSubscriptionID(s), Params: s.Params, Data: s.Data,
			Slot: s.Slot, Topic: s.Topic, Live: !s.Ended && r.live.Has(s.Place)}
		row.Title, row.Description = s.Title, s.Description
		if t := conf.Topics[s.Topic]; t != nil {
			row.Rule = t.RuleName(s.Rule)
			own := t.LabelsOf(t.Rule(row.Rule))
			row.Title, row.Description = cmp.Or(s.Title, own.Title), cmp.Or(s.Description, own.Description)
		}
		return visit(&row)
	})
}

// A subscriptionQuery is a SubscriptionFilter with numbers in place of names.
type subscriptionQuery struct {
	service, topic uint32
	channel        uint16
	owners         []fanfare.RowID // nil: all

	active, paused, ended bool
}

func (r *Registry) newSubscriptionQuery(ctx context.Context, service string, f *people.SubscriptionFilter) (c subscriptionQuery, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return c, err
	}
	in := func(state string) bool { return f.State == "" || f.State == state }
	c = subscriptionQuery{service: svc.Number, active: in(people.StateActive), paused: in(people.StatePaused), ended: in(people.StateEnded)}
	if f.Topic != "" {
		t := svc.Topics[f.Topic]
		if t == nil {
			return c, inputerror.Invalid("", inputerror.DidYouMean(f.Topic, maps.Keys(svc.Topics), "the service has no topics"), "unknown topic %s", inputerror.Quote(f.Topic))
		}
		c.topic = t.Number
	}
	if f.Channel != "" {
		ch := svc.Channels[f.Channel]
		if ch == nil {
			return c, inputerror.Invalid("", inputerror.DidYouMean(f.Channel, maps.Keys(svc.Channels), "the service has no channels"), "unknown channel %s", inputerror.Quote(f.Channel))
		}
		c.channel = ch.Number
	}
	c.owners = f.Owners
	if f.Subscriber != "" {
		c.owners, err = r.SubscriberPlaces(ctx, service, f.Subscriber)
	}
	return c, err
}

func (c *subscriptionQuery) matches(r *Registry, s *control.SubscriptionRecord) bool {
	switch {
	case s.Ended && !c.ended, !s.Ended && s.Paused && !c.paused, s.Active() && !c.active:
		return false
	}
	if c.topic != 0 && s.Topic != c.topic || c.channel != 0 && s.Channel != c.channel {
		return false
	}
	return r.serviceOf(s) == c.service
}

// SubscriptionPage lists subscriptions by row id, those after the row after. It may return fewer
// than limit even if more follow. next is the start of the next page, 0 at the end.
func (r *Registry) SubscriptionPage(ctx context.Context, service string, f people.SubscriptionFilter, after fanfare.RowID, limit int) (page []people.Subscription, next fanfare.RowID, err error) {
	c, err := r.newSubscriptionQuery(ctx, service, &f)
	if err != nil {
		return nil, 0, err
	}
	rows, next, err := r.queryRows(ctx, &c, after, limit)
	if err != nil {
		return nil, 0, r.readError(err)
	}
	owners, err := r.owners(ctx, ownersOf(rows))
	if err != nil {
		return nil, 0, r.readError(err)
	}
	page = make([]people.Subscription, len(rows))
	for i := range rows {
		page[i] = r.fullSubscription(&rows[i])
		page[i].SetOwner(owners[rows[i].Subscriber])
	}
	return page, next, nil
}

func ownersOf(rows []control.SubscriptionRecord) []fanfare.RowID {
	places := make([]fanfare.RowID, len(rows))
	for i := range rows {
		places[i] = rows[i].Subscriber
	}
	return places
}

// queryRows reads the rows of one page.
func (r *Registry) queryRows(ctx context.Context, c *subscriptionQuery, after fanfare.RowID, limit int) (rows []control.SubscriptionRecord, next fanfare.RowID, err error) {
	if c.owners != nil {
		return r.rowsOfOwners(ctx, c, after, limit)
	}
	seen := 0
	err = r.opt.Store.ScanSubscriptions(ctx, control.Range{First: after + 1, Last: ^fanfare.RowID(0)}, func(s *control.SubscriptionRecord) error {
		if len(rows) == limit || seen == maxScanRows {
			next = after
			return errEnough
		}
		seen++
		after = s.Place
		if c.matches(r, s) {
			rows = append(rows, cloneSubscription(s))
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, next, err
}

// rowsOfOwners reads the subscriptions of a few subscriber rows.
func (r *Registry) rowsOfOwners(ctx context.Context, c *subscriptionQuery, after fanfare.RowID, limit int) (rows []control.SubscriptionRecord, next fanfare.RowID, err error) {
	var places []fanfare.RowID
	for _, owner := range c.owners {
		places = append(places, r.subscriptionsOfRow.Of(owner)...)
	}
	places = slices.DeleteFunc(control.SortPlaces(places), func(p fanfare.RowID) bool { return p <= after })
	err = r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
		if !c.matches(r, s) {
			return nil
		}
		if len(rows) == limit {
			next = rows[limit-1].Place
			return errEnough
		}
		rows = append(rows, cloneSubscription(s))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, next, err
}

// cloneSubscription copies a row that is valid only during a visit.
func cloneSubscription(s *control.SubscriptionRecord) control.SubscriptionRecord {
	kept := *s
	kept.Params, kept.Data, kept.PastSlots = bytes.Clone(s.Params), bytes.Clone(s.Data), bytes.Clone(s.PastSlots)
	return kept
}

// exportPageRows is the number of subscriptions that an export holds in memory.
const exportPageRows = 4096

// ExportSubscriptions visits the subscriptions that f selects, except ended ones, as puts that
// create them again in an empty service. p is valid until visit returns. It reads a few thousand
// at a time, so that changes in the meantime may or may not be included. Generated ids are left
// out, because the import generates others.
func (r *Registry) ExportSubscriptions(ctx context.Context, service string, f people.SubscriptionFilter, visit func(p *people.SubscriptionPut) error) error {
	c, err := r.newSubscriptionQuery(ctx, service, &f)
	if err != nil {
		return err
	}
	c.ended = false
	for after := fanfare.RowID(0); ; {
		rows, next, err := r.queryRows(ctx, &c, after, exportPageRows)
		if err != nil {
			return r.readError(err)
		}
		people, err := r.subscriberRows(ctx, ownersOf(rows))
		if err != nil {
			return r.readError(err)
		}
		for i := range rows {
			p := r.newPut(&rows[i], people[rows[i].Subscriber])
			if err := visit(&p); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		after = next
	}
}

// subscriberRows reads the subscriber rows that delivery uses.
func (r *Registry) subscriberRows(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]people.SubscriberRow, error) {
	rows := make(map[fanfare.RowID]people.SubscriberRow, len(places))
	err := r.Subscribers(ctx, control.SortPlaces(places), func(s *people.SubscriberRow) error {
		kept := *s
		kept.Attributes = bytes.Clone(s.Attributes)
		rows[s.Place] = kept
		return nil
	})
	return rows, err
}

// newPut returns the put that creates a subscription.
func (r *Registry) newPut(s *control.SubscriptionRecord, of people.SubscriberRow) people.SubscriptionPut {
	full := r.fullSubscription(s)
	p := people.SubscriptionPut{ID: s.ID, Topic: full.Topic, Channel: full.Channel, To: of.Address, Filter: full.Filter, Rule: full.Rule, Params: full.Params, Data: full.Data, Title: full.Title, Description: full.Description,
		Locale: of.Locale, TimeZone: of.TimeZone, Attributes: of.Attributes}
	if s.Paused {
		p.State = people.StatePaused
	}
	if c := r.cadenceOf(s); c != r.Snapshot().Topics[s.Topic].Cadence {
		p.Cadence = c.String()
	}
	if _, ours := people.ParseSubscriberID(of.ID); !ours {
		p.Subscriber = of.ID
	}
	return p
}
