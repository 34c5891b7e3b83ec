package condition

import (
	"cmp"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// FilterCost checks a filter as CheckFilter does, and estimates its cost.
//
// The estimate is computed from the predicates of the condition and not measured. It is the same on
// every machine and at any time, so that a budget that accepted a condition yesterday accepts it
// today. A filter whose shape exceeds the limits is TooLarge.
func (x *Index) FilterCost(key Key, filter string) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	d, err := t.compileFilter(t.compiled.Load(), filter)
	if err != nil {
		return fanfare.Cost{}, err
	}
	cost := d.cost()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.filters.canHold(filter, &d) {
		return fanfare.Cost{}, tooManyShapes()
	}
	if fresh := d.newComputationCost(&t.paths, map[string]bool{}); fresh > 0 {
		cost.Nanos += fresh
		cost.Why = cmp.Or(cost.Why, "the condition computes a value that no other condition uses")
	}
	return cost, nil
}

// cost returns the cost of a filter, which is zero if an index leads to one of its conjuncts.
func (d *compiledFilter) cost() (sum fanfare.Cost) {
	if d.shape != nil {
		return d.shape.plan.cost(detachedRow(d.shape.params, d.values))
	}
	for i := range d.conjuncts {
		one := d.conjuncts[i].cost()
		if one.Indexed() {
			return one
		}
		sum = fanfare.Cost{Nanos: sum.Nanos + one.Nanos, Why: cmp.Or(sum.Why, one.Why)}
	}
	return sum
}

// newComputationCost returns the time for values that no condition computes yet; seen holds the
// values counted so far.
func (d *compiledFilter) newComputationCost(known *expr.PathTable, seen map[string]bool) (nanos int64) {
	for i := range d.conjuncts {
		nanos += d.conjuncts[i].newComputationCost(known, seen)
	}
	if d.shape == nil {
		return nanos
	}
	for _, p := range d.shape.plan.paths {
		if key := p.Key(); p.Nanos() > 0 && known.Values.Used[key] == nil && !seen[key] {
			seen[key] = true
			nanos += p.Nanos()
		}
	}
	return nanos
}

// ParamsCost checks the params of a rule as CheckParams does, and estimates the cost of a
// subscription with them.
func (x *Index) ParamsCost(key Key, rule string, params json.RawMessage) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	c := t.compiled.Load()
	number, v, err := c.readParams(rule, params)
	if err != nil {
		return fanfare.Cost{}, err
	}
	p := c.rulePlans[number]
	if p.alwaysIndexed() {
		return fanfare.Cost{}, nil
	}
	return p.cost(detachedRow(c.ruleScopes[number].Params, v)), nil
}

// alwaysIndexed reports whether an index leads to every row, whatever its params are.
func (p *plan) alwaysIndexed() bool {
	return slices.ContainsFunc(p.guards, func(paths []*accessPath) bool {
		return !slices.ContainsFunc(paths, func(a *accessPath) bool { return !a.hasKey() })
	})
}

// detachedRow returns a row with these params that is in no index.
func detachedRow(params []lang.Param, v lang.ParamValues) *rowIndexer {
	texts := expr.NewTextTable()
	return &rowIndexer{texts: texts, frame: expr.Frame{Texts: texts, Page: expr.DetachedPage(params, v, texts)}}
}

// cost returns the cost of a row, which is zero if an index leads to it through one of the guards.
func (p *plan) cost(row *rowIndexer) fanfare.Cost {
	for _, paths := range p.guards {
		if !slices.ContainsFunc(paths, row.matchesEveryEvent) {
			return fanfare.Cost{}
		}
	}
	return p.unindexedCost(row)
}

// unindexedCost returns the cost of a row that is evaluated for every event. Without a condition
// nothing is evaluated.
func (p *plan) unindexedCost(row *rowIndexer) fanfare.Cost {
	if p.predicates() == nil {
		return fanfare.Cost{}
	}
	return fanfare.Cost{Nanos: p.nanos(row), Why: p.unindexedReason()}
}

// matchesEveryEvent reports whether a leads to the row for every event.
func (ix *rowIndexer) matchesEveryEvent(a *accessPath) bool {
	return !a.hasKey() && slices.Contains(ix.keysOf(a), everyEventKey)
}

// hasKey reports whether a finds its rows in an order, or by a key that every row has.
func (a *accessPath) hasKey() bool {
	return len(a.equalities) > 0 || a.rangeKey != nil || a.grid != nil
}

