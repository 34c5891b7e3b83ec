package registry

import (
	"context"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// endSubscription decides on the end of a subscription. A subscription that has already ended is
// no error.
func (g *group) endSubscription(j *job) error {
	svc, e := j.svc, j.endRequest
	place := e.place
	if place == 0 {
		var err error
		if place, err = g.byID(svc, e.id); err != nil {
			return err
		}
	}
	s, err := g.subscription(place)
	switch {
	case err != nil:
		return g.w.r.readError(err)
	case s == nil:
		return people.UnknownSubscription(e.id)
	}
	e.place = place
	if e.check != nil {
		if err := g.checkSubscription(e.check, place); err != nil {
			return err
		}
	}
	if s.Ended {
		return nil
	}
	if err := g.endRow(place, people.Ending{Source: people.SourceAPI, Text: e.reason}); err != nil {
		return err
	}
	topic := g.w.r.Snapshot().Topics[s.Topic]
	g.batch.AddAudit(j.actor, audit.Operation{Service: topic.Service, Action: "end", Kind: kindSubscription, Name: auditID(s.ID, place)}, nil)
	return nil
}

func (g *group) endRow(place fanfare.RowID, how people.Ending) error {
	s, err := g.change(place)
	if err != nil {
		return g.w.r.readError(err)
	}
	s.Ended, s.Reason, s.PastSlots = true, how.Text, nil
	g.addNotice(control.NoticeUnsubscribed, s, how.Source, how.Reason)
	return nil
}

// byID returns the row of the subscription with a public id.
func (g *group) byID(svc *catalog.ServiceSnapshot, id string) (fanfare.RowID, error) {
	r := g.w.r
	if place, ok := fanfare.ParseSubscriptionID(id); ok {
		s, err := g.subscription(place)
		if err != nil {
			return 0, g.w.r.readError(err)
		}
		if s != nil && s.ID == "" && r.serviceOf(s) == svc.Number {
			return place, nil
		}
		return 0, people.UnknownSubscription(id)
	}
	place, err := g.find(r.hash.ClientID(svc.Number, id), svc.Number, &control.SubscriptionRecord{ID: id})
	if err == nil && place == 0 {
		err = people.UnknownSubscription(id)
	}
	return place, err
}

// PersonOf returns the subscriber of a subscription, which may have ended. NotFound means that it
// no longer has a subscriber.
func (r *Registry) PersonOf(ctx context.Context, service string, place fanfare.RowID) (p people.Person, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return p, err
	}
	head, row, err := r.ownerOf(ctx, svc, place)
	if err != nil {
		return p, err
	}
	p.Service = service
	if row.HasAddress() {
		p.Address = row.Address
	}
	if p.Subscriber, err = r.fullSubscriber(ctx, head); err != nil {
		return p, err
	}
	c := subscriptionQuery{service: svc.Number, active: true, paused: true, owners: control.PlacesOf(head.Rows())}
	kept, _, err := r.rowsOfOwners(ctx, &c, 0, maxScanRows)
	if err != nil {
		return p, r.readError(err)
	}
	owners, err := r.owners(ctx, ownersOf(kept))
	if err != nil {
		return p, r.readError(err)
	}
	for i := range kept {
		full := r.fullSubscription(&kept[i])
		full.SetOwner(owners[kept[i].Subscriber])
		p.Subscriptions = append(p.Subscriptions, full)
	}
	return p, nil
}

// ownerOf returns the subscriber of a subscription, and the row of the address to which it is
// sent.
func (r *Registry) ownerOf(ctx context.Context, svc *catalog.ServiceSnapshot, place fanfare.RowID) (head, row *control.SubscriberRecord, err error) {
	owner := fanfare.RowID(0)
	err = r.opt.Store.SubscriptionRecords(ctx, []fanfare.RowID{place}, func(s *control.SubscriptionRecord) error {
		if r.serviceOf(s) == svc.Number {
			owner = s.Subscriber
		}
		return nil
	})
	if err != nil {
		return nil, nil, r.readError(err)
	}
	rows, err := r.records(ctx, []fanfare.RowID{owner})
	if err != nil {
		return nil, nil, r.readError(err)
	}
	if row = rows[owner]; row == nil || row.Flags&(control.FlagErasing|control.FlagErased) != 0 {
		return nil, nil, people.UnknownSubscription("")
	}
	if row.Head() == row.Place {
		return row, row, nil
	}
	if rows, err = r.records(ctx, []fanfare.RowID{row.Head()}); err != nil {
		return nil, nil, r.readError(err)
	}
	if head = rows[row.Head()]; head == nil || head.Flags&(control.FlagErasing|control.FlagErased) != 0 {
		return nil, nil, people.UnknownSubscription("")
	}
	return head, row, nil
}

