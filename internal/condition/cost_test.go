package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// costs are conditions of quakes with the reason why they are unindexed; "" for indexed ones.
var costs = []struct{ filter, why string }{
	{``, ``},
	{`mag >= 4.5`, ``},
	{`place == 'Alaska'`, ``},
	{`contains_ci(place, 'alaska')`, ``},
	{`contains_ci(place, 'alaska') || contains_ci(place, 'hawaii')`, ``},
	{`contains_ci(place, 'alaska') && event.type != 'automatic'`, ``},
	{`mag > 3.0 && place.matches('^[0-9]+ km')`, ``},
	{`event.type != 'automatic'`, `!=`},
	{`event.type != 'automatic' && place != 'Alaska'`, `!=`},
	{`!(place == 'Alaska')`, `negation`},
	{`has(event.mag)`, `has()`},
	{`event.place == event.type`, `==`},
	{`mag > geo.lat`, `<, <=, > and >=`},
	{`place.matches('^[0-9]+ km')`, `regular expression`},
	{`mag + geo.lat > 10.0`, `no other condition uses`},
	{`tags.exists(t, t.name == 'x')`, ``},
	{`tags.exists(t, t.name in ['x', 'y'])`, ``},
	{`tags.exists(t, t.name == null)`, `searches a string`},
	{`tags.exists(t, t.name != 'x')`, `arithmetic, conversions`},
	{`contains_ci(place, 'alaska') || event.type != 'automatic'`, `one side of an ||`},
	{`place.contains('')`, `empty string`},
	{`true`, `constant`},
}

func TestACostExplainsWhyAConditionIsUnindexed(t *testing.T) {
	x := newQuakes(t)
	for _, c := range costs {
		cost, err := x.FilterCost(quakes, c.filter)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		if cost.Indexed() != (c.why == "") || cost.Indexed() != (cost.Why == "") || !strings.Contains(cost.Why, c.why) {
			t.Errorf("%s: costs %+v, want because of %q", c.filter, cost, c.why)
		}
	}
}

func TestACostGrowsWithTheEvaluatedParts(t *testing.T) {
	x := newQuakes(t)
	last := int64(0)
	for _, filter := range []string{
		`event.type != 'automatic'`,
		`event.type != 'automatic' && place != 'Alaska'`,
		`event.type != 'automatic' && !contains_ci(place, 'alaska')`,
		`mag + geo.lat > 10.0`,
		`mag + geo.lat > 10.0 && mag * 2.0 > geo.lat`,
	} {
		cost, err := x.FilterCost(quakes, filter)
		if err != nil || cost.Nanos <= last {
			t.Errorf("%s costs %d ns, %v; want more than %d", filter, cost.Nanos, err, last)
		}
		last = cost.Nanos
	}
}

// Without a bound, the product of the loops would overflow to a negative cost, for the whole
// topic.
func TestTheCostOfNestedLoopsIsBounded(t *testing.T) {
	x := newQuakes(t)
	filter := "true"
	for depth := range 30 {
		filter = fmt.Sprintf("tags.all(x%d, %s)", depth, filter)
		cost, err := x.FilterCost(quakes, filter)
		if least, most := int64(expr.ProgramNanos), int64(expr.ProgramNanos+lang.MaxCost*(expr.NodeNanos+expr.RepeatNanos)+expr.RowNanos); err != nil || cost.Nanos < least || cost.Nanos > most {
			t.Fatalf("%d loops cost %d ns, %v; want %d to %d", depth+1, cost.Nanos, err, least, most)
		}
	}
	mustAdd(t, x, quakes, Entry{Place: 1, Filter: filter})
	if load := x.UnindexedCost(quakes); load < lang.MaxCost*expr.RepeatNanos {
		t.Errorf("the load is %d", load)
	}
}

func TestTheCostOfARuleDependsOnItsParams(t *testing.T) {
	x := newQuakes(t,
		Rule{Name: "near", When: "place.contains(sub.text)", Params: map[string]string{"text": "string"}},
		Rule{Name: "other", When: "place != sub.text", Params: map[string]string{"text": "string"}})
	for _, c := range []struct {
		rule, params string
		indexed      bool
	}{{"near", `{"text":"Alaska"}`, true}, {"near", `{"text":""}`, false}, {"other", `{"text":"Alaska"}`, false}} {
		cost, err := x.ParamsCost(quakes, c.rule, json.RawMessage(c.params))
		if err != nil || cost.Indexed() != c.indexed {
			t.Errorf("%s %s costs %+v, %v", c.rule, c.params, cost, err)
		}
	}
	if _, err := x.ParamsCost(quakes, "near", json.RawMessage(`{}`)); err == nil {
		t.Error("params that lack one have a price")
	}
}

