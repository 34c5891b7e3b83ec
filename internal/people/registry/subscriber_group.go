package registry

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// Changes of subscribers in a group. Pointers to rows are valid until a row is added; after that
// the rows must be looked up again.

// subscriberByID returns the subscriber that has, or had, a public id; nil if there is none.
func (g *group) subscriberByID(service uint32, id string) (*control.SubscriberRecord, error) {
	for _, p := range g.w.r.candidates(service, id) {
		s, err := g.subscriber(p)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		if s != nil && people.HasPublicID(s, service, id) && s.Flags&control.FlagErasing == 0 {
			return s, nil
		}
	}
	return nil, nil
}

// availableSubscriber returns the subscriber with an id, and the error for users if it was merged
// or deleted.
func (g *group) availableSubscriber(service uint32, id string) (*control.SubscriberRecord, error) {
	s, err := g.subscriberByID(service, id)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, people.UnknownSubscriber(id)
	case s.Flags&control.FlagMerged != 0:
		into, err := g.subscriber(s.Subscriber)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		return nil, mergedError(id, into)
	}
	return s, g.w.r.checkAvailable(context.Background(), s, id)
}

// addressRow returns the row with an address, or nil.
func (g *group) addressRow(service uint32, a *checkedAddress) (*control.SubscriberRecord, error) {
	first, others := g.w.r.addresses.Lookup(a.hash)
	if first == 0 {
		return nil, nil
	}
	for _, p := range append(others, first) {
		s, err := g.subscriber(p)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		if s != nil && s.Service == service && s.HasAddress() && s.Kind == a.kind && s.Address == a.address {
			return s, nil
		}
	}
	return nil, nil
}

// addRow adds a row, also to the indexes. at points to its address.
func (g *group) addRow(partition int, s control.SubscriberRecord, addressHash uint64, at string) (fanfare.RowID, error) {
	if s.HasAddress() {
		if err := g.w.r.checkNotSuppressed(s.Service, s.Kind, s.Address, at); err != nil {
			return 0, err
		}
	}
	local := &g.w.nextSubscriber[partition]
	if *local > fanfare.MaxLocal {
		return 0, partitionFullError()
	}
	g.changeCount++
	s.Place = fanfare.NewRowID(partition, *local)
	*local++
	g.batch.Subscribers[partition] = append(g.batch.Subscribers[partition], s)
	if s.HasAddress() {
		g.insert(&g.w.r.addresses, addressHash, s.Place)
		g.insertFoldedAddress(s.Service, s.Kind, s.Address, s.Place)
	}
	if s.ID != "" {
		g.insert(&g.w.r.subscribers, g.w.r.hash.SubscriberID(s.Service, s.ID), s.Place)
	}
	return s.Place, nil
}

// updateRow writes a changed row. A new row is written in its final state.
func (g *group) updateRow(s *control.SubscriberRecord) {
	g.changeCount++
	if g.subscribers[s.Place] == s {
		g.batch.SubscriberUpdates = append(g.batch.SubscriberUpdates, s)
	}
}

// addressConflict returns the error for an address of another subscriber.
func (g *group) addressConflict(at string, row *control.SubscriberRecord) error {
	head, err := g.subscriber(row.Head())
	if err != nil {
		return g.w.r.readError(err)
	}
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Message: "the address belongs to subscriber " + inputerror.Quote(people.PublicSubscriberID(head)),
		Hint: "use that subscriber, or merge the two"}
}

