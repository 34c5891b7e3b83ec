package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

// The test fills many pages and leaves, so that hits of two rules and three filters are sorted and
// merged in bulk, before and after removals and a redefinition.
func TestManyHitsOfRulesAndFiltersComeInOrder(t *testing.T) {
	const n = 30_000
	strong := Rule{Name: "strong", When: "sub.min < event.mag", Params: map[string]string{"min": "number"}}
	typed := Rule{Name: "typed", When: "event.type == sub.type && event.sig == sub.sig && event.mag <= sub.max",
		Params: map[string]string{"type": "string", "sig": "number", "max": "number"}}
	x := newQuakes(t, strong, typed)
	var entries []Entry
	wants := func(i int) bool { // for the event below
		switch i % 5 {
		case 0:
			return i%700 < 500
		case 1:
			return i%2 == 0 && i%3 == 0 && i%900 >= 500
		case 2:
			return true
		case 3:
			return i%2 == 0
		}
		return false
	}
	const data = `{"mag":500,"type":"t0","sig":0,"place":"p0"}`
	for i := range n {
		e := Entry{Place: fanfare.NewRowID(i*7%fanfare.Partitions, uint32(i)), Subscriber: fanfare.RowID(i), Channel: uint16(i)}
		switch i % 5 {
		case 0:
			e.Rule, e.Params = "strong", json.RawMessage(fmt.Sprintf(`{"min":%d}`, i%700))
		case 1:
			e.Rule, e.Params = "typed", json.RawMessage(fmt.Sprintf(`{"type":"t%d","sig":%d,"max":%d}`, i%2, i%3, i%900))
		case 3:
			e.Filter = fmt.Sprintf("place == 'p%d'", i%2)
		case 4:
			e.Filter = "sig > 7"
		}
		entries = append(entries, e)
	}
	mustAdd(t, x, quakes, entries...)
	removed := map[int]bool{}
	check := func(when string, rules map[int]int16) {
		t.Helper()
		var want []Hit
		for i, e := range entries {
			if wants(i) && !removed[i] {
				number, ok := rules[i%5]
				if !ok {
					number = -1
				}
				want = append(want, Hit{Place: e.Place, Subscriber: e.Subscriber, Channel: e.Channel, Rule: number})
			}
		}
		slices.SortFunc(want, func(a, b Hit) int { return int(int64(a.Place) - int64(b.Place)) })
		got, err := x.Match(quakes, Event{Data: json.RawMessage(data)}, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d hits, want %d, %v", when, len(got), len(want), err)
		}
		var runs []uint32
		err = x.Places(quakes, Event{Data: json.RawMessage(data)}, func(places []uint32) { runs = append(runs, places...) })
		slices.Sort(runs)
		if !slices.EqualFunc(runs, want, func(place uint32, h Hit) bool { return place == uint32(h.Place) }) || err != nil {
			t.Errorf("%s: %d places in runs, want %d, %v", when, len(runs), len(want), err)
		}
	}
	check("filled", map[int]int16{0: 0, 1: 1})
	for i := 0; i < n; i += 3 {
		x.Remove(quakes, entries[i].Place)
		removed[i] = true
	}
	check("after removals", map[int]int16{0: 0, 1: 1})
	if err := x.Define(quakes, Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{typed, near, strong}}); err != nil {
		t.Fatal(err)
	}
	check("after a redefinition", map[int]int16{0: 2, 1: 0})
	mustAdd(t, x, quakes, entries...)
	removed = nil
	check("added again", map[int]int16{0: 2, 1: 0})
}
