package registry

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/people/placeindex"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// NewNotices gives a word when there is something to tell since the last.
func (r *Registry) NewNotices() <-chan struct{} { return r.newNotices }

// subscribedReservedTopics are the topics of a name in which somebody hears, of one service or of all.
func (r *Registry) subscribedReservedTopics(service uint32, name string) (all []*catalog.Topic) {
	for _, t := range r.ReservedTopics() {
		if t.Name == name && (service == suppression.AllServices || t.ServiceNumber == service) && r.opt.Conditions.Len(t.ConditionKey()) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// addNotice notes what happened to a subscription, where its service hears of that. What
// happens to those of who hears is told to nobody, and nobody is told of whom it is to
// forget.
func (g *group) addNotice(kind control.NoticeKind, s *control.SubscriptionRecord, source, reason string, fields ...string) {
	r := g.w.r
	t := r.Snapshot().Topics[s.Topic]
	if t == nil || reason == people.ReasonErased || fanfare.ReservedTopic(t.Name) || len(r.subscribedReservedTopics(t.ServiceNumber, fanfare.TopicSubscriptions)) == 0 {
		return
	}
	g.batch.Notices = append(g.batch.Notices, control.Notice{Kind: kind, Source: source, Reason: reason, At: g.batch.At, Service: t.ServiceNumber,
		Subscription: s.Place, Topic: s.Topic, Channel: s.Channel, Fields: fields, Subscriber: s.Subscriber})
}

// addPutNotice notes what a person put themselves.
func (g *group) addPutNotice(w *subscriptionChange, fields []string) {
	if w.put.By == "" || !w.created && len(fields) == 0 {
		return
	}
	s, err := g.subscription(w.place)
	switch {
	case err != nil || s == nil: // it was decided on just now, and is at hand
	case w.created:
		g.addNotice(control.NoticeSubscribed, s, w.put.By, "")
	default:
		g.addNotice(control.NoticeChanged, s, w.put.By, "", fields...)
	}
}

// addSuppressionNotices notes what the list says anew of an address, for each service that
// hears of that and has the address; of one that is a hash alone nobody can be told.
func (g *group) addSuppressionNotices(kind control.NoticeKind, s *suppression.Record, source string) error {
	if s.Address == "" {
		return nil
	}
	for _, t := range g.w.r.subscribedReservedTopics(s.Service, fanfare.TopicSuppressions) {
		rows, err := g.rowsWithAddress(t.ServiceNumber, s.Kind, s.Address)
		if err != nil {
			return err
		}
		for _, row := range rows {
			g.batch.Notices = append(g.batch.Notices, control.Notice{Kind: kind, Source: source, Reason: s.Reason, At: g.batch.At, Service: t.ServiceNumber,
				Subscriber: row.Place, Address: s.Kind, Until: s.Until, AllServices: s.Service == suppression.AllServices})
		}
	}
	return nil
}

// rowsWithAddress returns the rows that have an address, however they spell it, by place.
func (g *group) rowsWithAddress(service uint32, kind uint8, address string) (rows []*control.SubscriberRecord, err error) {
	small := suppression.Fold(kind, address)
	for _, p := range g.w.r.rowsWithAddressHash(service, kind, small) {
		row, err := g.subscriber(p)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		if row != nil && row.Service == service && row.HasAddress() && row.Kind == kind && suppression.Fold(kind, row.Address) == small {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rowsWithAddressHash are the places of those who have an address that is small when it is
// folded, and of others whose address has the same hash.
func (r *Registry) rowsWithAddressHash(service uint32, kind uint8, small string) (places []fanfare.RowID) {
	hash := r.hash.Address(service, kind, small)
	for _, t := range []*placeindex.HashIndex{&r.addresses, &r.foldedAddresses} {
		if first, others := t.Lookup(hash); first != 0 {
			places = append(append(places, first), others...)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// insertFoldedAddress has a row found by its address however that is spelled; what is spelled as
// it is folded is found anyway.
func (g *group) insertFoldedAddress(service uint32, kind uint8, address string, place fanfare.RowID) {
	if small := suppression.Fold(kind, address); small != address {
		g.insert(&g.w.r.foldedAddresses, g.w.r.hash.Address(service, kind, small), place)
	}
}

// removeAddress has a row found by its address no more.
func (g *group) removeAddress(row *control.SubscriberRecord) {
	r := g.w.r
	g.remove(&r.addresses, r.hash.Address(row.Service, row.Kind, row.Address), row.Place)
	if small := suppression.Fold(row.Kind, row.Address); small != row.Address {
		g.remove(&r.foldedAddresses, r.hash.Address(row.Service, row.Kind, small), row.Place)
	}
}

// prefetchAddressRows has the rows at hand of who may have one of many addresses.
func (g *group) prefetchAddressRows(records []suppression.Record) error {
	r := g.w.r
	var places []fanfare.RowID
	for i := range records {
		s := &records[i]
		for _, t := range r.subscribedReservedTopics(s.Service, fanfare.TopicSuppressions) {
			for _, p := range r.rowsWithAddressHash(t.ServiceNumber, s.Kind, suppression.Fold(s.Kind, s.Address)) {
				if g.subscribers[p] == nil {
					places = append(places, p)
				}
			}
		}
	}
	if err := g.readSubscribers(context.Background(), control.SortPlaces(places)); err != nil {
		return r.readError(err)
	}
	if g.aborted {
		return errAborted
	}
	return nil
}

// NoticeNames are what is called how that news are of. Whoever is being forgotten, and
// what they were subscribed to, has no names but those that we made.
type NoticeNames struct {
	Service string
	Topic   string // deleted ones have names, too
	Channel string

	Subscription string // public id
	Subscriber   string // public id
	Address      string // its kind, mail or url
}

// NoticeNames returns the names of each of several news.
func (r *Registry) NoticeNames(ctx context.Context, news []control.Notice) ([]NoticeNames, error) {
	var rows, subscriptions []fanfare.RowID
	for i := range news {
		rows = append(rows, news[i].Subscriber)
		if news[i].Subscription != 0 {
			subscriptions = append(subscriptions, news[i].Subscription)
		}
	}
	who, err := r.namesOfOwners(ctx, control.SortPlaces(rows))
	if err != nil {
		return nil, r.readError(err)
	}
	what := map[fanfare.RowID]string{}
	err = r.opt.Store.SubscriptionRecords(ctx, control.SortPlaces(subscriptions), func(s *control.SubscriptionRecord) error {
		what[s.Place] = people.PublicSubscriptionID(s)
		return nil
	})
	if err != nil {
		return nil, r.readError(err)
	}
	conf := r.Snapshot()
	names := make([]NoticeNames, len(news))
	for i := range news {
		n, to := &news[i], &names[i]
		to.Service, to.Address, to.Subscription = conf.ServiceNames[n.Service], addresskind.Names[n.Address], what[n.Subscription]
		var known bool
		if to.Subscriber, known = who[n.Subscriber]; !known {
			to.Subscriber = people.SubscriberID(n.Subscriber)
			if n.Subscription != 0 {
				to.Subscription = fanfare.SubscriptionID(n.Subscription)
			}
		}
		if t := conf.Topics[n.Topic]; t != nil {
			to.Topic = t.Name
		}
		if c := conf.Channels[n.Channel]; c != nil {
			to.Channel = c.Name
		}
	}
	return names, nil
}

// namesOfOwners returns the public ids of who has some rows, by row; none of who is
// being forgotten.
func (r *Registry) namesOfOwners(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]string, error) {
	rows, err := r.records(ctx, places)
	if err != nil {
		return nil, err
	}
	var heads []fanfare.RowID
	for _, row := range rows {
		heads = append(heads, row.Head())
	}
	owners, err := r.records(ctx, control.SortPlaces(heads))
	if err != nil {
		return nil, err
	}
	names := make(map[fanfare.RowID]string, len(rows))
	for place, row := range rows {
		if head := owners[row.Head()]; head != nil && (row.Flags|head.Flags)&(control.FlagErasing|control.FlagErased) == 0 {
			names[place] = people.PublicSubscriberID(head)
		}
	}
	return names, nil
}

// HasReservedTopic reports whether a subscription is one to a topic that Fanfare publishes
// to: what becomes of its messages is told to nobody.
func (r *Registry) HasReservedTopic(s *people.SubscriptionRow) bool {
	t := r.Snapshot().Topics[s.Topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
