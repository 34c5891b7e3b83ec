package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/explain"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A Condition is a condition in the index: a filter with its number among the topic's filters, or a
// rule with the params of one subscription.
type Condition struct {
	Filter string
	Number uint32 // for a filter

	Rule   string // "" for a filter
	Params json.RawMessage

	// The subscription to the rule.
	Place, Subscriber fanfare.RowID
	Channel, Slot     uint16
}

// A Report lists the conditions that were true in a match: its Filters, and a rule for each hit
// whose Rule is not negative.
type Report struct {
	Definition *Definition // at the time of the match; never changes
	Filters    []uint32    // numbers, each once, in no order
}

// MatchReported does what Match does, and fills r, whose memory it reuses.
func (x *Index) MatchReported(key Key, event Event, hits []Hit, r *Report) ([]Hit, error) {
	t, err := x.topic(key)
	if err != nil {
		return hits, err
	}
	r.Definition, r.Filters = nil, r.Filters[:0]
	err = t.search(&event, nil, func(f *matchFrame) {
		hits = t.collect(f, hits)
		r.Definition, r.Filters = &t.compiled.Load().definition, append(r.Filters, f.matchedFilters...)
	})
	return hits, err
}

// DefinitionOf returns the current definition of a topic; nil if the index has no such topic.
func (x *Index) DefinitionOf(key Key) (def *Definition) {
	x.read(key, func(t *topic) { def = &t.compiled.Load().definition })
	return def
}

// FilterAt returns the filter with a number; false if there is none.
func (x *Index) FilterAt(key Key, number uint32) (c Condition, ok bool) {
	x.read(key, func(t *topic) { c, ok = t.filters.condition(number) })
	return c, ok
}

// ConditionAt returns the condition of a subscription of the topic; false if the topic does not
// have the subscription.
func (x *Index) ConditionAt(key Key, place fanfare.RowID) (c Condition, ok bool) {
	x.read(key, func(t *topic) {
		if !t.subscriptions.Contains(uint32(place)) {
			return
		}
		ref := t.columns.page(place).conditions[place.Local()&pageMask]
		if ref&rowRefFlag == 0 {
			c, ok = t.filters.condition(uint32(ref))
			return
		}
		c, ok = t.rowCondition(uint32(ref&^rowRefFlag)), true
	})
	return c, ok
}

// FilterHits appends to hits all subscriptions of the topic that have a filter, ordered by id, as
// Match does if the filter is true.
func (x *Index) FilterHits(key Key, filter string, hits []Hit) []Hit {
	x.read(key, func(t *topic) {
		fl := t.filters.byText[filter]
		if fl == nil {
			return
		}
		hits = t.collect(t.frameOf(fl), hits)
	})
	return hits
}

// frameOf returns a frame in which a filter is true.
func (t *topic) frameOf(fl *filter) *matchFrame {
	f := new(matchFrame)
	f.addSubscriptions(fl)
	return f
}

// A Cursor is a position in the list of a topic's conditions. The zero Cursor is at the beginning.
type Cursor struct {
	filter int // number of the next filter
	page   int // after the last filter: number of the next page of rows
	row    int // row in that page
}

// Conditions visits the next n conditions of a topic and moves the cursor. It returns the number of
// visited conditions: fewer than n at the end, where it starts again. It visits the filters in the
// order of their numbers, then the subscriptions to rules in the order of their rows. Therefore,
// it visits each condition that stays exactly once between two visits of any other. visit must not
// call the index.
func (x *Index) Conditions(key Key, at *Cursor, n int, visit func(Condition)) (visited int) {
	x.read(key, func(t *topic) {
		for ; at.filter < len(t.filters.list) && visited < n; at.filter++ {
			if c, ok := t.filters.condition(uint32(at.filter)); ok {
				visit(c)
				visited++
			}
		}
		for ; at.page < len(t.pages.pages) && visited < n; at.page, at.row = at.page+1, 0 {
			if visited += t.pageConditions(at, n-visited, visit); visited == n {
				return
			}
		}
		if visited < n {
			*at = Cursor{}
		}
	})
	return visited
}

// pageConditions visits up to n conditions of the page at a cursor.
func (t *topic) pageConditions(at *Cursor, n int, visit func(Condition)) (visited int) {
	p := t.pages.pages[at.page]
	if p == nil {
		return 0
	}
	for ; at.row < len(p.owners) && visited < n; at.row++ {
		row := uint32(at.page)<<pageBits | uint32(at.row)
		if !t.isRow(p.owners[at.row], row) {
			continue // a free row
		}
		visit(t.rowCondition(row))
		visited++
	}
	return visited
}

// isRow reports whether a row belongs to the subscription and is not free.
func (t *topic) isRow(place fanfare.RowID, row uint32) bool {
	return t.subscriptions.Contains(uint32(place)) && t.columns.page(place).conditions[place.Local()&pageMask] == rowRefFlag|conditionRef(row)
}

