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

// NewNotices returns a channel that receives a value after new notices are stored.
func (r *Registry) NewNotices() <-chan struct{} { return r.newNotices }

// subscribedReservedTopics returns the reserved topics with a name that have subscriptions, of one
// service or of all.
func (r *Registry) subscribedReservedTopics(service uint32, name string) (all []*catalog.Topic) {
	for _, t := range r.ReservedTopics() {
		if t.Name == name && (service == suppression.AllServices || t.ServiceNumber == service) && r.opt.Conditions.Len(t.ConditionKey()) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// addNotice adds a notice about a subscription if its service has subscribed to such notices. It
// adds none about subscriptions to reserved topics or about erased subscribers.
func (g *group) addNotice(kind control.NoticeKind, s *control.SubscriptionRecord, source, reason string, fields ...string) {
	r := g.w.r
	t := r.Snapshot().Topics[s.Topic]
	if t == nil || reason == people.ReasonErased || fanfare.ReservedTopic(t.Name) || len(r.subscribedReservedTopics(t.ServiceNumber, fanfare.TopicSubscriptions)) == 0 {
		return
	}
	g.batch.Notices = append(g.batch.Notices, control.Notice{Kind: kind, Source: source, Reason: reason, At: g.batch.At, Service: t.ServiceNumber,
		Subscription: s.Place, Topic: s.Topic, Channel: s.Channel, Fields: fields, Subscriber: s.Subscriber})
}

// addPutNotice adds a notice about a put by the subscriber.
func (g *group) addPutNotice(w *subscriptionChange, fields []string) {
	if w.put.By == "" || !w.created && len(fields) == 0 {
		return
	}
	s, err := g.subscription(w.place)
	switch {
	case err != nil || s == nil: // the row was decided just now and is in memory
	case w.created:
		g.addNotice(control.NoticeSubscribed, s, w.put.By, "")
	default:
		g.addNotice(control.NoticeChanged, s, w.put.By, "", fields...)
	}
}

// addSuppressionNotices adds a notice for each service that has the address and has subscribed to
// such notices. There is none for an address of which only the hash is stored.
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

// rowsWithAddress returns the rows with an address in any spelling, by row id.
func (g *group) rowsWithAddress(service uint32, kind uint8, address string) (rows []*control.SubscriberRecord, err error) {
	folded := suppression.Fold(kind, address)
	for _, p := range g.w.r.rowsWithAddressHash(service, kind, folded) {
		row, err := g.subscriber(p)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		if row != nil && row.Service == service && row.HasAddress() && row.Kind == kind && suppression.Fold(kind, row.Address) == folded {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rowsWithAddressHash returns the rows whose folded address is equal, and rows with the same
// hash.
func (r *Registry) rowsWithAddressHash(service uint32, kind uint8, folded string) (places []fanfare.RowID) {
	hash := r.hash.Address(service, kind, folded)
	for _, t := range []*placeindex.HashIndex{&r.addresses, &r.foldedAddresses} {
		if first, others := t.Lookup(hash); first != 0 {
			places = append(append(places, first), others...)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// insertFoldedAddress makes a row findable by its folded address. An address that equals its
// folded form needs no second entry.
func (g *group) insertFoldedAddress(service uint32, kind uint8, address string, place fanfare.RowID) {
	if folded := suppression.Fold(kind, address); folded != address {
		g.insert(&g.w.r.foldedAddresses, g.w.r.hash.Address(service, kind, folded), place)
	}
}

// removeAddress removes a row from the indexes of addresses.
func (g *group) removeAddress(row *control.SubscriberRecord) {
	r := g.w.r
	g.remove(&r.addresses, r.hash.Address(row.Service, row.Kind, row.Address), row.Place)
	if folded := suppression.Fold(row.Kind, row.Address); folded != row.Address {
		g.remove(&r.foldedAddresses, r.hash.Address(row.Service, row.Kind, folded), row.Place)
	}
}

// prefetchAddressRows reads the rows that may have one of many addresses.
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

// NoticeNames are the names for a notice. An erased subscriber and its subscriptions have only
// generated ids.
type NoticeNames struct {
	Service string
	Topic   string // also for deleted topics
	Channel string

	Subscription string // public id
	Subscriber   string // public id
	Address      string // kind of address: mail or url
}

// NoticeNames returns the names for notices.
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

// namesOfOwners returns the public ids of the subscribers of rows, by row. Subscribers that are
// being erased are left out.
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

// HasReservedTopic reports whether a subscription belongs to a topic that Fanfare publishes to.
// There are no notices about its messages.
func (r *Registry) HasReservedTopic(s *people.SubscriptionRow) bool {
	t := r.Snapshot().Topics[s.Topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
