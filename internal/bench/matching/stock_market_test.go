package matching

import (
	"bytes"
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// The model that C1 and C2 compare with the sink agrees with the index for each quote.
func TestTheMarketKnowsThePeopleThatAQuoteMustReach(t *testing.T) {
	const n = 40_000
	m := newStockMarket(n, 1)
	x := condition.New()
	if err := x.Define(matchKey, marketDefinition()); err != nil {
		t.Fatal(err)
	}
	line, entries := m.lines(), []condition.Entry(nil)
	for i := range n {
		var put struct {
			Rule   string          `json:"rule"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(line(nil, i), &put); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, condition.Entry{Place: placeOf(i), Subscriber: placeOf(i / loadgen.AlertsOfEach), Rule: put.Rule, Params: put.Params})
	}
	if err := x.Add(matchKey, entries); err != nil {
		t.Fatal(err)
	}
	last := map[int]json.RawMessage{}
	var seen [marketRules]int
	for i := range 20 * marketSymbols {
		step := 16.0
		if i > 10*marketSymbols {
			step = 0.5
		}
		quote, told := m.appendQuote(nil, step)
		quote = bytes.TrimSpace(quote)
		hits, err := x.Match(matchKey, condition.Event{Data: quote, Previous: last[i%marketSymbols]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		people := map[any]bool{}
		for _, h := range hits {
			people[h.Subscriber] = true
			seen[h.Rule]++
		}
		if len(people) != told {
			t.Fatalf("quote %s after %s is for %d people, and %d were expected", quote, last[i%marketSymbols], len(people), told)
		}
		last[i%marketSymbols] = quote
	}
	for rule, hits := range seen {
		if hits < 100 {
			t.Errorf("rule %d was met %d times: this shows little", rule, hits)
		}
	}
}