// addAddress adds an address to a subscriber, and returns its row.
func (g *group) addAddress(head fanfare.RowID, a *checkedAddress, at string) (fanfare.RowID, error) {
	owner, err := g.subscriber(head)
	if err != nil {
		return 0, g.w.r.readError(err)
	}
	row, err := g.addressRow(owner.Service, a)
	if err != nil {
		return 0, err
	}
	if row != nil {
		if row.Head() != head {
			return 0, g.addressConflict(at, row)
		}
		return row.Place, nil
	}
	list := owner.Rows()
	for _, p := range list { // the subscriber had the address before
		row, err := g.subscriber(p.Place)
		if err != nil {
			return 0, g.w.r.readError(err)
		}
		if row != nil && row.Kind == a.kind && row.Address == a.address && row.Flags&control.FlagAddressGone != 0 {
			if err := g.w.r.checkNotSuppressed(row.Service, row.Kind, row.Address, at); err != nil {
				return 0, err
			}
			row.Flags &^= control.FlagAddressGone
			g.updateRow(row)
			g.insert(&g.w.r.addresses, a.hash, row.Place)
			g.insertFoldedAddress(row.Service, row.Kind, row.Address, row.Place)
			return row.Place, nil
		}
	}
	place, err := g.addRow(a.partition, control.SubscriberRecord{Service: owner.Service, Kind: a.kind, Address: a.address, Subscriber: head}, a.hash, at)
	if err != nil {
		return 0, err
	}
	if owner, err = g.subscriber(head); err != nil {
		return 0, g.w.r.readError(err)
	}
	owner.SetRows(append(list, control.AddressRow{Place: place, Label: a.label}))
	g.updateRow(owner)
	return place, nil
}

// endAddress ends the subscriptions of an address and removes it from its subscriber.
func (g *group) endAddress(place fanfare.RowID) ([]fanfare.RowID, error) {
	row, err := g.subscriber(place)
	if err != nil {
		return nil, g.w.r.readError(err)
	}
	row.Flags |= control.FlagAddressGone
	g.updateRow(row)
	g.removeAddress(row)
	return g.endAll(place, people.Ending{Source: people.SourceAPI, Reason: people.ReasonAddress, Text: "the address was removed"})
}

