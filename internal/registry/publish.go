package registry

import (
	"bytes"
	"errors"

	"fanfare.dev/fanfare/internal/match"
)

// publish makes a committed group seen: match index, live bits and counts. An
// ended one loses its bit first, so that nothing leaves for it from here on.
func (g *group) publish() error {
	r := g.w.r
	if g.entries == nil {
		g.entries = map[match.Key][]match.Entry{}
	}
	for i := range g.batch.Subscriptions {
		for k := range g.batch.Subscriptions[i] {
			if s := &g.batch.Subscriptions[i][k]; !s.Ended {
				r.live.set(s.Place)
				g.w.channelUse[s.Channel]++
				g.enter(s)
			}
		}
	}
	for p, was := range g.changed {
		s := g.subscriptions[p]
		g.w.channelUse[was.Channel]--
		if s.Ended {
			r.live.clear(p)
			if t := r.config.Load().topics[s.Topic]; t != nil {
				r.opt.Conditions.Remove(t.key(), p)
			}
			continue
		}
		g.w.channelUse[s.Channel]++
		if s.Channel != was.Channel || s.Filter != was.Filter || s.Rule != was.Rule || !bytes.Equal(s.Params, was.Params) {
			g.enter(s) // in place of what is there, in one step
		}
	}
	return g.flush()
}

// enter takes s down for the match index.
func (g *group) enter(s *SubscriptionRecord) {
	t := g.w.r.config.Load().topics[s.Topic]
	if t == nil {
		return
	}
	key := t.key()
	g.entries[key] = append(g.entries[key], g.w.r.entry(t, s))
}

func (r *Registry) entry(t *Topic, s *SubscriptionRecord) match.Entry {
	e := match.Entry{Place: s.Place, Subscriber: s.Subscriber, Channel: s.Channel}
	if s.Filter != 0 {
		e.Filter = r.filters.text(s.Filter)
	}
	if s.Rule != 0 {
		e.Rule, e.Params = t.ruleName(s.Rule), s.Params
		if e.Params == nil {
			e.Params = []byte("{}")
		}
	}
	return e
}

// flush gives the match index what was taken down.
func (g *group) flush() error {
	var errs []error
	for key, entries := range g.entries {
		if len(entries) > 0 {
			errs = append(errs, g.w.r.opt.Conditions.Add(key, entries))
			clear(entries)
			g.entries[key] = entries[:0]
		}
	}
	return errors.Join(errs...)
}
