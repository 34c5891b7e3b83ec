package registry

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// Subscription returns the full record of a subscription by its public id, ended
// ones too.
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
		first, others := r.identities.Lookup(r.hash.clientID(svc.Number, id))
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
		return people.Subscription{}, r.unreadable(err)
	case found == nil && id == "":
		return people.Subscription{}, people.UnknownSubscription(fanfare.SubscriptionID(places[0]))
	case found == nil:
		return people.Subscription{}, people.UnknownSubscription(id)
	}
	full := r.fullRecord(found)
	owners, err := r.owners(ctx, []fanfare.RowID{found.Subscriber})
	if err != nil {
		return people.Subscription{}, r.unreadable(err)
	}
	full.SetOwner(owners[found.Subscriber])
	return full, nil
}

// fullRecord is what users see of a subscription, but for its owner.
func (r *Registry) fullRecord(s *control.SubscriptionRecord) people.Subscription {
	conf := r.Snapshot()
	topic := conf.Topics[s.Topic]
	full := people.Subscription{
		ID: people.PublicSubscriptionID(s), Place: s.Place, Owner: s.Subscriber, Service: topic.Service, Topic: topic.Name,
		Filter: r.filters.text(s.Filter), Rule: topic.RuleName(s.Rule), Params: s.Params, Data: s.Data,
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

// Subscriptions visits the rows at places, which must be sorted ascending, in
// that order. Missing ones are skipped. An error of visit ends it and is
// returned.
func (r *Registry) Subscriptions(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriptionRow) error) error {
	conf := r.Snapshot()
	var row people.SubscriptionRow
	return r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
		row = people.SubscriptionRow{Place: s.Place, Subscriber: s.Subscriber, ID: people.PublicSubscriptionID(s), Params: s.Params, Data: s.Data,
			Slot: s.Slot, Topic: s.Topic, Live: !s.Ended && r.live.Has(s.Place)}
		if s.Rule != 0 {
			if t := conf.Topics[s.Topic]; t != nil {
				row.Rule = t.RuleName(s.Rule)
			}
		}
		return visit(&row)
	})
}