// EndSubscriptions ends subscriptions of one service in one transaction. It returns the change
// sequence of the latest end among them, which is this one unless all had ended before. It skips
// missing subscriptions. When it returns, the ends are durable and no message for the
// subscriptions is in flight.
func (r *Registry) EndSubscriptions(ctx context.Context, service string, places []fanfare.RowID, how people.Ending) (seq uint64, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return 0, err
	}
	how.Text = catalog.CleanReason(how.Text)
	err = r.transact(ctx, func(g *group) (ended []fanfare.RowID, err error) {
		for _, place := range places {
			s, err := g.subscription(place)
			if err != nil {
				return nil, r.readError(err)
			}
			if s == nil || r.serviceOf(s) != svc.Number {
				continue
			}
			ended = append(ended, place)
			if s.Ended {
				continue
			}
			if err := g.endRow(place, how); err != nil {
				return nil, err
			}
			g.batch.AddAudit(audit.ActorOf(ctx), audit.Operation{Service: svc.Name, Action: "end", Kind: kindSubscription, Name: auditID(s.ID, place)}, nil)
		}
		return ended, nil
	})
	if err != nil {
		return 0, err
	}
	err = r.opt.Store.SubscriptionRecords(ctx, control.SortPlaces(append([]fanfare.RowID(nil), places...)), func(s *control.SubscriptionRecord) error {
		seq = max(seq, s.EndedSeq)
		return nil
	})
	if err != nil {
		return 0, r.readError(err)
	}
	return seq, nil
}

// Restore undoes the ends that one request caused: those of the subscriber of a subscription with
// the change sequence seq and a reason that begins with reason. A restored subscription keeps its
// id and waiting events; the time in between counts as a pause. Restore skips a subscription whose
// topic or channel is deleted, whose condition no longer fits, or whose id or condition another
// one has now. A suppressed address is an error for the whole call. It returns the number of active
// subscriptions, including those that were already restored.
func (r *Registry) Restore(ctx context.Context, service string, of fanfare.RowID, seq uint64, reason string) (restored int, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return 0, err
	}
	head, _, err := r.ownerOf(ctx, svc, of)
	if err != nil {
		return 0, err
	}
	var places []fanfare.RowID
	for _, row := range head.Rows() {
		places = append(places, r.subscriptionsOfRow.Of(row.Place)...)
	}
	err = r.transact(ctx, func(g *group) ([]fanfare.RowID, error) {
		restored = 0
		for _, place := range control.SortPlaces(places) {
			back, err := g.restore(audit.ActorOf(ctx), svc, place, seq, reason)
			if err != nil {
				return nil, err
			}
			if back {
				restored++
			}
		}
		return nil, nil
	})
	return restored, err
}

// restore decides on one subscription. It returns an error before it changes anything.
func (g *group) restore(actor *audit.Actor, svc *catalog.ServiceSnapshot, place fanfare.RowID, seq uint64, reason string) (bool, error) {
	r := g.w.r
	s, err := g.subscription(place)
	switch {
	case err != nil:
		return false, r.readError(err)
	case s == nil || r.serviceOf(s) != svc.Number:
		return false, nil
	case !s.Ended:
		return s.ResumedSeq != 0 && s.PausedSeq == seq, nil
	case s.EndedSeq != seq || !strings.HasPrefix(s.Reason, reason):
		return false, nil
	}
	row, err := g.subscriber(s.Subscriber)
	if err != nil {
		return false, r.readError(err)
	}
	if !row.HasAddress() {
		return false, nil
	}
	if err := r.checkNotSuppressed(row.Service, row.Kind, row.Address, ""); err != nil {
		return false, err
	}
	if !g.canRestore(svc, s) {
		return false, nil
	}
	if s, err = g.change(place); err != nil {
		return false, r.readError(err)
	}
	if !s.Paused { // the time in between counts as a pause
		s.PausedAt, s.PausedSeq, s.ResumedSeq = s.EndedAt, s.EndedSeq, 0
	}
	s.Ended, s.EndedAt, s.EndedSeq, s.Reason = false, 0, 0, ""
	g.addNotice(control.NoticeResubscribed, s, people.SourceUndo, "")
	g.batch.AddAudit(actor, audit.Operation{Service: svc.Name, Action: "restore", Kind: kindSubscription, Name: auditID(s.ID, place)}, nil)
	return true, g.restoreSubscriber(row)
}

// canRestore reports whether an ended subscription could be put again.
func (g *group) canRestore(svc *catalog.ServiceSnapshot, s *control.SubscriptionRecord) bool {
	conf := g.w.r.Snapshot()
	topic, channel := conf.Topics[s.Topic], conf.Channels[s.Channel]
	if topic == nil || svc.Topics[topic.Name] != topic || channel == nil || svc.Channels[channel.Name] != channel {
		return false
	}
	if s.Slot != 0 && topic.CheckCadence(g.w.r.cadenceOf(s)) != nil {
		return false
	}
	if s.ID == "" && topic.PerSubscription {
		return g.checkResume(s) == nil
	}
	hash := g.w.r.hash.NaturalKey(s)
	if s.ID != "" {
		hash = g.w.r.hash.ClientID(svc.Number, s.ID)
	}
	now, err := g.find(hash, svc.Number, s)
	return err == nil && now == s.Place && g.checkResume(s) == nil
}

// restoreSubscriber restores a deleted subscriber.
func (g *group) restoreSubscriber(row *control.SubscriberRecord) error {
	head, err := g.subscriber(row.Head())
	if err != nil {
		return g.w.r.readError(err)
	}
	if head.Flags&control.FlagDeleted != 0 {
		head.Flags &^= control.FlagDeleted
		g.updateRow(head)
	}
	return nil
}
