package condition

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// TestAFieldInBracketsIsTheSameFieldAsWithADot evaluates each condition in three spellings of its
// fields, by the index, by cel-go and by the explanation.
func TestAFieldInBracketsIsTheSameFieldAsWithADot(t *testing.T) {
	const (
		schema = `{"type":"object","properties":{"start":{"type":"string"},"a":{},"b":{},"n":{},"m":{"type":"number"},"o":{},"list":{"type":"array"},"mag":{"type":"number"}}}`
		data   = `{"start":"2026-03-01T00:00:00Z","a":"x","b":"y","n":2,"m":3,"o":{"s":"a","n":1.5,"on":true},"list":[{"s":"a"},{"s":"b"},2],"mag":5.5}`
		was    = `{"n":1,"m":1.5,"o":{"n":4}}`
	)
	attributes := expr.Attributes{ID: "1", Source: "/a", Extensions: map[string]json.RawMessage{"ext": json.RawMessage("2")}}
	for _, c := range []struct {
		filter string // with dots
		want   string
	}{
		{`timestamp(event.start).getFullYear() == 2026`, "true"},
		{`timestamp(event.start).getHours('Asia/Tokyo') == 9`, "true"},
		{`double(event.n) > 1.0`, "true"},
		{`double(event.o.n) > 1.0`, "true"},
		{`int(event.o.n) == 1`, "true"},
		{`string(event.n) == '2'`, "true"},
		{`size(event.list) == 3`, "true"},
		{`size(event.a) == 1`, "true"},
		{`event.a + event.b == 'xy'`, "true"},
		{`event.n + 1 == 3`, "true"},
		{`event.m * 2.0 == 6.0`, "true"},
		{`-event.n == -2`, "true"},
		{`event.a == 'x' && event.b == 'y'`, "true"},
		{`event.n > 1 && event.n < 3`, "true"},
		{`event.o.on`, "true"},
		{`!event.o.on`, "false"},
		{`event.o.on ? event.n == 2 : false`, "true"},
		{`contains_ci(event.a, 'X')`, "true"},
		{`event.a.startsWith('x')`, "true"},
		{`event.a.matches('^x$')`, "true"},
		{`event.a in ['x', 'z']`, "true"},
		{`event.n in [1, 2.0]`, "true"},
		{`'s' in event.o`, "true"},
		{`event.list.exists(x, x.s == 'b')`, "true"},
		{`event.list.exists(x, x.s + '!' == 'b!')`, "true"},
		{`event.list[0].s == 'a'`, "true"},
		{`event.list[0].s + 'b' == 'ab'`, "true"},
		{`double(event.list[2]) == 2.0`, "true"},
		{`event.list.map(x, x)[2] == 2`, "true"},
		{`crosses(event.n, 2.0)`, "true"},
		{`crosses(event.n + event.m, 4.0)`, "error"}, // an integer and a double
		{`crosses(event.n + 1, 3)`, "true"},
		{`crosses_below(event.o.n, 2)`, "true"},
		{`!crosses(event.n, event.m)`, "true"},
		{`has(event.a)`, "true"},
		{`has(event.o.s) && !has(event.o.t)`, "true"},
		{`ce.source == '/a'`, "true"},
		{`has(ce.source) && !has(ce.subject)`, "true"},
		{`double(ce.ext) == 2.0`, "true"},
		{`ce.subject == ''`, "error"},
		{`geo.within(event.n, event.m, 2, 3, 1)`, "true"},
		{`o.s == 'a' && o.n > 1.0`, "true"},
		{`double(o.n) + 0.5 == 2.0`, "true"},
		{`event.gone == 1`, "error"},
	} {
		x, key := New(), Key{"s", "t"}
		if err := x.Define(key, Definition{Schema: json.RawMessage(strings.Replace(schema, `"properties"`, `"additionalProperties":true,"properties"`, 1)), Key: "a"}); err != nil {
			t.Fatal(err)
		}
		event := expr.Event{Data: json.RawMessage(data), Previous: json.RawMessage(was), Attributes: attributes}
		for spelling, filter := range map[string]string{"dots": c.filter, "brackets": inBrackets(c.filter, `['`, `']`), "backticks": inBrackets(c.filter, ".`", "`")} {
			if strings.HasPrefix(spelling, "back") && strings.Contains(c.filter, ".matches") {
				continue
			}
			mustAdd(t, x, key, Entry{Place: 1, Filter: filter})
			hits, err := x.Match(key, event, nil)
			if err != nil || (len(hits) == 1) != (c.want == "true") {
				t.Errorf("%s: %s: %d hits, %v, want %s", spelling, filter, len(hits), err, c.want)
			}
			part, err := x.Explain(key, Entry{Filter: filter}, event)
			if err != nil || part.Result != c.want {
				t.Errorf("%s: %s: explained as %s, %v, want %s", spelling, filter, part.Result, err, c.want)
			}
			if naive := naive(t, x.topics[key].compiled.Load().filterScope, filter, event, nil); naive != (c.want == "true") {
				t.Errorf("%s: %s: cel-go says %v, want %s", spelling, filter, naive, c.want)
			}
			if err := x.CheckFilter(key, part.Text); err != nil {
				t.Errorf("%s: %s is explained as %s: %v", spelling, filter, part.Text, err)
			}
			x.Remove(key, 1)
		}
	}
}

