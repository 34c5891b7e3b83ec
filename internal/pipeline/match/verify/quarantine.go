package verify

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

const (
	// maxQuarantined is the maximum number of conditions of a topic in quarantine. When it is
	// reached, every condition that the index reports for the topic is checked at every event,
	// and none is added.
	maxQuarantined = 1000
	// maxQuarantineTime bounds the evaluation of the conditions in quarantine for one event.
	maxQuarantineTime = time.Second
)

// quarantined returns the entry of a condition.
func quarantined(topic uint32, c *condition.Condition) condition.Quarantined {
	if c.Rule == "" {
		return condition.Quarantined{Topic: topic, Filter: c.Filter}
	}
	return condition.Quarantined{Topic: topic, Subscription: c.Place, Hash: hashOf(c)}
}

// isEntryOf reports whether q is the entry of a condition.
func isEntryOf(q *condition.Quarantined, c *condition.Condition) bool {
	if c.Rule == "" {
		return q.Subscription == 0 && q.Filter == c.Filter
	}
	return q.Subscription == c.Place && q.Hash == hashOf(c)
}

// hashOf returns a hash of the rule and the params of a subscription.
func hashOf(c *condition.Condition) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00", c.Rule)
	canonical(h, c.Params)
	return h.Sum64()
}

// applyQuarantine evaluates all conditions in quarantine.
func (x *examination) applyQuarantine(ctx context.Context) error {
	if len(x.quarantine) == 0 {
		return nil
	}
	ignored := map[fanfare.RowID]bool{} // subscriptions whose hits come from the evaluator
	var found []condition.Hit
	var changed []condition.Quarantined
	for i := range x.quarantine {
		q := &x.quarantine[i]
		of, ok := x.conditionOf(q)
		if !ok {
			changed = append(changed, *q)
			continue
		}
		verdict := x.evaluate(&of)
		if verdict.Result == evaluator.Undecided {
			return fmt.Errorf("%w: a condition in quarantine is undecided: %s", ErrUndecided, verdict.Reason)
		}
		if x.elapsed() > maxQuarantineTime {
			return fmt.Errorf("%w: evaluating the conditions in quarantine took longer than %s", ErrUndecided, maxQuarantineTime)
		}
		hits := x.hitsOf(&of)
		for _, h := range hits {
			ignored[h.Place] = true
		}
		if verdict.Result == evaluator.True {
			found = append(found, hits...)
		}
	}
	if len(changed) > 0 {
		if err := x.release(ctx, changed); err != nil {
			return err
		}
	}
	x.hits = slices.DeleteFunc(x.hits, func(h condition.Hit) bool { return ignored[h.Place] })
	x.addHits(found)
	return nil
}

// conditionOf returns the condition of an entry; false if it has changed. A filter without
// subscriptions stays in quarantine, since a subscription may use it again.
func (x *examination) conditionOf(q *condition.Quarantined) (condition.Condition, bool) {
	if q.Subscription == 0 {
		return condition.Condition{Filter: q.Filter}, true
	}
	c, ok := x.v.opt.Index.ConditionAt(x.t.Key, q.Subscription)
	return c, ok && isEntryOf(q, &c)
}

// hitsOf returns the hits of all subscriptions with a condition.
func (x *examination) hitsOf(c *condition.Condition) []condition.Hit {
	if c.Rule == "" {
		return x.v.opt.Index.FilterHits(x.t.Key, c.Filter, nil)
	}
	return []condition.Hit{{Place: c.Place, Subscriber: c.Subscriber, Channel: c.Channel, Slot: c.Slot, Rule: x.language.rules[c.Rule].order}}
}

// addHits adds hits to those of the event, sorted by subscription.
func (x *examination) addHits(found []condition.Hit) {
	if len(found) == 0 {
		return
	}
	x.hits = append(x.hits, found...)
	slices.SortFunc(x.hits, func(a, b condition.Hit) int { return cmp.Compare(a.Place, b.Place) })
	x.hits = slices.CompactFunc(x.hits, func(a, b condition.Hit) bool { return a.Place == b.Place })
}

// release removes changed conditions from the quarantine.
func (x *examination) release(ctx context.Context, changed []condition.Quarantined) error {
	if err := x.v.opt.Store.Release(ctx, changed); err != nil {
		return err
	}
	x.t.set(func(list []condition.Quarantined) []condition.Quarantined {
		return slices.DeleteFunc(list, func(q condition.Quarantined) bool { return slices.Contains(changed, q) })
	})
	return nil
}

// set replaces the quarantine of a topic.
func (t *topic) set(change func([]condition.Quarantined) []condition.Quarantined) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quarantine = change(slices.Clone(t.quarantine))
}
