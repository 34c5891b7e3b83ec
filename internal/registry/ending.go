package registry

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// end decides on one end. A subscription that has ended already is no error.
func (g *group) end(j *job) error {
	svc, e := j.svc, j.end
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
		return g.w.r.unreadable(err)
	case s == nil:
		return people.UnknownSubscription(e.id)
	}
	e.place = place
	if e.check != nil {
		if err := g.ask(e.check, place); err != nil {
			return err
		}
	}
	if s.Ended {
		return nil
	}
	if err := g.endPlace(place, people.Ending{Source: people.SourceAPI, Text: e.reason}); err != nil {
		return err
	}
	topic := g.w.r.Snapshot().Topics[s.Topic]
	g.batch.AddAudit(j.actor, audit.Operation{Service: topic.Service, Action: "end", Kind: kindSubscription, Name: auditID(s.ID, place)}, nil)
	return nil
}

func (g *group) endPlace(place fanfare.RowID, how people.Ending) error {
	s, err := g.change(place)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	s.Ended, s.Reason, s.PastSlots = true, how.Text, nil
	g.tell(control.NoticeUnsubscribed, s, how.Source, how.Reason)
	return nil
}

// byID returns the place of the subscription with a public id.
func (g *group) byID(svc *catalog.ServiceSnapshot, id string) (fanfare.RowID, error) {
	r := g.w.r
	if place, ok := fanfare.ParseSubscriptionID(id); ok {
		s, err := g.subscription(place)
		if err != nil {
			return 0, g.w.r.unreadable(err)
		}
		if s != nil && s.ID == "" && r.serviceOf(s) == svc.Number {
			return place, nil
		}
		return 0, people.UnknownSubscription(id)
	}
	place, err := g.find(r.hash.clientID(svc.Number, id), svc.Number, &control.SubscriptionRecord{ID: id})
	if err == nil && place == 0 {
		err = people.UnknownSubscription(id)
	}
	return place, err
}
