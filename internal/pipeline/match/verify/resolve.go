package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

const (
	// maxSubscriberTime bounds the evaluation of the subscriptions of affected subscribers for
	// one event. An event that takes longer is parked. When it is tried again, its conditions
	// are in quarantine, which takes far less time.
	maxSubscriberTime = 10 * time.Second
	// subscriberBatch is the number of subscribers that are read together.
	subscriberBatch = 1000
)

// resolve quarantines the conditions for which a second match repeats the answer of the first, and
// evaluates all subscriptions of the affected subscribers.
func (x *examination) resolve(ctx context.Context) error {
	confirmed, err := x.confirm()
	if err != nil || len(confirmed) == 0 {
		return err
	}
	affected := map[fanfare.RowID]bool{}
	var list []condition.Quarantined
	for i := range confirmed {
		c := &confirmed[i]
		x.logContradiction(c)
		q := quarantined(x.t.Number, &c.condition)
		q.Since, q.Event, q.Index, q.Evaluator = x.v.opt.Now().UTC(), x.name, "true", c.verdict.Result.String()
		if c.missing {
			q.Index = "not true"
		}
		list = append(list, q)
		for _, h := range x.hitsOf(&c.condition) {
			affected[h.Subscriber] = true
		}
	}
	if free := maxQuarantined - len(x.quarantine); len(list) > free {
		list = list[:max(free, 0)]
	}
	if err := x.v.opt.Store.Quarantine(ctx, list); err != nil {
		return err
	}
	x.t.set(func(all []condition.Quarantined) []condition.Quarantined { return append(all, list...) })
	return x.decideSubscribers(ctx, affected)
}

// confirm matches the event again and returns the contradictions that are still there. A subscription
// may have been added, removed or changed between the match and the check.
func (x *examination) confirm() (confirmed []contradiction, err error) {
	again := new(condition.Report)
	hits, err := x.v.opt.Index.MatchReported(x.t.Key, x.event, nil, again)
	if err != nil || again.Definition != x.report.Definition {
		return nil, err
	}
	slices.Sort(again.Filters)
	for _, c := range x.contradictions {
		if x.isCurrent(&c.condition) && reports(again, hits, &c.condition) != c.missing {
			confirmed = append(confirmed, c)
		}
	}
	return confirmed, nil
}

// isCurrent reports whether the index still has a condition.
func (x *examination) isCurrent(c *condition.Condition) bool {
	if c.Rule == "" {
		is, ok := x.v.opt.Index.FilterAt(x.t.Key, c.Number)
		return ok && is.Filter == c.Filter
	}
	is, ok := x.v.opt.Index.ConditionAt(x.t.Key, c.Place)
	return ok && is.Rule == c.Rule && string(is.Params) == string(c.Params)
}

// logContradiction counts and logs a contradiction.
func (x *examination) logContradiction(c *contradiction) {
	said, of := "true", &c.condition
	if c.missing {
		said = "not true"
		x.v.counts.missing.Add(1)
	} else {
		x.v.counts.extra.Add(1)
	}
	condition := []any{"filter", of.Filter}
	if of.Rule != "" {
		condition = []any{"rule", of.Rule, "when", x.language.rules[of.Rule].when, "subscription", fanfare.SubscriptionID(of.Place)}
	}
	x.v.opt.Logger.Error("the matching index contradicts the independent evaluator: this is a bug in Fanfare; report it with the condition and the event",
		append([]any{"topic", x.t.Service + "/" + x.t.Key.Topic, "event", x.name, "index", said, "evaluator", c.verdict.Result.String(), "reason", c.verdict.Reason}, condition...)...)
}

// decideSubscribers replaces the hits of some subscribers with the verdicts of the evaluator about all
// of their stored subscriptions.
func (x *examination) decideSubscribers(ctx context.Context, affected map[fanfare.RowID]bool) error {
	subscribers := make([]fanfare.RowID, 0, len(affected))
	for place := range affected {
		subscribers = append(subscribers, place)
	}
	slices.Sort(subscribers)
	var found []condition.Hit
	known := map[string]evaluator.Verdict{} // by filter
	for some := range slices.Chunk(subscribers, subscriberBatch) {
		err := x.v.opt.Store.ConditionEntries(ctx, x.t.Number, some, func(e *condition.Entry) error {
			verdict, ok := known[e.Filter]
			if !ok || e.Rule != "" {
				if verdict = x.evaluate(&condition.Condition{Filter: e.Filter, Rule: e.Rule, Params: e.Params}); e.Rule == "" {
					known[e.Filter] = verdict
				}
			}
			switch verdict.Result {
			case evaluator.Undecided:
				return fmt.Errorf("%w: the condition of the subscription %s is undecided: %s", ErrUndecided, fanfare.SubscriptionID(e.Place), verdict.Reason)
			case evaluator.True:
				found = append(found, condition.Hit{Place: e.Place, Subscriber: e.Subscriber, Channel: e.Channel, Slot: e.Slot, Rule: x.orderOf(e)})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if x.elapsed() > maxSubscriberTime {
			return fmt.Errorf("%w: evaluating the subscriptions of %d subscribers that are affected by contradictions took longer than %s", ErrUndecided, len(affected), maxSubscriberTime)
		}
	}
	x.hits = slices.DeleteFunc(x.hits, func(h condition.Hit) bool { return affected[h.Subscriber] })
	x.addHits(found)
	return nil
}

// orderOf returns the position of an entry's rule in the topic's order; -1 for a filter.
func (x *examination) orderOf(e *condition.Entry) int16 {
	if e.Rule == "" {
		return -1
	}
	return x.language.rules[e.Rule].order
}

// canonical writes a JSON object with its members in order, so that equal params have equal bytes.
func canonical(w io.Writer, params json.RawMessage) {
	var object map[string]any
	if json.Unmarshal(params, &object) != nil {
		return // there are none
	}
	for name, value := range object {
		if number, ok := value.(float64); ok {
			object[name] = number + 0 // -0 is 0
		}
	}
	_ = json.NewEncoder(w).Encode(object) // a hash does not fail
}
