package registry

import (
	"bytes"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// A plannedLoad is what a group adds to the load of a topic.
type plannedLoad struct {
	nanos   int64
	filters map[string]struct{} // that are counted
}

// affords refuses a want with which an event of its topic would take longer than
// the service's budget. What is there already costs nothing more, and nothing is
// taken away where the budget was lowered.
func (g *group) affords(w *want) error {
	w.added = 0
	if w.cost.Indexed() || w.put.State == people.StatePaused {
		return nil
	}
	kept, err := g.keepsCondition(w)
	if err != nil || kept || w.put.Filter != "" && (g.plans(w) || g.w.r.opt.Conditions.HasFilter(w.topic.ConditionKey(), w.put.Filter)) {
		return err
	}
	budget := g.w.r.Snapshot().Services[w.topic.Service].Budget()
	load := g.loadOf(w)
	if f := g.w.flight; f != nil && load+w.cost.Nanos > int64(budget) {
		// Of what is being committed the index may have some, and it is counted twice.
		if g.w.land(); g.aborted {
			return errAborted
		}
		load = g.loadOf(w)
	}
	if load+w.cost.Nanos > int64(budget) {
		return overBudget(w, load, budget)
	}
	w.added = w.cost.Nanos
	g.plan(w)
	return nil
}

// keepsCondition reports whether a want leaves the condition of its subscription,
// and does not resume it.
func (g *group) keepsCondition(w *want) (bool, error) {
	place := w.subscription
	if w.put.ID != "" {
		var err error
		if place, err = g.find(w.idHash, w.topic.ServiceNumber, &control.SubscriptionRecord{ID: w.put.ID}); err != nil {
			return false, err
		}
	}
	if place == 0 {
		return false, nil
	}
	s, err := g.subscription(place)
	if err != nil {
		return false, g.w.r.unreadable(err)
	}
	return s != nil && !s.Ended && (!s.Paused || w.put.State != people.StateActive) && s.Topic == w.topic.Number && s.Rule == w.rule && g.w.r.filters.is(s.Filter, w.put.Filter) && bytes.Equal(s.Params, w.params), nil
}

// loadOf is what an event of the want's topic takes, with all that is decided.
func (g *group) loadOf(w *want) int64 {
	load := g.w.r.opt.Conditions.UnindexedCost(w.topic.ConditionKey()) + g.planned[w.topic.Number].nanos
	if f := g.w.flight; f != nil {
		load += f.planned[w.topic.Number].nanos
	}
	return load
}

// plans reports whether the filter of a want is counted by what is decided.
func (g *group) plans(w *want) bool {
	_, mine := g.planned[w.topic.Number].filters[w.put.Filter]
	if f := g.w.flight; f != nil && !mine {
		_, mine = f.planned[w.topic.Number].filters[w.put.Filter]
	}
	return mine
}

// plan counts the condition of a want.
func (g *group) plan(w *want) {
	if g.planned == nil {
		g.planned = map[uint32]plannedLoad{}
	}
	p := g.planned[w.topic.Number]
	if p.nanos += w.cost.Nanos; w.put.Filter != "" {
		if p.filters == nil {
			p.filters = map[string]struct{}{}
		}
		p.filters[w.put.Filter] = struct{}{}
	}
	g.planned[w.topic.Number] = p
}

func overBudget(w *want, load int64, budget time.Duration) error {
	at := "/filter"
	if w.rule != 0 {
		at = "/rule"
	}
	return inputerror.Invalid(at, "add a comparison that an index answers, such as an equality, or a filter that others have already; the budget is matching_budget of the service",
		"the condition would take about %d ns of every event of topic %s, because %s; with the %d ns of others that is more than the budget of %s",
		w.cost.Nanos, inputerror.Quote(w.topic.Name), w.cost.Why, load, catalog.Duration(budget))
}