// isAlwaysTrue reports whether a predicate is true of the row for every event.
func (ix *rowIndexer) isAlwaysTrue(t expr.Predicate) bool {
	switch t := t.(type) {
	case expr.Or:
		return slices.ContainsFunc(t, ix.isAlwaysTrue)
	case expr.And:
		return !slices.ContainsFunc(t, func(one expr.Predicate) bool { return !ix.isAlwaysTrue(one) })
	case expr.CELPredicate:
		ix.frame.EventHidden = true
		defer func() { ix.frame.EventHidden = false }()
		return t.Eval(&ix.frame) == expr.True
	case *expr.Equality:
		return isOfRow(t.A) && isOfRow(t.B) && t.Eval(&ix.frame) == expr.True
	}
	return false
}

func isOfRow(x expr.Operand) bool {
	switch x.(type) {
	case *expr.Constant, expr.NumberParam, expr.TextParam, expr.BoolParam, expr.ListParam:
		return true
	}
	return false
}

// nanos returns the time of everything that is evaluated for a row.
func (p *plan) nanos(row *rowIndexer) int64 {
	sum := int64(expr.RowNanos)
	for _, one := range p.predicates() {
		if row.isAlwaysTrue(one) {
			sum += expr.TestNanos
		} else {
			sum += expr.NanosOf(one)
		}
	}
	return sum
}

// predicates returns all predicates that an event evaluates for a row. Event predicates count for
// each row, because the shape of a single filter has no others.
func (p *plan) predicates() (list []expr.Predicate) {
	list = append(list, p.eventPredicates...)
	for _, paths := range p.guards {
		for _, a := range paths {
			list = append(list, a.eventPredicates...)
		}
	}
	for i := range p.residuals {
		list = append(list, p.residuals[i].Predicate)
	}
	return list
}

// unindexedReason explains why no index leads to the rows of a plan: by the first predicate with an
// explanation.
func (p *plan) unindexedReason() string {
	for _, one := range p.predicates() {
		if why := reasonOf(one); why != "" {
			return why
		}
	}
	return "no part of the condition can be indexed"
}

// reasonOf explains why no index finds the rows of a predicate; "" if there is no explanation.
func reasonOf(t expr.Predicate) string {
	switch t := t.(type) {
	case expr.ConstantPredicate:
		return "a constant cannot be indexed"
	case expr.Or:
		for _, one := range t {
			if why := reasonOf(one); why != "" {
				return "one side of an || cannot be indexed: " + why
			}
		}
	case expr.And:
		for _, one := range t {
			if why := reasonOf(one); why != "" {
				return why
			}
		}
	case expr.Not:
		return "a negation cannot be indexed"
	case expr.Conditional:
		return "a conditional (a ? b : c) cannot be indexed"
	case expr.IsTrue:
		return "a Boolean field cannot be indexed by itself; in a rule, compare it with a param"
	case expr.HasField:
		return "has() cannot be indexed"
	case *expr.Equality:
		if t.Negate {
			return "!= cannot be indexed"
		}
		return "== is indexed only between a field and a value"
	case *expr.Ordering, *expr.NumberParamOrdering:
		return "<, <=, > and >= are indexed only between a field and a number"
	case *expr.InConstants:
		return "a list of more than 16 numbers cannot be indexed"
	case *expr.TextPredicate, *expr.FoldedTextPredicate:
		return "an empty string cannot be indexed because every string contains it"
	case *expr.WithinPredicate:
		return "geo.within is indexed only if it compares a place in the event with a place in the subscription"
	case *expr.CrossingPredicate:
		return "a crossing is indexed only if the level is a number in the subscription"
	case *expr.ExistsPredicate:
		return "exists() is indexed only if it searches a string"
	case *expr.RegexPredicate:
		return "a regular expression cannot be indexed"
	case *expr.JMESPathPredicate:
		return "a JMESPath filter cannot be indexed"
	case expr.CELPredicate:
		return "arithmetic, conversions and most macros cannot be indexed"
	}
	return ""
}

// An UnindexedCondition is a condition that is evaluated for every event: a filter, or a rule with
// all its subscriptions without an index.
type UnindexedCondition struct {
	Filter        string
	Rule          string // "" for a filter
	Subscriptions int    // with this condition
	Cost          fanfare.Cost
}

// UnindexedCost returns the nanoseconds that all unindexed conditions of a topic take for each
// event: each distinct filter once, each subscription to a rule, and each value that is computed
// from the event once. It caches the sum until the next change of the topic, because the registry
// asks for it before each condition that it adds.
func (x *Index) UnindexedCost(key Key) (nanos int64) {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	if !t.costKnown {
		t.unindexedNanos = 0
		t.eachUnindexed(func(d UnindexedCondition) { t.unindexedNanos += d.Cost.Nanos })
		for _, use := range t.paths.Values.Used {
			t.unindexedNanos += use.Nanos
		}
		t.costKnown = true
	}
	return t.unindexedNanos
}

