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
	// maxMemberTime is how long the subscriptions of those affected by contradictions may
	// take for one event. An event that takes longer is parked; when it is tried again, its
	// conditions are in quarantine, which takes far less.
	maxMemberTime = 10 * time.Second
	// membersAtOnce is how many subscribers are read from the store at once.
	membersAtOnce = 1000
)

// resolve quarantines the conditions about which a second match repeats what the first one
// said, and has the evaluator decide on everybody who has one.
func (x *examination) resolve(ctx context.Context) error {
	confirmed, err := x.confirm()
	if err != nil || len(confirmed) == 0 {
		return err
	}
	affected := map[fanfare.RowID]bool{}
	var list []condition.Quarantined
	for i := range confirmed {
		c := &confirmed[i]
		x.tell(c)
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
	if room := maxQuarantined - len(x.quarantine); len(list) > room {
		list = list[:max(room, 0)]
	}
	if err := x.v.opt.Store.Quarantine(ctx, list); err != nil {
		return err
	}
	x.t.set(func(all []condition.Quarantined) []condition.Quarantined { return append(all, list...) })
	return x.decideMembers(ctx, affected)
}

// confirm matches the event again and keeps the contradictions that are still there: a
// subscription may have come, gone or changed between the match and the check.
func (x *examination) confirm() (confirmed []contradiction, err error) {
	again := new(condition.Report)
	hits, err := x.v.opt.Index.MatchReported(x.t.Key, x.event, nil, again)
	if err != nil || again.Definition != x.report.Definition {
		return nil, err
	}
	slices.Sort(again.Filters)
	for _, c := range x.contradictions {
		if x.stays(&c.condition) && reports(again, hits, &c.condition) != c.missing {
			confirmed = append(confirmed, c)
		}
	}
	return confirmed, nil
}

// stays reports whether the index still has a condition.
func (x *examination) stays(c *condition.Condition) bool {
	if c.Rule == "" {
		is, ok := x.v.opt.Index.FilterAt(x.t.Key, c.Number)
		return ok && is.Filter == c.Filter
	}
	is, ok := x.v.opt.Index.ConditionAt(x.t.Key, c.Place)
	return ok && is.Rule == c.Rule && string(is.Params) == string(c.Params)
}

// tell counts and logs a contradiction.
func (x *examination) tell(c *contradiction) {
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
	x.v.opt.Logger.Error("the matching index contradicts the independent evaluator: this is a defect of Fanfare, please report it with the condition and the event",
		append([]any{"topic", x.t.Service + "/" + x.t.Key.Topic, "event", x.name, "index", said, "evaluator", c.verdict.Result.String(), "reason", c.verdict.Reason}, condition...)...)
}

// decideMembers replaces the hits of some subscribers by what the evaluator finds for all
// their subscriptions, as these are stored.
func (x *examination) decideMembers(ctx context.Context, affected map[fanfare.RowID]bool) error {
	subscribers := make([]fanfare.RowID, 0, len(affected))
	for place := range affected {
		subscribers = append(subscribers, place)
	}
	slices.Sort(subscribers)
	var found []condition.Hit
	known := map[string]evaluator.Verdict{} // by filter
	for some := range slices.Chunk(subscribers, membersAtOnce) {
		err := x.v.opt.Store.EntriesOf(ctx, x.t.Number, some, func(e *condition.Entry) error {
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
		if x.elapsed() > maxMemberTime {
			return fmt.Errorf("%w: the subscriptions of %d people, whom contradictions affect, take longer than %s", ErrUndecided, len(affected), maxMemberTime)
		}
	}
	x.hits = slices.DeleteFunc(x.hits, func(h condition.Hit) bool { return affected[h.Subscriber] })
	x.addHits(found)
	return nil
}

// orderOf is the position of an entry's rule among the topic's; -1 of a filter.
func (x *examination) orderOf(e *condition.Entry) int16 {
	if e.Rule == "" {
		return -1
	}
	return x.language.rules[e.Rule].order
}

// canonical writes a JSON object with its members in order, so that equal params are equal
// bytes however they were written.
func canonical(w io.Writer, params json.RawMessage) {
	var object map[string]any
	if json.Unmarshal(params, &object) != nil {
		return // of no params
	}
	for name, value := range object {
		if number, ok := value.(float64); ok {
			object[name] = number + 0 // -0 is 0
		}
	}
	_ = json.NewEncoder(w).Encode(object) // a hash takes everything
}
