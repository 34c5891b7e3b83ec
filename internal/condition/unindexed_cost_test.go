package condition

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
)

func costOf(t *testing.T, x *Index, filter string) int64 {
	t.Helper()
	cost, err := x.FilterCost(quakes, filter)
	if err != nil {
		t.Fatal(err)
	}
	return cost.Nanos
}

func TestUnindexedCostIsTheSumOfUnindexedConditions(t *testing.T) {
	other := Rule{Name: "other", When: "place != sub.text", Params: map[string]string{"text": "string"}}
	x := newQuakes(t, near, other)
	want := func(nanos int64, why string) {
		t.Helper()
		if got := x.UnindexedCost(quakes); got != nanos {
			t.Errorf("the load is %d ns, want %d: %s", got, nanos, why)
		}
	}
	want(0, "there is no subscription")
	mustAdd(t, x, quakes, Entry{Place: 1, Filter: "mag > 5.0"}, Entry{Place: 2}, Entry{Place: 3, Rule: "near", Params: []byte(`{"min_mag":1,"place":"x"}`)})
	want(0, "an index leads to all")
	one := costOf(t, x, "place != 'a'")
	mustAdd(t, x, quakes, Entry{Place: 10, Filter: "place != 'a'"}, Entry{Place: 11, Filter: "place != 'a'"})
	want(one, "two subscriptions share a filter")
	mustAdd(t, x, quakes, Entry{Place: 12, Filter: "place != 'b'"})
	want(2*one, "another filter of the same form")
	empty := costOf(t, x, "place.contains('')")
	mustAdd(t, x, quakes, Entry{Place: 13, Filter: "place.contains('')"}, Entry{Place: 14, Filter: "place.contains('a')"})
	want(2*one+empty, "the empty text is everywhere, the other is not")
	cost, err := x.ParamsCost(quakes, "other", []byte(`{"text":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	mustAdd(t, x, quakes, Entry{Place: 20, Rule: "other", Params: []byte(`{"text":"a"}`)}, Entry{Place: 21, Rule: "other", Params: []byte(`{"text":"a"}`)})
	want(2*one+empty+2*cost.Nanos, "each subscription to a rule counts")
	x.Remove(quakes, 20)
	x.Remove(quakes, 12)
	x.Remove(quakes, 13)
	want(one+cost.Nanos, "what went costs nothing")
	mustAdd(t, x, quakes, Entry{Place: 21, Filter: "mag > 5.0"})
	want(one, "a subscription got another condition")
	x.Remove(quakes, 10)
	want(one, "one of two that share a filter is left")
	x.Remove(quakes, 11)
	want(0, "the last one went")
}

func TestUnindexedCostFollowsTheDefinition(t *testing.T) {
	rule := Rule{Name: "other", When: "place != sub.text", Params: map[string]string{"text": "string"}}
	x := newQuakes(t, rule)
	mustAdd(t, x, quakes, Entry{Place: 1, Rule: "other", Params: []byte(`{"text":"a"}`)})
	if x.UnindexedCost(quakes) == 0 {
		t.Error("no index leads to it, and it costs nothing")
	}
	rule.When = "place == sub.text"
	if err := x.Define(quakes, Definition{Schema: []byte(quakeSchema), Rules: []Rule{rule}}); err != nil {
		t.Fatal(err)
	}
	if got := x.UnindexedCost(quakes); got != 0 {
		t.Errorf("an index leads to it now, and it costs %d ns", got)
	}
}

// BenchmarkUnindexedCost measures the call that the registry makes before it adds an unindexed
// condition.
func BenchmarkUnindexedCost(b *testing.B) {
	x := newQuakes(b)
	var entries []Entry
	for i := range 20_000 {
		entries = append(entries, Entry{Place: fanfare.RowID(i + 1), Filter: fmt.Sprintf("place != '%d'", i)})
	}
	mustAdd(b, x, quakes, entries...)
	for b.Loop() {
		x.UnindexedCost(quakes)
	}
}

func TestTheMostExpensiveConditionsComeFirst(t *testing.T) {
	other := Rule{Name: "other", When: "place != sub.text", Params: map[string]string{"text": "string"}}
	x := newQuakes(t, other)
	for i := range 3000 {
		mustAdd(t, x, quakes, Entry{Place: placeNumber(i), Filter: fmt.Sprintf("place != '%d'", i)})
	}
	mustAdd(t, x, quakes, Entry{Place: placeNumber(3000), Filter: "place != '7'"},
		Entry{Place: placeNumber(3001), Filter: "place.matches('^[0-9]+ km')"}, Entry{Place: placeNumber(3002), Filter: "mag > 10.0"})
	for i := range 100 {
		mustAdd(t, x, quakes, Entry{Place: placeNumber(4000 + i), Rule: "other", Params: []byte(`{"text":"a"}`)})
	}
	list, all := x.MostExpensive(quakes, 3)
	if all != 3002 || len(list) != 3 {
		t.Fatalf("%d of %d, want 3 of 3002", len(list), all)
	}
	if list[0].Rule != "other" || list[0].Subscriptions != 100 || list[0].Cost.Nanos <= list[1].Cost.Nanos || list[0].Cost.Why == "" {
		t.Errorf("the most expensive is %+v, want the rule with 100 subscriptions", list[0])
	}
	if list[1].Filter != "place.matches('^[0-9]+ km')" || list[2].Filter != "place != '7'" || list[2].Subscriptions != 2 {
		t.Errorf("then %+v, want the pattern, and then the filter that two have", list[1:])
	}
}

func placeNumber(i int) fanfare.RowID {
	return fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
}

// Filters whose shapes few others have are conjunctions (conjunction.go).
func TestUnindexedCostCountsConjunctions(t *testing.T) {
	x := newQuakes(t)
	fields := []string{"place", "event.type", "event.geo.lat", "event.sig", "mag"}
	want, number := int64(0), 0
	for _, a := range fields {
		for _, b := range fields {
			for _, op := range []string{"==", "!="} {
				value := func(field string) string {
					if field == "place" || field == "event.type" {
						return "'x'"
					}
					return "5.0"
				}
				filter := fmt.Sprintf("%s %s %s && %s != %s && !has(event.tags)", a, op, value(a), b, value(b))
				want += costOf(t, x, filter)
				number++
				mustAdd(t, x, quakes, Entry{Place: placeNumber(number), Filter: filter})
			}
		}
	}
	if got := x.UnindexedCost(quakes); got != want || want == 0 {
		t.Errorf("the load is %d ns, want %d", got, want)
	}
	if list, all := x.MostExpensive(quakes, 100); all != len(fields)*len(fields) || len(list) != all {
		t.Errorf("%d are unindexed and %d are listed, want those with only !=, %d", all, len(list), len(fields)*len(fields))
	}
	for i := range number {
		x.Remove(quakes, placeNumber(i+1))
	}
	if got := x.UnindexedCost(quakes); got != 0 {
		t.Errorf("the load is %d ns when all have left", got)
	}
}
