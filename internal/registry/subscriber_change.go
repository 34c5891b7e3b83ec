package registry

import (
	"context"
	"encoding/json"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// transact runs f on a group of its own while nothing is in flight, and commits
// what it did. It is called by jobs that run.
// The deed that f names goes into the audit with it, where something changed.
func (w *writer) transact(actor *audit.Actor, f func(g *group) error) error {
	g := w.groups[0]
	g.begin()
	defer g.release()
	if err := f(g); err != nil {
		g.undo()
		return err
	}
	if !g.finish() {
		return nil
	}
	if g.deed.Action != "" {
		g.batch.AddAudit(actor, g.deed, nil)
	}
	if err := w.r.commit(&g.batch); err != nil {
		g.undo()
		return err
	}
	w.changeSeq = g.batch.ChangeSeq
	w.seen(g)
	return nil
}

// A change is made by a job of its own, and returns the subscriptions that ended
// by it. It may be called again, when the group that it was in is decided on anew.
type change func(g *group) (ended []fanfare.RowID, err error)

// change has one made in one transaction with whatever else waits, and returns
// when no message is on the wire for what ended by it.
func (r *Registry) change(ctx context.Context, f change) error {
	var ended []fanfare.RowID
	j := &job{actor: audit.ActorOf(ctx), alter: func(g *group) (err error) {
		ended, err = f(g)
		return err
	}}
	if err := r.writer.submit(ctx, j); err != nil {
		return err
	}
	r.awaitOff(ended)
	return nil
}

// changeAlone is change in a transaction of its own.
func (r *Registry) changeAlone(ctx context.Context, f change) error {
	var ended []fanfare.RowID
	err := r.writer.submit(ctx, &job{run: func(w *writer) error {
		return w.transact(audit.ActorOf(ctx), func(g *group) (err error) {
			ended, err = f(g)
			return err
		})
	}})
	if err != nil {
		return err
	}
	r.awaitOff(ended)
	return nil
}

func (r *Registry) awaitOff(ended []fanfare.RowID) {
	if r.opt.AfterEnd != nil {
		for _, place := range ended {
			r.opt.AfterEnd(place)
		}
	}
}

// subscriberDeed is what the audit says of a change of a subscriber. An id that a
// client has made of an address, or one that is being forgotten (""), is not shown.
func subscriberDeed(svc *catalog.ServiceSnapshot, action, id string, place fanfare.RowID) audit.Operation {
	if id == "" || strings.Contains(id, "@") {
		id = people.SubscriberID(place)
	}
	return audit.Operation{Service: svc.Name, Action: action, Kind: kindSubscriber, Name: id}
}

// PutSubscriber creates a subscriber under a client's id, or replaces what is
// known of it. Subscriptions to addresses that it does not have any more end. An
// address that belongs to another subscriber is a Conflict.
func (r *Registry) PutSubscriber(ctx context.Context, service, id string, p people.SubscriberPut, check people.SubscriberCheck) (s people.Subscriber, created bool, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, false, err
	}
	f, err := r.putting(svc, id, p, check, &s, &created)
	if err == nil {
		err = r.change(ctx, f)
	}
	return s, created && err == nil, err
}

// putting is the change that PutSubscriber makes, and sets what it answers.
func (r *Registry) putting(svc *catalog.ServiceSnapshot, id string, p people.SubscriberPut, check people.SubscriberCheck, s *people.Subscriber, created *bool) (change, error) {
	_, ours := people.ParseSubscriberID(id)
	if !ours {
		if err := people.CheckSubscriberID(id); err != nil {
			return nil, err
		}
	}
	wants, err := r.checkSubscriber(svc, &p)
	if err != nil {
		return nil, err
	}
	return func(g *group) ([]fanfare.RowID, error) {
		head, err := g.named(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if head != nil && head.Flags&control.FlagMerged != 0 {
			_, err := g.present(svc.Number, id)
			return nil, err
		}
		if err := g.askSubscriber(check, head); err != nil {
			return nil, err
		}
		*created = head == nil || head.Flags&control.FlagDeleted != 0
		var place fanfare.RowID
		switch {
		case head != nil:
			place = head.Place
		case ours:
			return nil, people.UnknownSubscriber(id)
		default:
			if place, err = g.create(svc, id, wants); err != nil {
				return nil, err
			}
		}
		ended, err := g.become(place, &p, wants)
		if err == nil {
			*s, err = g.shown(place)
		}
		g.deed = subscriberDeed(svc, "update", s.ID, place)
		if *created {
			g.deed.Action = "create"
		}
		return ended, err
	}, nil
}

// CreateSubscriber makes a subscriber with an id of ours.
func (r *Registry) CreateSubscriber(ctx context.Context, service string, p people.SubscriberPut) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	f, err := r.creating(svc, p, &s)
	if err == nil {
		err = r.change(ctx, f)
	}
	return s, err
}

