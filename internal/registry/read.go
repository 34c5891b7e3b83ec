package registry

import (
	"bytes"
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Subscription returns the full record of a subscription by its public id, ended
// ones too.
func (r *Registry) Subscription(ctx context.Context, service, id string) (Subscription, error) {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return Subscription{}, err
	}
	var places []fanfare.Place
	if place, ok := fanfare.ParseSubscriptionID(id); ok {
		places = []fanfare.Place{place}
		id = ""
	} else {
		first, others := r.identities.lookup(r.hash.clientID(svc.number, id))
		places = sorted(append(others, first))
	}
	var found *SubscriptionRecord
	err = r.opt.Store.SubscriptionRecords(ctx, places, func(s *SubscriptionRecord) error {
		if s.ID == id && r.serviceOf(s) == svc.number {
			kept := *s
			kept.Params, kept.Data = bytes.Clone(s.Params), bytes.Clone(s.Data)
			found = &kept
		}
		return nil
	})
	switch {
	case err != nil:
		return Subscription{}, r.unreadable(err)
	case found == nil && id == "":
		return Subscription{}, unknownSubscription(fanfare.SubscriptionID(places[0]))
	case found == nil:
		return Subscription{}, unknownSubscription(id)
	}
	return r.fullRecord(ctx, found)
}

func (r *Registry) fullRecord(ctx context.Context, s *SubscriptionRecord) (Subscription, error) {
	conf := r.config.Load()
	topic := conf.topics[s.Topic]
	full := Subscription{
		ID: publicID(s), Place: s.Place, Owner: s.Subscriber, Service: topic.Service, Topic: topic.Name,
		Filter: r.filters.text(s.Filter), Rule: topic.ruleName(s.Rule), Params: s.Params, Data: s.Data,
		State: "active", CreatedAt: time.Unix(0, s.CreatedAt).UTC(), CreatedSeq: s.CreatedSeq,
	}
	if c := conf.channels[s.Channel]; c != nil {
		full.Channel = c.Name
	}
	if s.Ended {
		full.State, full.EndedAt, full.EndedSeq, full.Reason = "ended", time.Unix(0, s.EndedAt).UTC(), s.EndedSeq, s.Reason
	}
	err := r.opt.Store.SubscriberRecords(ctx, []fanfare.Place{s.Subscriber}, func(p *SubscriberRecord) error {
		full.Subscriber, full.To = subscriberID(p), p.Address
		return nil
	})
	if err != nil {
		return Subscription{}, r.unreadable(err)
	}
	return full, nil
}

func publicID(s *SubscriptionRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return fanfare.SubscriptionID(s.Place)
}

func subscriberID(s *SubscriberRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return SubscriberID(s.Place)
}

// FindSubscriber returns the place of a subscriber by address or by public id.
func (r *Registry) FindSubscriber(ctx context.Context, service, address string) (fanfare.Place, error) {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return 0, err
	}
	var places []fanfare.Place
	byID, isID := ParseSubscriberID(address)
	if isID {
		places = []fanfare.Place{byID}
	} else {
		if address, err = r.opt.ParseAddress(address); err != nil {
			return 0, invalid("", "give an address, or an id that begins with "+subscriberPrefix, "%s", reason(err))
		}
		first, others := r.addresses.lookup(r.hash.address(svc.number, kindMail, address))
		places = sorted(append(others, first))
	}
	var found fanfare.Place
	err = r.opt.Store.SubscriberRecords(ctx, places, func(s *SubscriberRecord) error {
		if s.Service == svc.number && (isID && s.ID == "" || s.Kind == kindMail && s.Address == address) {
			found = s.Place
		}
		return nil
	})
	if err != nil {
		return 0, r.unreadable(err)
	}
	if found == 0 {
		return 0, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no subscriber " + quote(address)}
	}
	return found, nil
}

// Subscribers visits the rows at places, which must be sorted ascending, in that
// order. Missing ones are skipped. An error of visit ends it and is returned.
func (r *Registry) Subscribers(ctx context.Context, places []fanfare.Place, visit func(*SubscriberRow) error) error {
	var row SubscriberRow
	return r.opt.Store.SubscriberRecords(ctx, places, func(s *SubscriberRecord) error {
		row = SubscriberRow{Place: s.Place, ID: subscriberID(s), Address: s.Address, Locale: s.Locale,
			TimeZone: s.TimeZone, Attributes: s.Attributes}
		return visit(&row)
	})
}

// Subscriptions visits the rows at places, which must be sorted ascending, in
// that order. Missing ones are skipped. An error of visit ends it and is
// returned.
func (r *Registry) Subscriptions(ctx context.Context, places []fanfare.Place, visit func(*SubscriptionRow) error) error {
	conf := r.config.Load()
	var row SubscriptionRow
	return r.opt.Store.SubscriptionRecords(ctx, places, func(s *SubscriptionRecord) error {
		row = SubscriptionRow{Place: s.Place, Subscriber: s.Subscriber, ID: publicID(s), Params: s.Params, Data: s.Data,
			Live: !s.Ended && r.live.has(s.Place)}
		if s.Rule != 0 {
			if t := conf.topics[s.Topic]; t != nil {
				row.Rule = t.ruleName(s.Rule)
			}
		}
		return visit(&row)
	})
}