// inBrackets writes each field of an expression between before and after.
func inBrackets(filter, before, behind string) string {
	words := map[string]bool{"start": true, "a": true, "b": true, "n": true, "m": true, "o": true, "s": true, "on": true, "t": true, "list": true, "ext": true, "source": true, "subject": true, "gone": true}
	var b strings.Builder
	for i := 0; i < len(filter); {
		n := i + 1
		if filter[i] == '.' {
			for n < len(filter) && lang.IsIdentifierByte(filter[n]) {
				n++
			}
			if words[filter[i+1:n]] {
				b.WriteString(before + filter[i+1:n] + behind)
				i = n
				continue
			}
		}
		b.WriteString(filter[i:n])
		i = n
	}
	return b.String()
}

// The test has fields that cannot follow a dot.
func TestFieldsThatAreNoNamesAreWrittenInBracketsOrBackticks(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{Rules: []Rule{{Name: "r", When: `event['start-time'] == sub.s && double(event["wind speed"]) >= sub['n']`, Params: map[string]string{"s": "string", "n": "number"}}}}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, x, key, Entry{Place: 1, Filter: "timestamp(event['start-time']).getFullYear() == 2026"},
		Entry{Place: 2, Filter: "timestamp(event.`start-time`).getFullYear() == 2026"},
		Entry{Place: 3, Filter: "has(event['start-time']) && has(event.`wind speed`) && !has(event['wind-speed'])"},
		Entry{Place: 4, Filter: `event["wind speed"] * 2 == 14`},
		Entry{Place: 5, Filter: "event.`wind speed` - 1 == 6"},
		Entry{Place: 6, Filter: `event['a"b'] == 'c'`},
		Entry{Place: 7, Rule: "r", Params: json.RawMessage(`{"s":"2026-01-01T00:00:00Z","n":7}`)},
		Entry{Place: 8, Rule: "r", Params: json.RawMessage(`{"s":"2026-01-01T00:00:00Z","n":8}`)})
	const data = `{"start-time":"2026-01-01T00:00:00Z","wind speed":7,"a\"b":"c"}`
	if got := places(t, x, key, data); len(got) != 7 || got[6] != 7 {
		t.Errorf("got %v", got)
	}
	for filter, want := range map[string]string{
		"event.`start-time` == 'x'":                                       "event.`start-time` == \"x\"",
		"event['start-time'] == 'x'":                                      `event["start-time"] == "x"`,
		"has(event.`start-time`)":                                         "has(event.`start-time`)",
		"has(event['start-time'])":                                        `has(event["start-time"])`,
		"event['a-b'].c.exists(x, x['d-e'] == 1)":                         `event["a-b"].c.exists(x, x["d-e"] == 1)`,
		"event['list'].exists(x, x.`d-e`['f'].g in [1])":                  "event[\"list\"].exists(x, x.`d-e`[\"f\"].g in [1])",
		"double(event['a-b'].c) > 1.0 || event.d[0]['e'] == event.d['f']": `double(event["a-b"].c) > 1.0 || event.d[0]["e"] == event.d["f"]`,
	} {
		part, err := x.Explain(key, Entry{Filter: filter}, Event{Data: json.RawMessage(data)})
		if err != nil || part.Text != want {
			t.Errorf("%s is explained as %s, %v", filter, part.Text, err)
		}
	}
	part, err := x.Explain(key, Entry{Filter: "event['gone-by'] == 1"}, Event{Data: json.RawMessage(data)})
	if err != nil || part.Error != "event.`gone-by` is missing" {
		t.Errorf("%q, %v", part.Error, err)
	}
}
