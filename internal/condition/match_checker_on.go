//go:build assertions

package condition

import (
	"fmt"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// A matchChecker evaluates conditions to check the index: each as a whole, compiled from its own
// text, on fully decoded data. It uses no plan, shape, guard, access path, memo or scan.
// Every hit must be true, and conditions without a hit must not be.
type matchChecker struct {
	mu         sync.Mutex
	definition *compiledDefinition
	known      map[string]*checkedCondition // by rule or by text
	next       int                          // of the conditions without a hit: the next one to evaluate
}

// A checkedCondition is compiled for the matchChecker.
type checkedCondition struct {
	expr.StandaloneCondition
	predicate expr.Predicate
}

// The number of conditions that are evaluated for one event: up to maxCheckedHits hits, and some
// others in turn.
const (
	maxCheckedHits       = 512
	maxCheckedOthers     = 48
	maxCheckedConditions = 4096
)

// begin makes f keep the runs of ids that it passes to visit.
func (*matchChecker) begin(f *matchFrame) {
	if visit := f.visit; visit != nil {
		f.visit = func(places []uint32) {
			f.visited = append(f.visited, places...)
			visit(places)
		}
	}
}

// check compares the hits in f with the conditions.
func (a *matchChecker) check(t *topic, f *matchFrame, event *Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := t.compiled.Load()
	if a.definition != c || len(a.known) > maxCheckedConditions {
		a.definition, a.known = c, map[string]*checkedCondition{}
	}
	data, err := expr.DecodeData(event.Data, c.filterScope.Event)
	assert.True(err == nil, "the scan accepted data that cannot be decoded: %s: %v", event.Data, err)

	hits := roaring.New()
	once := func(place uint32) {
		assert.True(hits.CheckedAdd(place), "subscription %d is a hit twice for %s", place, event.Data)
		assert.True(t.subscriptions.Contains(place), "row %d is a hit, but has no subscription", place)
	}
	for _, place := range f.visited {
		once(place)
	}
	for _, key := range f.singleHits {
		place, _ := placeAndRule(key)
		once(uint32(place))
	}
	for _, places := range f.filterHits {
		places.Iterate(func(place uint32) bool { once(place); return true })
	}
	f.visited = nil

	met := map[*checkedCondition]map[string]expr.Truth{} // only of filters; rows of rules are evaluated one by one
	result := func(place fanfare.RowID) (expr.Truth, string) {
		one, row, text := a.conditionOf(t, c, place)
		if one == nil { // it has no condition
			return expr.True, text
		}
		if met[one] == nil {
			one.SetEvent(event, data)
			met[one] = map[string]expr.Truth{}
		}
		if row == nil {
			if _, known := met[one][""]; !known {
				met[one][""] = one.predicate.Eval(&one.Frame)
			}
			return met[one][""], text
		}
		one.Frame.Texts, one.Frame.Page, one.Frame.Row, one.Frame.DecodedParams = t.texts, row.page, row.at, expr.DecodedParams{}
		return one.predicate.Eval(&one.Frame), text
	}
	left := maxCheckedHits
	hits.Iterate(func(place uint32) bool {
		is, text := result(fanfare.RowID(place))
		assert.True(is == expr.True, "subscription %d is a hit, but its condition is %v: %s on %s after %s", place, is, text, event.Data, event.Previous)
		left--
		return left > 0
	})
	all := t.subscriptions.GetCardinality()
	for range min(all, maxCheckedOthers) {
		a.next = (a.next + 1) % int(all)
		place, err := t.subscriptions.Select(uint32(a.next))
		if err != nil || hits.Contains(place) {
			continue
		}
		is, text := result(fanfare.RowID(place))
		assert.True(is != expr.True, "subscription %d is not a hit, but its condition is true: %s on %s after %s", place, text, event.Data, event.Previous)
	}
}

// checkedRow is the position of a subscription's params.
type checkedRow struct {
	page *expr.ParamPage
	at   int
}

// conditionOf returns the condition of a subscription, with its row if it is a rule; nil if it has
// none.
func (a *matchChecker) conditionOf(t *topic, c *compiledDefinition, p fanfare.RowID) (one *checkedCondition, row *checkedRow, text string) {
	sc, key := c.filterScope, ""
	ref := t.columns.page(p).conditions[p.Local()&pageMask]
	if ref&rowRefFlag != 0 {
		number := uint32(ref &^ rowRefFlag)
		pg := t.pages.page(number)
		assert.True(pg.owners[number&pageMask] == p, "row %d does not belong to subscription %d", number, p)
		row = &checkedRow{&pg.ParamPage, int(number & pageMask)}
		rule := pg.table
		sc, text, key = c.ruleScopes[rule.ruleNumber], c.definition.Rules[rule.ruleNumber].When, "rule "+rule.name
	} else {
		fl := t.filters.list[ref]
		assert.True(t.filters.byText[fl.text] == fl && fl.number == uint32(ref), "filter %d cannot be found by its text %s", ref, fl.text)
		if text, key = fl.text, "filter "+fl.text; text == "" {
			return nil, nil, ""
		}
	}
	if one = a.known[key]; one == nil {
		tree, err := sc.Compile("/filter", text)
		assert.True(err == nil, "%s is in the index, but does not compile: %v", text, err)
		one = &checkedCondition{StandaloneCondition: expr.StandaloneCondition{Scope: sc, Ast: tree}}
		one.Build(func(b *expr.Builder) { one.predicate = b.Build(tree.Expr()) })
		assert.True(one.Err == nil, "%s is in the index, but cannot be planned: %v", text, one.Err)
		a.known[key] = one
	}
	if row != nil {
		text += fmt.Sprint(" with ", row.page.Sub(row.at, t.texts))
	}
	return one, row, text
}
