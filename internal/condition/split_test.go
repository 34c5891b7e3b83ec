package condition

import (
	"encoding/json"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// splitRules are conditions that the index splits into parts: some lead to rows, and the others
// must not be lost.
var splitRules = []string{
	// An && in parentheses inside of an ||, with parts without params and parts without fields.
	`(event.s == sub.s && event.n > 1 || event.p == sub.t && sub.x > 1.0)`,
	`event.b && (event.s == sub.s && has(event.p) || (event.p == sub.t && !event.b))`,
	`(event.s == sub.s || event.n > 1) && (event.p == sub.t || sub.v)`,
	`(event.n > 1 || sub.v) && event.n >= sub.x`,
	`(event.s == sub.s && (event.n >= sub.x && has(event.p)) || event.p == sub.t && (sub.v && event.b))`,
	`(true || event.s == sub.s)`,
	`(false || event.s == sub.s) && event.n > 0`,
	`(event.gone > 1 || event.s == sub.s)`,
	`(sub.v || event.s == sub.s) && (sub.x > 2.0 || event.n > sub.x)`,
	`event.s == sub.s || event.s == sub.s`,
	`event.s == sub.s || event.s == sub.t`,
	`event.s in [sub.s, sub.t]`,
	`event.s in [sub.s, sub.s, 'a']`,
	`event.n in [sub.x, sub.y, 2.0] && event.s != sub.s`,
	`!(event.s in [sub.s, sub.t])`,
	`event.b == sub.v`,
	`event.b == sub.v && event.s == sub.s`,
	`sub.v && event.s == sub.s`,
	`sub.v == event.b || sub.s == 'true'`,
	`event.s == 'true' && event.s == sub.s`,
	`event.x == null && event.s == sub.s`,
	`event.x != null && event.s == sub.s`,
	// Texts and lists.
	`contains_ci(event.s, sub.s) && event.n > 1`,
	`contains_ci(event.s, sub.s) && contains_ci(event.p, sub.t)`,
	`contains_ci(event.s, sub.s) || contains_ci(event.s, sub.t) && sub.v`,
	`event.s.contains(sub.s) && event.b`,
	`event.s.startsWith(sub.s) && event.p.endsWith(sub.t)`,
	`starts_with_ci(event.s, sub.s) || event.b && sub.v`,
	`sub.l.exists(x, contains_ci(event.s, x)) && has(event.p)`,
	`sub.l.exists(x, x == event.s) || event.n == sub.x`,
	`event.s in sub.l && event.n > 1`,
	`(event.s in sub.l || sub.s in event.list) && event.b`,
	`event.list.exists(e, e == sub.s) && event.n >= sub.x`,
	`event.list.exists(e, e.s in sub.l)`,
	`event.list.exists(e, e.s == sub.s && e.n > sub.x)`,
	`sub.l.all(x, x in event.list) && event.b`,
	`sub.l.all(x, x in event.list) || event.n > sub.x`,
	`size(sub.l) == 0 || event.s in sub.l`,
	`size(sub.l) == 0.0 || sub.l[0] == event.s`,
	`sub.s in event.o`,
	`event.n in event.o || event.s in event.o && sub.v`,
	`sub.s in sub.l && event.s == sub.s`,
	`has(sub.s) && event.s == sub.s`,
	`size(sub) == 7 && event.s == sub.s`,
	// Numbers and ranges.
	`event.n == sub.x && event.m == sub.y`,
	`event.n == sub.x && event.n == sub.y`,
	`event.n >= sub.x && event.n <= sub.y && event.n != 2`,
	`event.n >= sub.x && event.n <= sub.y && event.n > sub.x`,
	`event.n >= sub.x && event.n < sub.y && event.m > sub.x && event.m <= sub.y && event.b`,
	`event.s == sub.s && event.n >= sub.x && event.n <= sub.y && (event.m > 1 && has(event.p))`,
	`(event.n >= sub.x && event.n <= sub.y || event.s == sub.s) && event.b`,
	`event.n >= sub.x && sub.x <= event.n`,
	`event.n * 1.0 >= sub.x && event.n * 1.0 <= sub.y`,
	`event.n - event.m == sub.x`,
	`event.n / event.m >= sub.x || event.n / event.m < sub.x`,
	`!(event.n / event.m >= sub.x)`,
	`size(event.list) >= sub.x && size(event.list) <= sub.y`,
	`event['a.b'] == sub.s && size(event['a.b']) == size(event.a.b)`,
	`size(event.a.b) == sub.x || size(event['a.b']) == sub.y`,
	// Crossings and places.
	`crosses(event.n, sub.x) && event.b`,
	`crosses(event.n, sub.x) || crosses(event.m, sub.y) && sub.v`,
	`crosses_above(event.n, sub.x) && (event.s == sub.s && has(event.p))`,
	`!crosses(event.n, sub.x)`,
	`crosses(event.n - event.m, sub.x)`,
	`crosses(event.n, sub.x) == crosses(event.m, sub.x)`,
	`geo.within(event.n, event.m, sub.x, sub.y, 300) && event.b`,
	`geo.within(event.n, event.m, sub.x, sub.y, 300) || event.s == sub.s`,
	`geo.within(sub.x, sub.y, event.n, event.m, sub.x)`,
	`geo.within(event.n / event.m, event.m, sub.x, sub.y, 9000)`,
}

// splitFilters are such filters; they become conjuncts, shapes and conjunctions.
var splitFilters = []string{
	`event.s == 'a' && (event.n > 1 && event.n > 1)`,
	`event.s == 'a' && (event.n > 1 && event.n < 3)`,
	`event.s == 'a' && (event.s == 'a')`,
	`event.s == 'a' && event.s == 'a' && event.b`,
	`event.s == 'a' && event.s == 'ab'`,
	`event.n == 2 && event.n == 2.0`,
	`event.n == 9007199254740992 && event.b || event.n == 9007199254740993`,
	`event.n == 9007199254740992.0 && has(event.s)`,
	`event.n == 9007199254740991 && has(event.s)`,
	`event.n > 9007199254740991 && has(event.s)`,
	`event.n >= 9007199254740992 && has(event.s)`,
	`event.n == -0.0 && has(event.s)`, `event.n == -0 && has(event.s)`, `event.n == 0 && has(event.s)`,
	`event.n == 2u && has(event.s)`, `event.n == 02 && has(event.s)`, `event.n == 0x2 && has(event.s)`,
	`event.n > --1`, `event.n > - 1`, `event.n - -1 > 2`, `event.n -1 > 0`,
	`event.s == '\x61' && event.b`, `event.s == "\u0061b" && event.b`, `event.s == r'a' && event.b`,
	`event.s in ['a', 'ab'] + ['b']`, `event.s in ['a'] && event.s in ['a', 'b', 'a']`, `event.s in []`, `event.s in ['a', 1, null]`, `event.x in [null, true, 1.5]`,
	`event.list in [['a', 'ab'], [1, 2]]`, `event.list == ['a', 'ab']`, `[event.s] == ['a']`, `{'a': event.s}['a'] == 'a'`, `{'a': event.s}.a == 'ab'`,
	`[['a', 'b'], ['ab']].exists(l, event.s in l)`, `['a', 'ab'].exists(s, s == event.s)`, `['a', 'ab'].exists(event, event == 'a')`,
	`event.list.exists(n, n == 1)`, `event.list.exists(s, s == 'a') && event.s == 'a'`, `event.list.all(n, n != 1)`,
	`event.list.exists(e, e in ['a', 'ab']) && event.b`, `event.list.exists(e, e.s in ['a'] && e.n > 1)`, `event.list.exists(e, event.n > 1)`,
	`event.list.all(s, s != event.s)`,
	`size(event['a.b']) == 1`, `size(event.a.b) == 2`, "event.`a.b` == 'x' && event.a.b == 'xy'", `event['a.b'] + '!' == 'x!'`, `event.a.b + '!' == 'xy!'`,
	`event['a']['b'] + '!' == 'xy!'`, `has(event['a.b']) && !has(event['a.c'])`,
	`event.n > 1 ? event.s == 'a' && event.b : event.s == 'ab'`, `!(event.n > 1 && event.s == 'a') && event.b`, `(event.n > 1) == (event.s == 'a')`,
	`event.b && (event.n > 1 || event.m > 1) && (event.s == 'a' || event.p == 'a')`,
	`(event.s == 'a' && event.n > 1) || (event.s == 'a' && event.n > 1)`,
	`event.b && (contains_ci(event.s, 'A') && has(event.p))`, `event.b && (event.s.startsWith('a') && event.n > event.m)`,
	`event.b && (event.s in ['a', 'ab'] && has(event.p))`, `event.b && (crosses(event.n, 2) && has(event.p))`, `event.b && (crosses(event.n, 2.0))`,
	`event.b && (geo.within(event.n, event.m, 2, 1, 500) && has(event.p))`, `event.b && (event.list.exists(e, e == 'a') && event.n > 1)`,
	`event.b && ((event.n > 1 && event.n < 9) && (has(event.p)))`, `event.b && (size(event.list) == 2.0 && has(event.p))`,
	`event.b && (ce.source == '/a' && event.n > 1)`, `ce.subject == 'no' || ce.ext == 2`, `ce['ext'] == 2.0 && event.b`, `has(ce.subject) && ce.subject == 'a'`,
	`event.n / event.m < 1.0 || event.n / event.m >= 1.0`, `!(event.n / event.m < 1.0)`, `event.n / event.m == event.n / event.m`, `event.n / event.m != 2`,
	`event.n / event.m in [1.0, 2.0]`, `!(event.n / event.m in [1.0, 2.0])`, `event.n - event.m == 0 && has(event.s)`,
	`event.x == null && (event.n > 1 && event.x == null)`, `event.b && (event.x != null && event.n > 1)`, `event.b && (event.x == event.x && event.n > 1)`,
	`event.b && (true && event.n > 1)`, `event.b && (event.n > 1 && true)`, `event.b && (event.n > 1 && false)`, `event.b && (event.n > 1 && (1 == 1.0))`,
	`has(event.s) && 5 in event.o`, `'s' in event.o && event.b`, `event.s in event.o`, `event == event && event.b`, `event != null && event.s == 'a'`,
	`event.list[0] == 'a' && event.b`, `event.list[0] == 1.0`, `event.list[event.n] == 'ab'`, `event.o[event.s] == 1`, `double(event.o[event.s]) == 1.0`, `event.o['a' + ''] + 1 == 2`,
}

var splitEvents = []struct{ data, was string }{
	{`{"s":"a","p":"ab","n":2,"m":1,"b":true,"x":null,"list":["a","ab"],"o":{"a":1,"s":2},"a.b":"x","a":{"b":"xy"}}`, `{"n":1,"m":9}`},
	{`{"s":"ab","p":"a","n":2.0,"m":1.0,"b":true,"x":1.5,"list":[1,2],"o":{},"a.b":"xy","a":{"b":"x"}}`, `{"n":5,"m":1}`},
	{`{"s":"a","n":1,"m":0,"b":false,"list":[{"s":"a","n":2},{"s":"b"},{}],"o":{"a":1.0}}`, ``},
	{`{"s":"A","p":"","n":0.0,"m":0.0,"b":true,"x":true,"list":[],"o":[]}`, `{"n":0.0,"m":0.0}`},
	{`{"s":"","p":"true","n":1e999,"m":1e999,"b":true,"list":"","o":{"":1}}`, `{"n":1e999,"m":1e999}`},
	{`{"s":"true","p":"a","n":9007199254740993,"m":9007199254740992,"b":true,"list":["true",""]}`, `{"n":9007199254740991,"m":0}`},
	{`{"s":"a\u0000b","n":-0.0,"m":-1,"b":true,"x":"a"}`, `{"n":"x"}`},
	{`{"s":5,"p":null,"n":"2","m":null,"b":"true","list":{"a":1},"o":null,"a":[1]}`, `{}`},
	{`{"n":9007199254740992,"b":true,"s":"b","m":1.5}`, `null`},
	{`{"n":-1e999,"m":3,"b":true,"s":"\ufffd","list":[null,true,"a"]}`, `[1]`},
	{`{}`, ``}, {`null`, ``}, {`["a"]`, ``}, {`"a"`, ``}, {`{"s":"a","s":"b","n":3,"n":2,"b":true,"\u0070":"ab","m":2}`, `{"n":2,"n":1}`},
}

var splitParams = []string{
	`{"s":"a","t":"ab","x":2,"y":1,"v":true,"l":["a","ab"],"w":"UTC"}`,
	`{"s":"","t":"","x":0,"y":0,"v":false,"l":[],"w":""}`,
	`{"s":"a","t":"a","x":-0.0,"y":9,"v":true,"l":["","a","a"],"w":"x"}`,
	`{"s":"true","t":"a\u0000b","x":9007199254740992,"y":9007199254740993,"v":true,"l":["true"],"w":"x"}`,
	`{"s":"false","t":"A","x":1,"y":3,"v":false,"l":["A","b","AB"],"w":"x"}`,
	`{"s":"ab","t":"b","x":1.5,"y":2.5,"v":false,"l":["[\"a\"]"],"w":"x"}`,
	`{"s":"\ufffd","t":"\u00ff","x":-1e308,"y":1e308,"v":true,"l":["a\u0000b"],"w":"x"}`,
}

// The test evaluates each condition by the index, alone and among all others, and by cel-go: with
// duplicate rows, removed rows, and a redefined topic.
func TestCompositeConditionsAgreeWithCEL(t *testing.T) {
	params := map[string]string{"s": "string", "t": "string", "w": "string", "x": "number", "y": "number", "v": "boolean", "l": "strings"}
	const schema = `{"properties":{"s":{},"n":{},"sub":{}},"additionalProperties":true}`
	var good []string
	for _, def := range []Definition{{Key: "s"}, {Key: "s", Schema: json.RawMessage(schema)}} {
		x, key := New(), Key{"s", "all"}
		for i, when := range splitRules {
			def.Rules = append(def.Rules, Rule{Name: fmt.Sprint("r", i), When: when, Params: params})
		}
		if err := x.Define(key, Definition{Key: def.Key, Schema: def.Schema, Rules: def.Rules}); err != nil {
			t.Fatal(err)
		}
		good = good[:0]
		for _, filter := range splitFilters {
			if err := x.CheckFilter(key, filter); err != nil {
				t.Errorf("%s: %v", filter, err)
				continue
			}
			good = append(good, filter)
		}
		entries := map[fanfare.RowID]Entry{}
		place := fanfare.RowID(0)
		add := func(e Entry) {
			e.Place = place
			place++
			mustAdd(t, x, key, e)
			entries[e.Place] = e
		}
		for round := range 3 {
			for i := range splitRules {
				for _, p := range splitParams {
					add(Entry{Rule: fmt.Sprint("r", i), Params: json.RawMessage(p)})
				}
			}
			for _, filter := range good {
				add(Entry{Filter: filter})
				if other := relative(filter); x.CheckFilter(key, other) == nil {
					add(Entry{Filter: other})
				}
			}
			switch round {
			case 1:
				for p := range entries {
					if p%3 == 0 {
						x.Remove(key, p)
						delete(entries, p)
					}
				}
			case 2:
				def.Schema = json.RawMessage(`{"properties":{"s":{},"n":{},"sub":{},"q":{}},"additionalProperties":true}`)
				if err := x.Define(key, def); err != nil {
					t.Fatal(err)
				}
			}
			c := x.topics[key].compiled.Load()
			filters, rules := newJudge(c.filterScope.Env), newJudge(c.ruleScopes[0].Env)
			known := map[string]bool{}
			for _, e := range splitEvents {
				event := expr.Event{Data: json.RawMessage(e.data), Previous: json.RawMessage(e.was), Attributes: expr.Attributes{Source: "/a", Subject: "a", Extensions: map[string]json.RawMessage{"ext": json.RawMessage("2"), "source": json.RawMessage(`"x"`)}}}
				vars := variables(t, event, c.filterScope.Event)
				filters.vars, rules.vars = vars, vars
				clear(known)
				hits, err := x.Match(key, event, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := map[fanfare.RowID]int{}
				for _, h := range hits {
					got[h.Place]++
				}
				for p, entry := range entries {
					text := entry.Filter + entry.Rule + string(entry.Params)
					want, asked := known[text]
					if !asked {
						if entry.Rule != "" {
							want = rules.holds(t, splitRules[c.ruleNumber(entry.Rule)], readSub(t, entry.Params))
						} else {
							want = filters.holds(t, entry.Filter, nil)
						}
						known[text] = want
					}
					if got[p] > 1 || (got[p] == 1) != want {
						if entry.Rule != "" {
							text = splitRules[c.ruleNumber(entry.Rule)] + " with " + string(entry.Params)
						}
						t.Errorf("round %d: %s on %s after %s: %d hits, cel-go says %v", round, text, e.data, e.was, got[p], want)
					}
				}
			}
		}
	}
}
