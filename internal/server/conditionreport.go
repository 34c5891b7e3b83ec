package server

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/registry"
)

// judging tells what conditions cost and whom they meet.
type judging struct {
	index    *condition.Index
	verifier *verify.Verifier
	registry *registry.Registry
	samples  *samples
	states   known
	people   *audiences
	clock    clock.Clock
	matching ctxlock.Lock // one dry run at a time: it may find millions
}

// Report lists the dearest conditions of a service.
func (j *judging) Report(service, topic string, limit int) (wire.ConditionReport, error) {
	out := wire.ConditionReport{Topics: []wire.TopicLoad{}, Conditions: []wire.DearCondition{}}
	conf := j.registry.Configuration()
	topics := conf.Topics(service)
	if topic != "" {
		one := conf.Topic(service, topic)
		if one == nil {
			return out, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + topic}
		}
		topics = []*catalog.Topic{one}
	}
	budget := int64(conf.Service(service).MatchingBudget)
	all := 0
	for _, t := range topics {
		key := condition.Key{Service: service, Topic: t.Name}
		events, _ := j.samples.of(key)
		dear, unindexed := j.index.MostExpensive(key, limit)
		load := j.index.UnindexedCost(key)
		out.Topics = append(out.Topics, wire.TopicLoad{Topic: t.Name, Subscriptions: j.index.Len(key), Unindexed: unindexed,
			NsPerEvent: load, BudgetNs: budget, Over: load > budget, Events: events})
		for _, d := range dear {
			out.Conditions = append(out.Conditions, wire.DearCondition{Topic: t.Name, Filter: d.Filter, Rule: d.Rule,
				Subscriptions: d.Subscriptions, NsPerEvent: d.Cost.Nanos, Reason: d.Cost.Why})
		}
		all += unindexed
	}
	slices.SortStableFunc(out.Conditions, func(a, b wire.DearCondition) int { return cmp.Compare(b.NsPerEvent, a.NsPerEvent) })
	out.Conditions = out.Conditions[:min(len(out.Conditions), limit)]
	out.More = all - len(out.Conditions)
	j.try(service, out.Conditions)
	return out, nil
}

// try holds filters against some of their topics' events.
func (j *judging) try(service string, list []wire.DearCondition) {
	for i := range list {
		if one := &list[i]; one.Rule == "" {
			key := condition.Key{Service: service, Topic: one.Topic}
			_, some := j.samples.of(key)
			one.Tried, one.Met = len(some), j.index.CountMatches(key, one.Filter, some)
		}
	}
}
