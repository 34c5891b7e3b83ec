package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// A Dear is a condition to which no index leads: a filter, or a rule with all of
// its subscriptions that have none.
type Dear struct {
	Filter        string
	Rule          string // "" of a filter
	Subscriptions int    // that have it
	Cost          fanfare.Cost
}

// Load is what the conditions of a topic to which no index leads cost each event
// together, in nanoseconds: filters of one text once, subscriptions to a rule each, and
// what is computed of the event once, however many conditions ask for it. It is added up
// once for each change of the topic: who puts many conditions asks before each of them.
func (x *Index) Load(key Key) (nanos int64) {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	t.change.Lock()
	defer t.change.Unlock()
	if !t.loaded {
		t.load = 0
		t.eachDear(func(d Dear) { t.load += d.Cost.Nanos })
		for _, use := range t.paths.slots.used {
			t.load += use.nanos
		}
		t.loaded = true
	}
	return t.load
}

// Has reports whether some subscription of the topic has the filter.
func (x *Index) Has(key Key, filter string) bool {
	t, err := x.topic(key)
	if err != nil {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.filters.byText[filter] != nil
}

// Dearest returns the limit dearest conditions of a topic to which no index
// leads, the dearest first, and how many there are.
func (x *Index) Dearest(key Key, limit int) (list []Dear, all int) {
	x.eachDear(key, func(d Dear) {
		all++
		if list = append(list, d); len(list) > 2*limit+1024 {
			list = dearest(list, limit)
		}
	})
	return dearest(list, limit), all
}

func dearest(list []Dear, limit int) []Dear {
	slices.SortFunc(list, func(a, b Dear) int {
		return cmp.Or(cmp.Compare(b.Cost.Nanos, a.Cost.Nanos), cmp.Compare(b.Subscriptions, a.Subscriptions),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Filter, b.Filter))
	})
	return list[:min(len(list), limit)]
}

// eachDear visits the conditions of a topic to which no index leads. Nothing changes
// meanwhile, and matches go on.
func (x *Index) eachDear(key Key, visit func(Dear)) {
	t, err := x.topic(key)
	if err != nil {
		return
	}
	t.change.Lock()
	defer t.change.Unlock()
	t.eachDear(visit)
}

// eachDear is that of the index, for who changes the topic.
func (t *topic) eachDear(visit func(Dear)) {
	for _, r := range t.rules {
		all := Dear{Rule: r.name}
		r.eachDear(t.texts, func(_ uint32, cost fanfare.Cost) {
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
		visit(Dear{Filter: fl.text, Subscriptions: int(fl.count), Cost: cost})
	}
	for _, r := range s.forms {
		r.eachDear(t.texts, dear)
	}
	compound := func(number uint32) {
		if cost := s.costOf(s.list[number], t.texts); !cost.Indexed() {
			dear(number, cost)
		}
	}
	s.terms.guards.each(everyEvent, compound)
	for _, r := range s.terms.list {
		if r.term.onWays > 0 {
			r.eachDear(t.texts, func(number uint32, _ fanfare.Cost) { compound(number) })
		}
	}
}

// costOf is what a compound costs.
func (s *filters) costOf(fl *filter, t *texts) fanfare.Cost {
	d := draft{parts: make([]draft, len(fl.parts))}
	for i, row := range fl.parts {
		p := s.rows.page(row)
		d.parts[i] = draft{form: &form{plan: p.rule.plan, params: p.rule.params}, values: p.values(int(row&pageMask), t)}
	}
	return d.price()
}

// values returns the params of a row as they were given.
func (p *page) values(row int, t *texts) (v values) {
	for _, column := range p.numbers {
		v.numbers = append(v.numbers, column[row])
	}
	for _, column := range p.texts {
		v.texts = append(v.texts, t.at(column[row]).text)
	}
	return v
}

// each visits the compounds with a key.
func (c *guards) each(key uint64, visit func(number uint32)) {
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

// eachDear visits what is in the rows of r that every event meets, each once, and what
// it costs.
func (r *rule) eachDear(t *texts, visit func(place uint32, cost fanfare.Cost)) {
	at := &placing{rows: r.rows, texts: t}
	var seen map[uint32]struct{} // a row is on every way of its guard
	once := func(row uint32) {
		if _, again := seen[row]; again {
			return
		}
		if seen == nil {
			seen = map[uint32]struct{}{}
		}
		seen[row] = struct{}{}
		at.at(row)
		if cost := r.plan.dear(at); !cost.Indexed() {
			visit(uint32(r.rows.page(row).places[row&pageMask]), cost)
		}
	}
	for _, ways := range r.plan.guards {
		for _, w := range ways {
			switch h, some := w.buckets[everyEvent]; {
			case !some || w.ordered():
			case h.many == nil:
				once(h.row)
			default:
				h.many.all(func(rows []uint32) {
					for _, row := range rows {
						once(row)
					}
				})
			}
		}
	}
}
