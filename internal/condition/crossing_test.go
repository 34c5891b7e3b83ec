package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

const quoteSchema = `{"type":"object","properties":{
	"symbol":{"type":"string"},"price":{"type":"number"},"open":{"type":"number"},"size":{"type":"integer"},"any":{},"list":{"type":"array"}}}`

var quotes = Key{"stocks", "quote"}

func newQuotes(t testing.TB, rules ...Rule) *Index {
	t.Helper()
	x := New()
	if err := x.Define(quotes, Definition{Key: "symbol", Schema: json.RawMessage(quoteSchema), Rules: rules}); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestALevelIsCrossedWhenTheValueReachesIt(t *testing.T) {
	for _, c := range []struct {
		filter, was, is string
		want            bool
	}{
		{`crosses(price, 10)`, `{"price":9}`, `{"price":11}`, true},
		{`crosses(price, 10)`, `{"price":11}`, `{"price":9}`, true},
		{`crosses(price, 10)`, `{"price":9}`, `{"price":10}`, true},   // reached
		{`crosses(price, 10)`, `{"price":11}`, `{"price":10}`, true},  // reached from above
		{`crosses(price, 10)`, `{"price":10}`, `{"price":11}`, false}, // it was reached before
		{`crosses(price, 10)`, `{"price":10}`, `{"price":9}`, false},
		{`crosses(price, 10)`, `{"price":10}`, `{"price":10}`, false},
		{`crosses(price, 10)`, `{"price":11}`, `{"price":12}`, false},
		{`crosses_above(price, 10)`, `{"price":9}`, `{"price":11}`, true},
		{`crosses_above(price, 10)`, `{"price":9}`, `{"price":10}`, true},
		{`crosses_above(price, 10)`, `{"price":11}`, `{"price":9}`, false},
		{`crosses_below(price, 10)`, `{"price":11}`, `{"price":9}`, true},
		{`crosses_below(price, 10)`, `{"price":11}`, `{"price":10}`, true},
		{`crosses_below(price, 10)`, `{"price":9}`, `{"price":11}`, false},
		// No previous value, or none that is a number.
		{`crosses(price, 10)`, ``, `{"price":11}`, false},
		{`!crosses(price, 10)`, ``, `{"price":11}`, true},
		{`crosses(price, 10)`, `{}`, `{"price":11}`, false},
		{`crosses(price, 10)`, `{"price":null}`, `{"price":11}`, false},
		{`crosses(event.any, 10)`, `{"any":"9"}`, `{"any":11}`, false},
		{`!crosses(event.any, 10)`, `{"any":"9"}`, `{"any":11}`, true},
		{`crosses(event.any, 10)`, `null`, `{"any":11}`, false},
		// The current value is not a number: an error, so no match.
		{`crosses(event.any, 10)`, `{"any":9}`, `{}`, false},
		{`!crosses(event.any, 10)`, `{"any":9}`, `{}`, false},
		{`!crosses(event.any, 10)`, `{"any":9}`, `{"any":"x"}`, false},
		{`crosses(event.any, 10) || true`, `{"any":9}`, `{}`, true},
		// NaN as the current value or the level is an error in every spelling; as the previous
		// value, it crosses nothing.
		{`crosses(event.any - open, 2.0)`, ``, `{"any":1e999,"open":1e999}`, false},
		{`!crosses(event.any - open, 2.0)`, ``, `{"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0) == false`, ``, `{"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0) != true`, ``, `{"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0) ? false : true`, ``, `{"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0) || true`, ``, `{"any":1e999,"open":1e999}`, true},
		{`!crosses(event.any - open, 2.0)`, `{"any":1.0,"open":2}`, `{"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0) == false`, `{"any":1.0,"open":2}`, `{"any":1e999,"open":1e999}`, false},
		{`[2.0].exists(level, !crosses(event.any - open, level))`, ``, `{"any":1e999,"open":1e999}`, false},
		{`!crosses(price, event.any - open)`, ``, `{"price":1,"any":1e999,"open":1e999}`, false},
		{`crosses(price, event.any - open) == false`, `{"price":0}`, `{"price":1,"any":1e999,"open":1e999}`, false},
		{`crosses(event.any - open, 2.0)`, `{"any":1e999,"open":1e999}`, `{"any":9.0,"open":1}`, false},
		{`!crosses(event.any - open, 2.0)`, `{"any":1e999,"open":1e999}`, `{"any":9.0,"open":1}`, true},
		{`crosses(event.any - open, 2.0) == false`, `{"any":1e999,"open":1e999}`, `{"any":9.0,"open":1}`, true},
		// Levels of all kinds.
		{`crosses(price, 10.5)`, `{"price":10}`, `{"price":11}`, true},
		{`crosses(price, event.open)`, `{"price":9,"open":100}`, `{"price":11,"open":10}`, true}, // the level of now
		{`crosses(price, event.any)`, `{"price":9}`, `{"price":11,"any":"x"}`, false},
		{`!crosses(price, event.any)`, `{"price":9}`, `{"price":11,"any":"x"}`, false},
		{`crosses(price, -event.open)`, `{"price":-9}`, `{"price":-11,"open":10}`, true},
		{`crosses(size, 9007199254740993)`, `{"size":9007199254740992}`, `{"size":9007199254740993}`, true}, // integers, exactly
		{`crosses(price, 1e308)`, `{"price":1}`, `{"price":1e999}`, true},
		// A computed value: a change in percent.
		{`crosses((price - open) / open * 100.0, 5.0)`, `{"price":104,"open":100}`, `{"price":105.5,"open":100}`, true},
		{`crosses((price - open) / open * 100.0, 5.0)`, `{"price":106,"open":100}`, `{"price":107,"open":100}`, false},
		{`crosses((price - open) / open * 100.0, 5.0)`, `{"price":104}`, `{"price":106,"open":100}`, false},
		{`!crosses((price - open) / open * 100.0, 5.0)`, `{"price":104}`, `{"price":106,"open":100}`, true},
		{`crosses_below(double(event.any), -5.0)`, `{"any":"-4"}`, `{"any":"-6"}`, true},
		// Together with the rest of CEL.
		{`symbol == 'A' && crosses(event["price"], 10)`, `{"price":9}`, `{"symbol":"A","price":11}`, true},
		{`symbol == 'A' && crosses(event["price"], 10)`, `{"price":9}`, `{"symbol":"B","price":11}`, false},
		{`[8, 10].exists(level, crosses(price, level))`, `{"price":9}`, `{"price":11}`, true},
		{`[8, 12].exists(level, crosses(price, level))`, `{"price":9}`, `{"price":11}`, false},
		{`crosses(price, 10) == crosses(price, 12)`, `{"price":9}`, `{"price":13}`, true},
		{`crosses(price, 10) ? size > 1 : size > 9`, `{"price":9}`, `{"price":13,"size":2}`, true},
	} {
		x := newQuotes(t)
		if err := x.Add(quotes, []Entry{{Filter: c.filter}}); err != nil {
			t.Fatalf("%s: %v", c.filter, err)
		}
		event := expr.Event{Data: json.RawMessage(c.is), Previous: json.RawMessage(c.was)}
		hits, err := x.Match(quotes, event, nil)
		if err != nil {
			t.Fatal(err)
		}
		part, err := x.Explain(quotes, Entry{Filter: c.filter}, event)
		if err != nil {
			t.Fatal(err)
		}
		naively := naive(t, x.topics[quotes].compiled.Load().filterScope, c.filter, event, nil)
		if got := len(hits) == 1; got != c.want || naively != c.want || (part.Result == fanfare.PartTrue) != c.want {
			t.Errorf("%s, from %s to %s: matched %v, by cel-go %v, explained as %s; want %v", c.filter, c.was, c.is, got, naively, part.Result, c.want)
		}
	}
}

func TestImpossibleCrossingsAreRefused(t *testing.T) {
	for _, c := range []struct{ filter, message string }{
		{`crosses(price)`, "requires two arguments"},
		{`crosses(price, 1, 2)`, "requires two arguments"},
		{`crosses([1.0], 2)`, "requires a field"},
		{`crosses(event.list.size(), 2)`, "requires a field"},
		{`crosses(symbol, 10)`, "requires numbers, not a string"},
		{`crosses(price, 'x')`, "requires numbers, not a string"},
		{`event.list.exists(x, crosses(x.price, 10))`, "x is not a field of the event"},
		{`[open].exists(event, crosses(event.price, 10))`, "event is not a field of the event"},
		{`crosses(prise, 10)`, `unknown name "prise"`},
		{`crosses(event.prise, 10.0) && has(event.prise)`, `unknown field "prise"`},
		{`price.crosses(10)`, "requires two arguments"},
		{`@crosses(price, 1, 2)`, "syntax error"},
	} {
		x := New()
		schema := strings.Replace(quoteSchema, `"properties"`, `"additionalProperties":false,"properties"`, 1)
		if err := x.Define(quotes, Definition{Key: "symbol", Schema: json.RawMessage(schema)}); err != nil {
			t.Fatal(err)
		}
		e := asError(t, x.CheckFilter(quotes, c.filter))
		if !strings.Contains(e.Message, c.message) || e.Line != 1 || e.Pointer != "/filter" {
			t.Errorf("%s: %q at %s, line %d; want %q", c.filter, e.Message, e.Pointer, e.Line, c.message)
		}
	}
}

func TestACrossingNeedsATopicWithAKey(t *testing.T) {
	x := New()
	if err := x.Define(quotes, Definition{Schema: json.RawMessage(quoteSchema)}); err != nil {
		t.Fatal(err)
	}
	e := asError(t, x.CheckFilter(quotes, `symbol == 'A' && crosses_above(price, 10)`))
	if !strings.Contains(e.Message, "crosses_above compares an event with the previous event of the same key") || !strings.Contains(e.Hint, "key: symbol") {
		t.Errorf("%q, %q", e.Message, e.Hint)
	}
	keyed := Definition{Schema: json.RawMessage(quoteSchema), Key: "symbol"}
	if err := x.Define(quotes, keyed); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, x, quotes, Entry{Filter: `crosses(price, 10)`})
	keyed.Key = ""
	if err := x.Define(quotes, keyed); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("the key went from under a crossing: %v", err)
	}
}

func TestTheKeyIsAFieldOfTheSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
		"s":{"type":"string"},"i":{"type":"integer"},"b":{"type":"boolean"},"l":{"type":"array"},
		"o":{"type":"object","additionalProperties":false,"properties":{"n":{"type":["string","null"]}}}}}`)
	for key, message := range map[string]string{
		"s": "", "i": "", "b": "", "o.n": "",
		"t": `unknown field "t"`, "o.m": `unknown field "m"`, "l": "the key l is a list", "o": "the key o is an object",
		"s.x": `a string has no field "x"`, "o['n']": "", "['s']": "", "o.`n`": "", "`s`": "", "['t']": `unknown field "t"`,
		".s": "not the name of a field", "s.": "not the name of a field", "o..n": "not the name of a field", "o`n`": "not the name of a field", "o n": "not the name of a field", "['s'": "not the name of a field", "s-t": "not the name of a field", "s[0]": "not the name of a field",
	} {
		err := New().Check(Definition{Schema: schema, Key: key})
		if message == "" && err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if message != "" {
			if e := asError(t, err); e.Pointer != "/key" || !strings.Contains(e.Message, message) {
				t.Errorf("%s: %q at %s, want %q", key, e.Message, e.Pointer, message)
			}
		}
	}
}

func TestTheKeyOfAnEventIsTheTextOfItsField(t *testing.T) {
	for _, c := range []struct{ key, data, want string }{
		{"a", `{"a":"x"}`, "x"}, {"a", `{"a":""}`, "none"},
		{"['a-b']", `{"a-b":"x"}`, "x"}, {"`a-b`", `{"a-b":"x"}`, "x"}, {"a['b c'].d", `{"a":{"b c":{"d":"x"}}}`, "x"}, {"a.`b c`", `{"a":{"b c":"x"}}`, "x"}, {`a["b"]`, `{"a":{"b":"x"}}`, "x"}, {"a", `{"a":"x\u0000"}`, "none"}, {"a", `{"a":5}`, "5"}, {"a", `{"a":5.0}`, "5"}, {"a", `{"a":-0.0}`, "0"},
		{"a", `{"a":1.25}`, "1.25"}, {"a", `{"a":true}`, "true"}, {"a.b", `{"a":{"b":"x"}}`, "x"},
		{"a", `{}`, "none"}, {"a", `{"a":null}`, "none"}, {"a", `{"a":[1]}`, "none"}, {"a", `{"a":{}}`, "none"}, {"a", `5`, "none"},
		{"a", `{"a":"` + strings.Repeat("x", lang.MaxKeyBytes+1) + `"}`, "none"}, {"", `{"a":"x"}`, "none"},
	} {
		x := New()
		if err := x.Define(quotes, Definition{Key: c.key}); err != nil {
			t.Fatal(err)
		}
		got, ok, err := x.KeyOf(quotes, json.RawMessage(c.data))
		if at, has := KeyAt(c.key, json.RawMessage(c.data)); at != got && ok || has != ok {
			t.Errorf("%s of %.50s: KeyAt says %q, %v", c.key, c.data, at, has)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.key, c.data, got, c.want)
		}
	}
}

// The test draws rules and rows and follows a random walk: each event has the hits that cel-go
// finds row by row.
func TestRowsFindTheirCrossingsAsCELDoes(t *testing.T) {
	params := map[string]string{"symbol": "string", "level": "number", "part": "string"}
	whens := []string{
		`event.symbol == sub.symbol && crosses(event.price, sub.level)`,
		`event.symbol == sub.symbol && crosses_above(event.price, sub.level) && event.open >= sub.level`,
		`crosses_below(event.price, sub.level) && contains_ci(event.symbol, sub.part)`,
		`event.symbol == sub.symbol && crosses((event.price - event.open) * 2.0, sub.level)`,
		`crosses(event.price, sub.level) || crosses_above(event.open, sub.level)`,
		`crosses(event.price, sub.level + 1.0) && !crosses(event.price, sub.level)`,
		`crosses(event.price - sub.level, 0.0)`,
	}
	rapid.Check(t, func(t *rapid.T) {
		x := New()
		var rules []Rule
		for i, when := range whens {
			rules = append(rules, Rule{Name: fmt.Sprint("r", i), When: when, Params: params})
		}
		if err := x.Define(quotes, Definition{Key: "symbol", Schema: json.RawMessage(quoteSchema), Rules: rules}); err != nil {
			t.Fatal(err)
		}
		number := func() string { return pick(t, []string{"1", "2", "2.5", "3", "4", "5.0", "-1"}) }
		type row struct {
			Entry
			sub map[string]any
		}
		rows := map[fanfare.RowID]row{}
		add := func() {
			r := row{Entry: Entry{Place: fanfare.NewRowID(rapid.IntRange(0, 3).Draw(t, "partition"), uint32(len(rows)))}}
			if rapid.Bool().Draw(t, "filter") {
				r.Filter = fmt.Sprintf("%s(price, %s) && symbol != '%s'", pick(t, []string{"crosses", "crosses_above", "crosses_below"}), number(), pick(t, []string{"A", "B"}))
			} else {
				r.Rule = pick(t, rules).Name
				r.Params = json.RawMessage(fmt.Sprintf(`{"symbol":%q,"level":%s,"part":%q}`, pick(t, []string{"A", "B"}), number(), pick(t, []string{"a", "b", ""})))
				if err := json.Unmarshal(r.Params, &r.sub); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.Add(quotes, []Entry{r.Entry}); err != nil {
				t.Fatal(err)
			}
			rows[r.Place] = r
		}
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			add()
		}
		compiled := x.topics[quotes].compiled.Load()
		was := map[string]string{}
		for range 12 {
			if rapid.Bool().Draw(t, "change") {
				for place := range rows {
					x.Remove(quotes, place)
					delete(rows, place)
					break
				}
				add()
			}
			symbol := pick(t, []string{"A", "B"})
			data := fmt.Sprintf(`{"symbol":%q,"price":%s,"open":%s}`, symbol, number(), number())
			if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				data = fmt.Sprintf(`{"symbol":%q,"open":%s}`, symbol, number())
			}
			event := expr.Event{Data: json.RawMessage(data), Previous: json.RawMessage(was[symbol])}
			was[symbol] = data
			hits, err := x.Match(quotes, event, nil)
			if err != nil {
				t.Fatal(err)
			}
			var want []fanfare.RowID
			for place, r := range rows {
				sc, text := compiled.filterScope, r.Filter
				if r.Rule != "" {
					at := compiled.ruleNumber(r.Rule)
					sc, text = compiled.ruleScopes[at], rules[at].When
				}
				if naive(t, sc, text, event, r.sub) {
					want = append(want, place)
				}
			}
			slices.Sort(want)
			var got []fanfare.RowID
			for _, h := range hits {
				got = append(got, h.Place)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from %s to %s: %v, want %v", event.Previous, event.Data, got, want)
			}
		}
	})
}

func TestACrossingLeadsToTheRowsBetween(t *testing.T) {
	const n = 5000
	for _, when := range []string{
		`event.symbol == sub.symbol && crosses(event.price, sub.level)`,
		`event.symbol == sub.symbol && crosses(event.price - event.open, sub.level)`,
	} {
		x := newQuotes(t, Rule{Name: "stop", When: when, Params: map[string]string{"symbol": "string", "level": "number"}})
		var entries []Entry
		for i := range n {
			entries = append(entries, Entry{Place: fanfare.NewRowID(0, uint32(i)), Rule: "stop",
				Params: json.RawMessage(fmt.Sprintf(`{"symbol":"A","level":%d}`, (i*7919)%n))})
		}
		mustAdd(t, x, quotes, entries...)
		plan := x.topics[quotes].rules[0].plan
		if a := plan.guards[0][0]; !plan.singlePath || a.rangeKey == nil || a.rangeKey.crossing == nil || len(plan.residuals) > 0 {
			t.Fatalf("%s is not answered by its way", when)
		}
		for _, c := range []struct{ was, is, hits int }{{100, 110, 10}, {110, 100, 10}, {100, 100, 0}, {-5, n + 5, n}, {n + 5, -5, n}, {n, n + 9, 0}, {-9, 0, 1}} {
			hits, err := x.Match(quotes, Event{Data: price(c.is), Previous: price(c.was)}, nil)
			if err != nil || len(hits) != c.hits {
				t.Errorf("%s, from %d to %d: %d hits, %v; want %d", when, c.was, c.is, len(hits), err, c.hits)
			}
		}
	}
}

func price(p int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"symbol":"A","price":%d,"open":0}`, p))
}

func TestFiltersWithDifferentLevelsShareAShape(t *testing.T) {
	x := newQuotes(t)
	for i := range 100 {
		mustAdd(t, x, quotes, Entry{Place: fanfare.NewRowID(0, uint32(i)), Filter: fmt.Sprintf("symbol == 'A' && crosses(price, %d)", i)})
	}
	if n := len(x.topics[quotes].filters.shapes); n != 1 {
		t.Errorf("%d forms, want 1", n)
	}
	hits, _ := x.Match(quotes, Event{Data: price(20), Previous: price(10)}, nil)
	if len(hits) != 10 {
		t.Errorf("%d hits, want 10", len(hits))
	}
}