// read calls visit with a topic, if it exists, under its read lock.
func (x *Index) read(key Key, visit func(*topic)) {
	t, err := x.topic(key)
	if err != nil {
		return
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	visit(t)
}

func (s *filters) condition(number uint32) (Condition, bool) {
	if int(number) >= len(s.list) || s.list[number] == nil {
		return Condition{}, false
	}
	return Condition{Filter: s.list[number].text, Number: number}, true
}

// rowCondition returns the condition of a row that is not free.
func (t *topic) rowCondition(row uint32) Condition {
	p, i := t.pages.page(row), int(row&pageMask)
	params, _ := json.Marshal(p.Sub(i, t.texts)) // params are always valid JSON
	place := p.owners[i]
	pg, at := t.columns.page(place), place.Local()&pageMask
	c := Condition{Rule: p.table.name, Params: params, Place: place, Subscriber: pg.subscribers[at], Channel: pg.channels[at]}
	if slots := t.columns.slots(place); slots != nil {
		c.Slot = slots[at]
	}
	return c
}

// Explain returns the result of each part of an entry's condition for an event, under the current
// definition of the topic. The whole is true exactly if Match finds such an entry. An entry without
// a condition has no parts, because every event matches it. The ids of the entry are ignored.
//
// It compiles the condition several times. Use it for interactive requests, not while events are processed.
func (x *Index) Explain(key Key, entry Entry, event Event) (fanfare.Part, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Part{}, err
	}
	c := t.compiled.Load()
	data, err := expr.DecodeData(event.Data, c.filterScope.Event)
	if err != nil {
		return fanfare.Part{}, err
	}
	sc, where, text, v := c.filterScope, "/filter", entry.Filter, lang.ParamValues{}
	switch {
	case entry.Rule != "":
		number, read, err := c.readParams(entry.Rule, entry.Params)
		if err != nil {
			return fanfare.Part{}, err
		}
		sc, text, v = c.ruleScopes[number], c.definition.Rules[number].When, read
		where = lang.Pointer("rules", fmt.Sprint(number), "when")
	case text == "":
		return fanfare.Part{Text: "true", Kind: fanfare.PartTest, Result: fanfare.PartTrue}, nil
	}
	return explain.Explain(sc, where, text, v, &event, data)
}

// IndexedBy describes by which values of an event the index finds a condition; "" if it is
// evaluated for every event, or if there is no condition. Of several guards, a row uses the one
// that it shares with the fewest others.
func (x *Index) IndexedBy(key Key, filter, rule string, params json.RawMessage) (string, error) {
	t, err := x.topic(key)
	if err != nil {
		return "", err
	}
	c := t.compiled.Load()
	if rule != "" {
		number, v, err := c.readParams(rule, params)
		if err != nil {
			return "", err
		}
		return c.rulePlans[number].describeIndex(detachedRow(c.ruleScopes[number].Params, v)), nil
	}
	d, err := t.compileFilter(c, filter)
	if err != nil {
		return "", err
	}
	if d.shape != nil {
		return d.shape.plan.describeIndex(detachedRow(d.shape.params, d.values)), nil
	}
	var words []string
	for i := range d.conjuncts {
		part := &d.conjuncts[i]
		if by := part.shape.plan.describeIndex(detachedRow(part.shape.params, part.values)); by != "" {
			words = append(words, by)
		}
	}
	return strings.Join(words, ", or "), nil
}

// describeIndex describes the guards that lead to the row for some events only.
func (p *plan) describeIndex(row *rowIndexer) string {
	var guards []string
	for _, paths := range p.guards {
		if slices.ContainsFunc(paths, row.matchesEveryEvent) {
			continue
		}
		var sides []string
		for _, a := range paths {
			if len(row.keysOf(a)) > 0 {
				sides = append(sides, a.describe())
			}
		}
		guards = append(guards, strings.Join(sides, " or "))
	}
	return strings.Join(guards, ", or ")
}

// describe describes by which values a finds its rows.
func (a *accessPath) describe() string {
	var list []string
	for i := range a.equalities {
		list = append(list, "the value of "+a.equalities[i].Describe())
	}
	switch {
	case a.substring != nil:
		list = append(list, "the text in "+a.substring.Describe())
	case a.sharedText != nil:
		list = append(list, "the values in "+a.sharedText.Describe())
	case a.grid != nil:
		list = append(list, "the place or range that contains the event")
	}
	switch {
	case a.rangeKey == nil:
	case a.rangeKey.crossing != nil:
		list = append(list, "the crossed levels")
	default:
		list = append(list, "the range of "+a.rangeKey.Describe())
	}
	return strings.Join(list, " and ")
}

// CountMatches returns how many events match a filter of the topic. It recompiles the filter:
// use it for reports, not while events are processed. A filter that cannot be evaluated matches
// none.
func (x *Index) CountMatches(key Key, filter string, events []Event) (n int) {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	c := t.compiled.Load()
	if filter == "" {
		return len(events)
	}
	a, err := c.filterScope.Compile("/filter", filter)
	if err != nil {
		return 0
	}
	e := &expr.StandaloneCondition{Scope: c.filterScope, Ast: a}
	var condition expr.Predicate
	e.Build(func(b *expr.Builder) { condition = b.Build(a.Expr()) })
	for i := range events {
		data, err := expr.DecodeData(events[i].Data, c.filterScope.Event)
		if err != nil || e.Err != nil {
			continue
		}
		e.SetEvent(&events[i], data)
		if condition.Eval(&e.Frame) == expr.True {
			n++
		}
	}
	return n
}