// Most rules are indexed with any params, and an import asks for the cost of each of its rows.
func TestParamsDoNotChangeTheCostOfAnIndexedRule(t *testing.T) {
	text, least := map[string]string{"text": "string"}, map[string]string{"least": "number"}
	rules := []Rule{
		{Name: "same", When: "place == sub.text", Params: text},
		{Name: "strong", When: "mag >= sub.least", Params: least},
		{Name: "both", When: "mag >= sub.least && place == sub.text", Params: map[string]string{"least": "number", "text": "string"}},
		{Name: "either", When: "mag >= sub.least || place == sub.text", Params: map[string]string{"least": "number", "text": "string"}},
		{Name: "near", When: "place.contains(sub.text)", Params: text},
		{Name: "other", When: "place != sub.text", Params: text},
	}
	x := newQuakes(t, rules...)
	topic, err := x.topic(quakes)
	if err != nil {
		t.Fatal(err)
	}
	c, found := topic.compiled.Load(), map[bool]int{}
	for _, rule := range rules {
		p := c.rulePlans[c.ruleNumber(rule.Name)]
		found[p.alwaysIndexed()]++
		for _, params := range []string{`"least":0`, `"least":-1e300`, `"text":""`, `"text":"Alaska"`, `"least":0,"text":""`, `"least":7,"text":"Alaska"`} {
			number, v, err := c.readParams(rule.Name, []byte("{"+params+"}"))
			if err != nil {
				continue // they are another rule's
			}
			if long := p.cost(detachedRow(c.ruleScopes[number].Params, v)); p.alwaysIndexed() && !long.Indexed() {
				t.Errorf("%s with %s costs %+v", rule.Name, params, long)
			}
		}
	}
	if found[true] < 3 || found[false] < 2 {
		t.Errorf("of the rules %d are found by an index whatever their params are, and %d are not", found[true], found[false])
	}
}

// Only the first condition that needs the value is charged for it; later ones share the value.
func TestAComputedValueCostsOnce(t *testing.T) {
	x := newQuakes(t)
	const sum, clock = "mag * 2.0 + geo.lat > 10.0", "ce.time.getHours('Europe/Berlin') == 8"
	price := func(filter string) int64 {
		t.Helper()
		cost, err := x.FilterCost(quakes, filter)
		if err != nil || cost.Indexed() != (cost.Why == "") {
			t.Fatalf("%s: %+v, %v", filter, cost, err)
		}
		return cost.Nanos
	}
	first, hour := price(sum), price(clock)
	if first < expr.ProgramNanos || hour != expr.TimePartNanos {
		t.Errorf("the sum costs %d, the hour %d", first, hour)
	}
	mustAdd(t, x, quakes, Entry{Place: 1, Filter: sum}, Entry{Place: 2, Filter: "mag * 2.0 + geo.lat > 11.0"}, Entry{Place: 3, Filter: clock + " && mag > 3.0"})
	if again := price("place == 'x' && mag * 2.0 + geo.lat > 12.0"); again != 0 {
		t.Errorf("the sum costs %d again", again)
	}
	if got := x.UnindexedCost(quakes); got != first+hour {
		t.Errorf("the load is %d, want %d", got, first+hour)
	}
	x.Remove(quakes, 1)
	x.Remove(quakes, 2)
	if got := x.UnindexedCost(quakes); got != hour {
		t.Errorf("the load is %d, want %d", got, hour)
	}
}

// An empty criterion matches every event, so no index leads to its row.
func TestTheCostDependsOnTheSideOfAnOrThatLeadsToARow(t *testing.T) {
	x, key := changes(t)
	for _, c := range []struct {
		params  string
		indexed bool
	}{
		{`{"kinds":["a"],"any":[],"all":[]}`, true},
		{`{"kinds":[],"any":["a"],"all":[]}`, true},
		{`{"kinds":[],"any":[],"all":["a"]}`, true},
		{`{"kinds":[],"any":[],"all":[]}`, false},
	} {
		cost, err := x.ParamsCost(key, "criteria", json.RawMessage(c.params))
		if err != nil || cost.Indexed() != c.indexed {
			t.Errorf("%s costs %+v, %v", c.params, cost, err)
		}
		before := x.UnindexedCost(key)
		mustAdd(t, x, key, Entry{Place: 9000, Rule: "criteria", Params: json.RawMessage(c.params)})
		if got := x.UnindexedCost(key) - before; got != cost.Nanos {
			t.Errorf("%s: the load is %d ns more, want %d", c.params, got, cost.Nanos)
		}
		x.Remove(key, 9000)
	}
}