// creating is the change that CreateSubscriber makes, and sets what it answers.
func (r *Registry) creating(svc *catalog.ServiceSnapshot, p people.SubscriberPut, s *people.Subscriber) (change, error) {
	wants, err := r.checkSubscriber(svc, &p)
	if err != nil {
		return nil, err
	}
	return func(g *group) ([]fanfare.RowID, error) {
		place, err := g.create(svc, "", wants)
		if err != nil {
			return nil, err
		}
		ended, err := g.become(place, &p, wants)
		if err == nil {
			*s, err = g.shown(place)
		}
		g.deed = subscriberDeed(svc, "create", s.ID, place)
		return ended, err
	}, nil
}

// PatchSubscriber changes what a JSON merge patch (RFC 7396) names.
func (r *Registry) PatchSubscriber(ctx context.Context, service, id string, patch json.RawMessage, check people.SubscriberCheck) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	err = r.change(ctx, func(g *group) ([]fanfare.RowID, error) {
		head, err := g.present(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if err := g.askSubscriber(check, head); err != nil {
			return nil, err
		}
		is, err := g.shown(head.Place)
		if err != nil {
			return nil, err
		}
		p, err := people.ApplyPatch(&is, patch)
		if err != nil {
			return nil, err
		}
		wants, err := r.checkSubscriber(svc, &p)
		if err != nil {
			return nil, err
		}
		ended, err := g.become(head.Place, &p, wants)
		if err == nil {
			s, err = g.shown(is.Place)
		}
		g.deed = subscriberDeed(svc, "update", is.ID, is.Place)
		return ended, err
	})
	return s, err
}

// DeleteSubscriber ends all subscriptions of a subscriber, and takes it out of
// the lists. Its history is kept, and so are its addresses: who subscribes with
// one of them is this subscriber again. When it returns, no letter for it is on
// the wire. One that is not there is no error, unless check has one.
func (r *Registry) DeleteSubscriber(ctx context.Context, service, id string, check people.SubscriberCheck) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	return r.change(ctx, func(g *group) (ended []fanfare.RowID, err error) {
		head, err := g.named(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if err := g.askSubscriber(check, head); err != nil {
			return nil, err
		}
		if head == nil || head.Flags&(control.FlagDeleted|control.FlagMerged) != 0 {
			return nil, nil
		}
		head.Flags |= control.FlagDeleted
		g.touch(head)
		g.deed = subscriberDeed(svc, "delete", people.PublicSubscriberID(head), head.Place)
		for _, p := range head.Rows() {
			gone, err := g.endAll(p.Place, people.Ending{Source: people.SourceAPI, Reason: people.ReasonDeleted, Text: "the subscriber was deleted"})
			if err != nil {
				return nil, err
			}
			ended = append(ended, gone...)
		}
		return ended, nil
	})
}

// create makes the first row of a subscriber, with the first of its addresses.
func (g *group) create(svc *catalog.ServiceSnapshot, id string, wants []addressWant) (fanfare.RowID, error) {
	s := control.SubscriberRecord{Service: svc.Number, ID: id}
	if len(wants) == 0 {
		if id == "" {
			return 0, inputerror.Invalid("/addresses", "give an address, or choose an id and put it under that", "a subscriber needs an address or an id")
		}
		return g.add(partitionOf(svc.Name, 0, id), s, 0, "")
	}
	first := &wants[0]
	row, err := g.addressRow(svc.Number, first)
	if err != nil {
		return 0, err
	}
	if row != nil {
		return 0, g.taken("/addresses/0/address", row)
	}
	s.Kind, s.Address = first.kind, first.address
	return g.add(first.partition, s, first.hash, "/addresses/0/address")
}

// askSubscriber calls check with the subscriber as it is.
func (g *group) askSubscriber(check people.SubscriberCheck, head *control.SubscriberRecord) error {
	if check == nil {
		return nil
	}
	if head == nil || head.Flags&(control.FlagDeleted|control.FlagMerged) != 0 {
		return check(nil)
	}
	s, err := g.shown(head.Place)
	if err != nil {
		return err
	}
	return check(&s)
}

// shown returns the subscriber as it will be.
func (g *group) shown(place fanfare.RowID) (people.Subscriber, error) {
	head, err := g.subscriber(place)
	if err != nil {
		return people.Subscriber{}, g.w.r.unreadable(err)
	}
	list := head.Rows()
	rows := make(map[fanfare.RowID]*control.SubscriberRecord, len(list))
	for _, p := range list {
		if rows[p.Place], err = g.subscriber(p.Place); err != nil {
			return people.Subscriber{}, g.w.r.unreadable(err)
		}
	}
	return people.NewSubscriber(head, list, rows), nil
}