// endAll ends the active and paused subscriptions of a row, and returns them.
func (g *group) endAll(row fanfare.RowID, how people.Ending) ([]fanfare.RowID, error) {
	ended, err := g.subscriptionsOf(row, func(s *control.SubscriptionRecord) bool { return !s.Ended })
	if err != nil {
		return nil, err
	}
	for _, p := range ended {
		if err := g.endRow(p, how); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

// subscriptionsOf returns the subscriptions of a row that want accepts, including those that the
// group made.
func (g *group) subscriptionsOf(row fanfare.RowID, want func(*control.SubscriptionRecord) bool) ([]fanfare.RowID, error) {
	g.w.waitCommit() // the index does not have that group yet
	if g.aborted {
		return nil, errAborted
	}
	kept := g.w.r.subscriptionsOfRow.Of(row)
	if err := g.readSubscriptions(context.Background(), slices.DeleteFunc(slices.Clone(kept), g.hasSubscription)); err != nil {
		return nil, g.w.r.readError(err)
	}
	var places []fanfare.RowID
	for _, p := range kept {
		if s := g.subscriptions[p]; s != nil && want(s) {
			places = append(places, p)
		}
	}
	made := g.batch.Subscriptions[row.Partition()]
	for i := range made {
		if s := &made[i]; s.Subscriber == row && want(s) {
			places = append(places, s.Place)
		}
	}
	return places, nil
}

// hasSubscription reports whether the group has read a subscription.
func (g *group) hasSubscription(p fanfare.RowID) bool { return g.subscriptions[p] != nil }

// replaceSubscriber changes the subscriber to p. It returns the subscriptions that ended because
// their address was removed.
func (g *group) replaceSubscriber(place fanfare.RowID, p *people.SubscriberPut, wants []checkedAddress) (ended []fanfare.RowID, err error) {
	var list []control.AddressRow
	for i := range wants {
		at, err := g.addAddress(place, &wants[i], inputerror.Pointer("addresses", strconv.Itoa(i), "address"))
		if err != nil {
			return nil, err
		}
		list = append(list, control.AddressRow{Place: at, Label: wants[i].label})
	}
	head, err := g.subscriber(place)
	if err != nil {
		return nil, g.w.r.readError(err)
	}
	for _, old := range head.Rows() {
		if slices.ContainsFunc(list, func(p control.AddressRow) bool { return p.Place == old.Place }) {
			continue
		}
		list = append(list, control.AddressRow{Place: old.Place})
		row, err := g.subscriber(old.Place)
		if err != nil {
			return nil, g.w.r.readError(err)
		}
		if row != nil && row.HasAddress() {
			gone, err := g.endAddress(old.Place)
			if err != nil {
				return nil, err
			}
			ended = append(ended, gone...)
		}
	}
	was := *head
	head.SetRows(list)
	head.Locale, head.TimeZone, head.Attributes = p.Locale, p.TimeZone, p.Attributes
	head.Flags &^= control.FlagDeleted
	if head.Locale != was.Locale || head.TimeZone != was.TimeZone || head.Flags != was.Flags ||
		!bytes.Equal(head.Attributes, was.Attributes) || !bytes.Equal(head.RowsJSON, was.RowsJSON) {
		g.updateRow(head)
	}
	if head.TimeZone != was.TimeZone {
		err = g.updateTimeZone(place)
	}
	return ended, err
}

// ownerByID finds the row for a put that names the subscriber. If the put has both a subscriber
// and an address, it creates what is missing.
func (g *group) ownerByID(w *subscriptionChange) (place fanfare.RowID, isNew bool, err error) {
	head, err := g.subscriberByID(w.topic.ServiceNumber, w.put.Subscriber)
	if err != nil {
		return 0, false, err
	}
	if head != nil && head.Flags&control.FlagMerged != 0 {
		_, err := g.availableSubscriber(w.topic.ServiceNumber, w.put.Subscriber)
		return 0, false, inputerror.WithPointer("/subscriber", err)
	}
	if w.put.To == "" {
		if head == nil {
			return 0, false, inputerror.Invalid("/subscriber", "put the subscriber first, or set \"to\" to its address", "the service has no subscriber %s", inputerror.Quote(w.put.Subscriber))
		}
		if place, err = g.defaultAddress(head, w); err == nil {
			g.updateSubscriber(head, w)
		}
		return place, false, err
	}
	a := checkedAddress{kind: w.kind, partition: int(w.partition), address: w.address, hash: g.w.r.hash.Address(w.topic.ServiceNumber, w.kind, w.address)}
	if head != nil {
		at := head.Place
		if place, err = g.addAddress(at, &a, "/to"); err != nil {
			return 0, false, err
		}
		if head, err = g.subscriber(at); err != nil {
			return 0, false, g.w.r.readError(err)
		}
		g.updateSubscriber(head, w)
		return place, false, nil
	}
	if _, ours := people.ParseSubscriberID(w.put.Subscriber); ours {
		return 0, false, inputerror.Invalid("/subscriber", "choose an id of your own, or omit it", "the service has no subscriber %s", inputerror.Quote(w.put.Subscriber))
	}
	row, err := g.addressRow(w.topic.ServiceNumber, &a)
	if err != nil {
		return 0, false, err
	}
	if row != nil {
		return 0, false, g.addressConflict("/to", row)
	}
	place, err = g.addRow(a.partition, control.SubscriberRecord{Service: w.topic.ServiceNumber, Kind: a.kind, Address: a.address, ID: w.put.Subscriber,
		Locale: w.put.Locale, TimeZone: w.put.TimeZone, Attributes: w.put.Attributes}, a.hash, "/to")
	return place, err == nil, err
}

// defaultAddress returns the first address of the subscriber for the kind of the channel.
func (g *group) defaultAddress(head *control.SubscriberRecord, w *subscriptionChange) (fanfare.RowID, error) {
	id := people.PublicSubscriberID(head)
	for _, p := range head.Rows() {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return 0, g.w.r.readError(err)
		}
		if row != nil && row.HasAddress() && row.Kind == w.kind {
			return row.Place, nil
		}
	}
	return 0, inputerror.Invalid("/subscriber", "add an address to the subscriber, or set \"to\" to an address", "subscriber %s has no %s address", inputerror.Quote(id), addresskind.Names[w.kind])
}
