package registry

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// ownerNamed finds the row that a subscription goes to whose put names the
// subscriber. What is missing of subscriber and address is made, where the put
// has both.
func (g *group) ownerNamed(w *want) (place fanfare.RowID, isNew bool, err error) {
	head, err := g.named(w.topic.ServiceNumber, w.put.Subscriber)
	if err != nil {
		return 0, false, err
	}
	if head != nil && head.Flags&control.FlagMerged != 0 {
		_, err := g.present(w.topic.ServiceNumber, w.put.Subscriber)
		return 0, false, inputerror.WithPointer("/subscriber", err)
	}
	if w.put.To == "" {
		if head == nil {
			return 0, false, inputerror.Invalid("/subscriber", "put it first, or give its address as to", "the service has no subscriber %s", inputerror.Quote(w.put.Subscriber))
		}
		if place, err = g.defaultAddress(head, w); err == nil {
			g.updateSubscriber(head, w)
		}
		return place, false, err
	}
	a := addressWant{kind: w.kind, partition: int(w.partition), address: w.address, hash: g.w.r.hash.address(w.topic.ServiceNumber, w.kind, w.address)}
	if head != nil {
		at := head.Place
		if place, err = g.give(at, &a, "/to"); err != nil {
			return 0, false, err
		}
		if head, err = g.subscriber(at); err != nil {
			return 0, false, g.w.r.unreadable(err)
		}
		g.updateSubscriber(head, w)
		return place, false, nil
	}
	if _, ours := people.ParseSubscriberID(w.put.Subscriber); ours {
		return 0, false, inputerror.Invalid("/subscriber", "choose an id, or leave it out", "the service has no subscriber %s", inputerror.Quote(w.put.Subscriber))
	}
	row, err := g.addressRow(w.topic.ServiceNumber, &a)
	if err != nil {
		return 0, false, err
	}
	if row != nil {
		return 0, false, g.taken("/to", row)
	}
	place, err = g.add(a.partition, control.SubscriberRecord{Service: w.topic.ServiceNumber, Kind: a.kind, Address: a.address, ID: w.put.Subscriber,
		Locale: w.put.Locale, TimeZone: w.put.TimeZone, Attributes: w.put.Attributes}, a.hash, "/to")
	return place, err == nil, err
}

// defaultAddress is the first of the subscriber's addresses of the channel's kind.
func (g *group) defaultAddress(head *control.SubscriberRecord, w *want) (fanfare.RowID, error) {
	id := people.PublicSubscriberID(head)
	for _, p := range head.Rows() {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return 0, g.w.r.unreadable(err)
		}
		if row != nil && row.HasAddress() && row.Kind == w.kind {
			return row.Place, nil
		}
	}
	return 0, inputerror.Invalid("/subscriber", "add one, or name it as to", "subscriber %s has no %s address", inputerror.Quote(id), addresskind.Names[w.kind])
}