// HasFilter reports whether some subscription of the topic has the filter.
func (x *Index) HasFilter(key Key, filter string) bool {
	t, err := x.topic(key)
	if err != nil {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.filters.byText[filter] != nil
}

// MostExpensive returns the most expensive unindexed conditions of a topic, up to limit, the most
// expensive first, and the number of all unindexed conditions.
func (x *Index) MostExpensive(key Key, limit int) (list []UnindexedCondition, all int) {
	x.eachUnindexed(key, func(d UnindexedCondition) {
		all++
		if list = append(list, d); len(list) > 2*limit+1024 {
			list = sortByCost(list, limit)
		}
	})
	return sortByCost(list, limit), all
}

func sortByCost(list []UnindexedCondition, limit int) []UnindexedCondition {
	slices.SortFunc(list, func(a, b UnindexedCondition) int {
		return cmp.Or(cmp.Compare(b.Cost.Nanos, a.Cost.Nanos), cmp.Compare(b.Subscriptions, a.Subscriptions),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Filter, b.Filter))
	})
	return list[:min(len(list), limit)]
}

// eachUnindexed visits the unindexed conditions of a topic. The topic does not change in the
// meantime, and matches continue.
func (x *Index) eachUnindexed(key Key, visit func(UnindexedCondition)) {
	t, err := x.topic(key)
	if err != nil {
		return
	}
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.eachUnindexed(visit)
}

// eachUnindexed visits the unindexed conditions. The caller holds changeMu.
func (t *topic) eachUnindexed(visit func(UnindexedCondition)) {
	for _, tb := range t.rules {
		all := UnindexedCondition{Rule: tb.name}
		tb.eachUnindexed(t.texts, func(_ uint32, cost fanfare.Cost) {
			all.Subscriptions++
			all.Cost = fanfare.Cost{Nanos: all.Cost.Nanos + cost.Nanos, Why: cost.Why}
		})
		if all.Subscriptions > 0 {
			visit(all)
		}
	}
	s := t.filters
	visitFilter := func(number uint32, cost fanfare.Cost) {
		fl := s.list[number]
		visit(UnindexedCondition{Filter: fl.text, Subscriptions: int(fl.count), Cost: cost})
	}
	for _, tb := range s.shapes {
		tb.eachUnindexed(t.texts, visitFilter)
	}
	visitConjunction := func(number uint32) {
		if cost := s.conjunctionCost(s.list[number], t.texts); !cost.Indexed() {
			visitFilter(number, cost)
		}
	}
	s.conjunctShapes.guards.each(everyEventKey, visitConjunction)
	for _, tb := range s.conjunctShapes.list {
		if tb.conjunct.accessPathRows > 0 {
			tb.eachUnindexed(t.texts, func(number uint32, _ fanfare.Cost) { visitConjunction(number) })
		}
	}
}

// conjunctionCost returns the cost of a conjunction.
func (s *filters) conjunctionCost(fl *filter, t *expr.TextTable) fanfare.Cost {
	d := compiledFilter{conjuncts: make([]compiledFilter, len(fl.conjuncts))}
	for i, row := range fl.conjuncts {
		p := s.pages.page(row)
		d.conjuncts[i] = compiledFilter{shape: &filterShape{plan: p.table.plan, params: p.table.params}, values: p.Values(int(row&pageMask), t)}
	}
	return d.cost()
}

// each visits the conjunctions with a key.
func (g *guardTable) each(key uint64, visit func(number uint32)) {
	switch one, known := g.byKey[key]; {
	case !known:
	case !one.listed:
		visit(one.number)
	default:
		for _, number := range g.lists[one.number].filters {
			visit(number)
		}
	}
}

// eachUnindexed visits the owners of the rows that are evaluated for every event, each once, with
// their cost.
func (tb *table) eachUnindexed(t *expr.TextTable, visit func(place uint32, cost fanfare.Cost)) {
	ix := &rowIndexer{pages: tb.store, texts: t}
	var seen map[uint32]struct{} // a row is on every access path of its guard
	once := func(row uint32) {
		if _, again := seen[row]; again {
			return
		}
		if seen == nil {
			seen = map[uint32]struct{}{}
		}
		seen[row] = struct{}{}
		ix.seek(row)
		if cost := tb.plan.unindexedCost(ix); !cost.Indexed() {
			visit(uint32(tb.store.page(row).owners[row&pageMask]), cost)
		}
	}
	for _, paths := range tb.plan.guards {
		for _, a := range paths {
			switch ref, some := a.buckets[everyEventKey]; {
			case !some || a.hasKey():
			case ref.bucket == nil:
				once(ref.row)
			default:
				ref.bucket.each(func(rows []uint32) {
					for _, row := range rows {
						once(row)
					}
				})
			}
		}
	}
}
