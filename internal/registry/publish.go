package registry

import (
	"bytes"
	"errors"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/store/control"
)

// publish makes a committed group seen: match index, live bits and counts. One
// that has ended or is paused loses its bit first, so that nothing leaves for it
// from here on.
func (g *group) publish() error {
	r := g.w.r
	for i := range g.batch.Subscriptions {
		for k := range g.batch.Subscriptions[i] {
			s := &g.batch.Subscriptions[i][k]
			r.subscriptionsOfRow.Add(s.Subscriber, s.Place)
			g.w.use(s, 1)
			r.slots.use(s, 1)
			if s.Active() {
				r.live.Set(s.Place)
				g.enter(s)
			}
		}
	}
	for p, was := range g.changed {
		s := g.subscriptions[p]
		g.w.use(&was, -1)
		g.w.use(s, 1)
		r.slots.use(&was, -1)
		r.slots.use(s, 1)
		switch {
		case !s.Active() && was.Active():
			r.live.Clear(p)
			if t := r.Snapshot().Topics[s.Topic]; t != nil {
				r.opt.Conditions.Remove(t.ConditionKey(), p)
			}
		case !s.Active():
		case !was.Active():
			r.live.Set(p)
			g.enter(s)
		case s.Channel != was.Channel || s.Filter != was.Filter || s.Rule != was.Rule || s.Slot != was.Slot || !bytes.Equal(s.Params, was.Params):
			g.enter(s) // in place of what is there, in one step
		}
	}
	err := g.flush()
	for p, was := range g.changed {
		// Once the index has the new slots: what is gathered from here on is in them.
		if s := g.subscriptions[p]; len(s.PastSlots)+len(was.PastSlots) > 0 {
			r.slots.noteMove(s)
		}
	}
	return err
}

// A topicEntries is what the match index gets of one topic.
type topicEntries struct {
	topic   *catalog.Topic
	entries []condition.Entry
}

// enter takes s down for the match index.
func (g *group) enter(s *control.SubscriptionRecord) {
	// A group has few topics, and mostly the one that came last.
	for i := len(g.entries) - 1; i >= 0; i-- {
		if of := &g.entries[i]; of.topic.Number == s.Topic {
			of.entries = append(of.entries, g.w.r.entry(of.topic, s))
			return
		}
	}
	if t := g.w.r.Snapshot().Topics[s.Topic]; t != nil {
		g.entries = append(g.entries, topicEntries{t, append(g.spare, g.w.r.entry(t, s))})
		g.spare = nil
	}
}

func (r *Registry) entry(t *catalog.Topic, s *control.SubscriptionRecord) condition.Entry {
	e := condition.Entry{Place: s.Place, Subscriber: s.Subscriber, Channel: s.Channel, Slot: s.Slot}
	if s.Filter != 0 {
		e.Filter = r.filters.text(s.Filter)
	}
	if s.Rule != 0 {
		e.Rule, e.Params = t.RuleName(s.Rule), s.Params
		if e.Params == nil {
			e.Params = []byte("{}")
		}
	}
	return e
}

// flush gives the match index what was taken down. The index keeps no entries.
func (g *group) flush() error {
	var errs []error
	for i := range g.entries {
		of := &g.entries[i]
		errs = append(errs, g.w.r.opt.Conditions.Add(of.topic.ConditionKey(), of.entries))
		clear(of.entries)
		g.spare = of.entries[:0]
	}
	clear(g.entries)
	g.entries = g.entries[:0]
	return errors.Join(errs...)
}
