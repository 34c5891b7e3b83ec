package inspect

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Report lists the most expensive conditions of a service, or of one of its topics, that the index cannot
// look up. limit is the number of conditions that it lists.
func (in *Inspector) Report(service, topic string, limit int) (wire.ConditionReport, error) {
	out := wire.ConditionReport{Topics: []wire.TopicLoad{}, Conditions: []wire.UnindexedCondition{}}
	conf := in.opt.Registry.Configuration()
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
		events, _ := in.opt.Samples.Of(key)
		expensive, unindexed := in.opt.Index.MostExpensive(key, limit)
		load := in.opt.Index.UnindexedCost(key)
		out.Topics = append(out.Topics, wire.TopicLoad{Topic: t.Name, Subscriptions: in.opt.Index.Len(key), Unindexed: unindexed,
			NsPerEvent: load, BudgetNs: budget, Over: load > budget, Events: events})
		for _, d := range expensive {
			out.Conditions = append(out.Conditions, wire.UnindexedCondition{Topic: t.Name, Filter: d.Filter, Rule: d.Rule,
				Subscriptions: d.Subscriptions, NsPerEvent: d.Cost.Nanos, Reason: d.Cost.Why})
		}
		all += unindexed
	}
	slices.SortStableFunc(out.Conditions, func(a, b wire.UnindexedCondition) int { return cmp.Compare(b.NsPerEvent, a.NsPerEvent) })
	out.Conditions = out.Conditions[:min(len(out.Conditions), limit)]
	out.More = all - len(out.Conditions)
	in.sample(service, out.Conditions)
	return out, nil
}

// sample evaluates filters for the sampled events of their topics.
func (in *Inspector) sample(service string, list []wire.UnindexedCondition) {
	for i := range list {
		if one := &list[i]; one.Rule == "" {
			key := condition.Key{Service: service, Topic: one.Topic}
			_, events := in.opt.Samples.Of(key)
			one.Tried, one.Met = len(events), in.opt.Index.CountMatches(key, one.Filter, events)
		}
	}
}
