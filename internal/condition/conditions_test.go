package condition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// The test adds and removes subscriptions and visits the conditions of the topic in steps of all
// sizes.
func TestARoundVisitsEachConditionOnce(t *testing.T) {
	x, key := New(), Key{"s", "topic"}
	def := Definition{Rules: []Rule{{Name: "least", When: "event.n >= sub.least", Params: map[string]string{"least": "number"}},
		{Name: "any", When: "event.s in sub.list && sub.on", Params: map[string]string{"list": "strings", "on": "boolean"}}}}
	if err := x.Define(key, def); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	entries := map[fanfare.RowID]Entry{}
	name := func(rule, params, filter string, place fanfare.RowID) string {
		if rule != "" {
			return fmt.Sprint(place, rule, params)
		}
		return filter
	}
	for round := range 30 {
		for range 100 {
			place := fanfare.RowID(r.IntN(9000))
			if r.IntN(3) == 0 {
				x.Remove(key, place)
				delete(entries, place)
				continue
			}
			e := Entry{Place: place, Subscriber: place / 2, Channel: uint16(place % 3), Slot: uint16(place % 5)}
			switch r.IntN(4) {
			case 0:
				e.Rule, e.Params = "least", json.RawMessage(fmt.Sprintf(`{"least":%d}`, r.IntN(9)))
			case 1:
				e.Rule, e.Params = "any", json.RawMessage(fmt.Sprintf(`{"list":["a%d","b"],"on":%t}`, r.IntN(9), r.IntN(2) == 0))
			default:
				e.Filter = fmt.Sprintf("event.n > %d && event.m != %d", r.IntN(20), r.IntN(3))
			}
			if err := x.Add(key, []Entry{e}); err != nil {
				t.Fatal(err)
			}
			entries[place] = e
		}
		want := map[string]int{}
		for _, e := range entries {
			want[name(e.Rule, string(e.Params), e.Filter, e.Place)] = 1
		}
		got := map[string]int{}
		var at Cursor
		for step := 1 + round%7; ; {
			visits := 0
			n := x.Conditions(key, &at, step, func(c Condition) {
				visits++
				got[name(c.Rule, string(c.Params), c.Filter, c.Place)]++
				of, ok := x.ConditionAt(key, c.Place)
				if e := entries[c.Place]; c.Rule != "" && (!ok || string(of.Params) != string(c.Params) || c.Subscriber != e.Subscriber || c.Channel != e.Channel || c.Slot != e.Slot) {
					t.Errorf("round %d: %+v, and at its place %+v", round, c, of)
				}
			})
			if n != visits || n > step {
				t.Fatalf("round %d: of %d conditions visited %d, says %d", round, step, visits, n)
			}
			if n < step {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("round %d: visited %d conditions of %d", round, len(got), len(want))
		}
		for name, n := range got {
			if n != 1 || want[name] != 1 {
				t.Fatalf("round %d: visited %s %d times", round, name, n)
			}
		}
	}
	if at := (Cursor{}); x.Conditions(Key{"s", "none"}, &at, 5, nil) != 0 {
		t.Error("a topic that is not there has conditions")
	}

	var report Report // of one match after the other
	for n := range 20 {
		event := expr.Event{Data: fmt.Appendf(nil, `{"n":%d,"m":1,"s":"b"}`, n)}
		want, err := x.Match(key, event, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.MatchReported(key, event, nil, &report)
		if err != nil || !slices.Equal(got, want) || report.Definition != x.DefinitionOf(key) {
			t.Fatalf("%v: %v, want %v", err, got, want)
		}
		var again []Hit
		for _, number := range report.Filters {
			c, ok := x.FilterAt(key, number)
			if !ok {
				t.Fatalf("there is no filter %d", number)
			}
			again = x.FilterHits(key, c.Filter, again)
		}
		for _, h := range want {
			if h.Rule >= 0 {
				again = append(again, h)
			}
		}
		sortHits(again)
		if !slices.Equal(again, want) {
			t.Errorf("%d: the report leads to %v, want %v", n, again, want)
		}
	}
	if _, err := x.MatchReported(key, Event{Data: json.RawMessage(`{"n"`)}, nil, &report); err == nil || report.Definition != nil || len(report.Filters) != 0 {
		t.Errorf("an event that is no JSON has %v and the report %+v", err, report)
	}
}
