package notifier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// planDay creates events for the next waiting outcomes of a day.
func (n *Notifier) planDay(ctx context.Context, day fanfare.Day) (*eventBatch, error) {
	plan, err := n.store.PlanNotices(ctx, day, noticeGroups)
	if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
		return nil, nil // the day was removed with its outcomes
	}
	if err != nil || len(plan) == 0 {
		return nil, err
	}
	next := &eventBatch{last: len(plan) < noticeGroups, forget: func(ctx context.Context) error { return n.store.ToldNotices(ctx, day, plan) }}
	for i := range plan {
		next.count += len(plan[i].Entries)
	}
	outcomes, err := n.outcomes(ctx, day, plan)
	if err != nil {
		return next, err
	}
	reported := make([]Outcome, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if topic, _ := o.ToldAs(); n.registry.HasReservedSubscriptions(o.Of.Service, topic) {
			reported = append(reported, *o)
		}
		if n.wantsCallback(o.Entry, o.Of) {
			next.called = append(next.called, *o)
		}
	}
	next.events, err = Events(reported)
	return next, err
}

// wantsCallback reports whether a callback reports an outcome: of a message, not of an event of a topic.
func (n *Notifier) wantsCallback(e *fanfare.Entry, of *fanfare.AcceptedEvent) bool {
	return n.callbacks != nil && of.Direct != nil && n.callbacks.Wants(e.Channel)
}

// outcomes returns the outcomes of a plan to which a service has subscribed, with the values to report.
func (n *Notifier) outcomes(ctx context.Context, day fanfare.Day, plan []deliveries.Notices) ([]Outcome, error) {
	if err := n.read(ctx, day, plan); err != nil {
		return nil, err
	}
	var all []Outcome
	var members []fanfare.Member
	for i := range plan {
		for j := range plan[i].Entries {
			e := &plan[i].Entries[j]
			of := n.events[fanfare.EventRef{Day: day, Seq: e.Delivery.Manifest.Event()}]
			if of == nil || fanfare.ReservedTopic(of.Topic) {
				continue
			}
			section, member, ok := n.manifests[ofManifest(e.Delivery)].At(e.Delivery.Position)
			if !ok {
				continue
			}
			e.Channel = section.Channel // which is not stored with the entry
			if topic, _ := e.ToldAs(); !n.registry.HasReservedSubscriptions(of.Service, topic) && !n.wantsCallback(e, of) {
				continue
			}
			outcome := Outcome{Entry: e, Name: fmt.Sprintf("%s-%x-%x", day, plan[i].ID, j), Of: of}
			if c, known := n.registry.Channel(section.Channel); known {
				outcome.Channel = c.Name
			}
			all, members = append(all, outcome), append(members, member)
		}
	}
	return n.named(ctx, all, members)
}

func ofManifest(of fanfare.DeliveryRef) fanfare.DeliveryRef {
	of.Position = 0
	return of
}

// read loads the events and manifests of a plan into memory.
func (n *Notifier) read(ctx context.Context, day fanfare.Day, plan []deliveries.Notices) error {
	if n.members > maxNoticeMembers {
		clear(n.manifests)
		n.members = 0
	}
	if len(n.events) > maxNoticeEvents {
		clear(n.events)
	}
	var seqs []fanfare.EventSeq
	var ids []fanfare.ManifestID
	for i := range plan {
		for j := range plan[i].Entries {
			of := plan[i].Entries[j].Delivery
			if n.manifests[ofManifest(of)] == nil {
				ids = append(ids, of.Manifest)
			}
			if n.events[fanfare.EventRef{Day: day, Seq: of.Manifest.Event()}] == nil {
				seqs = append(seqs, of.Manifest.Event())
			}
		}
	}
	slices.Sort(seqs)
	slices.Sort(ids)
	return n.store.Moment(ctx, day, func(m *deliveries.Moment) error {
		return errors.Join(
			m.Posted(slices.Compact(seqs), func(p *fanfare.AcceptedEvent) { n.events[fanfare.EventRef{Day: day, Seq: p.Seq}] = bare(p) }),
			m.Manifests(slices.Compact(ids), func(manifest *fanfare.Manifest) {
				n.manifests[fanfare.DeliveryRef{Day: day, Manifest: manifest.ID}] = manifest
				n.members += manifest.Members()
			}))
	})
}

// bare returns an event without its data and its recipients.
func bare(p *fanfare.AcceptedEvent) *fanfare.AcceptedEvent {
	p.Event.Data, p.Event.Binary, p.Event.Extensions = nil, nil, nil
	if p.Direct != nil {
		p.Direct = &fanfare.Direct{Reference: p.Direct.Reference}
	}
	return p
}

// named adds the names of subscribers and subscriptions to outcomes. It omits messages that
// are only about outcomes.
func (n *Notifier) named(ctx context.Context, all []Outcome, members []fanfare.Member) ([]Outcome, error) {
	var who, what []fanfare.RowID
	for i := range members {
		who, what = append(who, members[i].Subscriber), append(what, members[i].Subscriptions...)
	}
	slices.Sort(who)
	slices.Sort(what)
	subscribers, subscriptions, ours := map[fanfare.RowID]string{}, map[fanfare.RowID]string{}, map[fanfare.RowID]bool{}
	err := n.registry.Subscribers(ctx, slices.Compact(who), func(s *people.SubscriberRow) error {
		subscribers[s.Place] = s.ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = n.registry.Subscriptions(ctx, slices.Compact(what), func(s *people.SubscriptionRow) error {
		subscriptions[s.Place] = s.ID
		ours[s.Place] = n.registry.HasReservedTopic(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	told := all[:0]
	for i := range all {
		o := all[i]
		o.Subscriber = subscribers[members[i].Subscriber]
		others := o.Of.Direct != nil
		for _, place := range members[i].Subscriptions {
			if id := subscriptions[place]; id != "" {
				o.Subscriptions = append(o.Subscriptions, id)
			}
			others = others || !ours[place]
		}
		if others {
			told = append(told, o)
		}
	}
	return told, nil
}
