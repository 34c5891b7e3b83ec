package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// A Dear is a condition to which no index leads: a filter, or a rule with all of
// its subscriptions that have none.
type UnindexedCondition struct {
	Filter        string
	Rule          string // "" of a filter
	Subscriptions int    // that have it
	Cost          fanfare.Cost
}

// UnindexedCost is what the conditions of a topic to which no index leads cost each event
// together, in nanoseconds: filters of one text once, subscriptions to a rule each, and
// what is computed of the event once, however many conditions ask for it. It is added up
// once for each change of the topic: who puts many conditions asks before each of them.
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
		for _, use := range t.paths.values.used {
			t.unindexedNanos += use.nanos
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

// MostExpensive returns the limit dearest conditions of a topic to which no index
// leads, the dearest first, and how many there are.
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

// eachUnindexed visits the conditions of a topic to which no index leads. Nothing changes
// meanwhile, and matches go on.
func (x *Index) eachUnindexed(key Key, visit func(UnindexedCondition)) {
	t, err := x.topic(key)
	if err != nil {
		return
	}
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.eachUnindexed(visit)
}

// eachUnindexed is that of the index, for who changes the topic.
func (t *topic) eachUnindexed(visit func(UnindexedCondition)) {
	for _, r := range t.rules {
		all := UnindexedCondition{Rule: r.name}
		r.eachUnindexed(t.texts, func(_ uint32, cost fanfare.Cost) {
			all.Subscriptions++
			all.Cost = fanfare.Cost{Nanos: all.Cost.Nanos + cost.Nanos, Why: cost.Why}
		})
		if all.Subscriptions > 0 {
			visit(all)
		}
	}
	s := t.filters
	dear := func(number uint32, cost fanfare.Cost) {
		fl := s.list[number]
		visit(UnindexedCondition{Filter: fl.text, Subscriptions: int(fl.count), Cost: cost})
	}
	for _, r := range s.shapes {
		r.eachUnindexed(t.texts, dear)
	}
	compound := func(number uint32) {
		if cost := s.conjunctionCost(s.list[number], t.texts); !cost.Indexed() {
			dear(number, cost)
		}
	}
	s.conjunctShapes.guards.each(everyEvent, compound)
	for _, r := range s.conjunctShapes.list {
		if r.conjunct.accessPathRows > 0 {
			r.eachUnindexed(t.texts, func(number uint32, _ fanfare.Cost) { compound(number) })
		}
	}
}

// conjunctionCost is what a compound costs.
func (s *filters) conjunctionCost(fl *filter, t *textTable) fanfare.Cost {
	d := compiledFilter{conjuncts: make([]compiledFilter, len(fl.conjuncts))}
	for i, row := range fl.conjuncts {
		p := s.pages.page(row)
		d.conjuncts[i] = compiledFilter{shape: &filterShape{plan: p.table.plan, params: p.table.params}, values: p.values(int(row&pageMask), t)}
	}
	return d.cost()
}

// each visits the compounds with a key.
func (c *guardTable) each(key uint64, visit func(number uint32)) {
	switch one, known := c.byKey[key]; {
	case !known:
	case !one.listed:
		visit(one.number)
	default:
		for _, number := range c.lists[one.number].filters {
			visit(number)
		}
	}
}

// eachUnindexed visits what is in the rows of r that every event meets, each once, and what
// it costs.
func (r *table) eachUnindexed(t *textTable, visit func(place uint32, cost fanfare.Cost)) {
	at := &rowIndexer{pages: r.store, texts: t}
	var seen map[uint32]struct{} // a row is on every way of its guard
	once := func(row uint32) {
		if _, again := seen[row]; again {
			return
		}
		if seen == nil {
			seen = map[uint32]struct{}{}
		}
		seen[row] = struct{}{}
		at.seek(row)
		if cost := r.plan.unindexedCost(at); !cost.Indexed() {
			visit(uint32(r.store.page(row).owners[row&pageMask]), cost)
		}
	}
	for _, ways := range r.plan.guards {
		for _, w := range ways {
			switch h, some := w.buckets[everyEvent]; {
			case !some || w.hasKey():
			case h.bucket == nil:
				once(h.row)
			default:
				h.bucket.each(func(rows []uint32) {
					for _, row := range rows {
						once(row)
					}
				})
			}
		}
	}
}
