package condition

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// The table has the cases whose result the package defines.
func TestResultsOfConditions(t *testing.T) {
	const deep = `{"a":{"b":{"c":{"d":[1,{"e":"x"}]}}}}`
	for _, c := range []struct {
		filter, data string
		want         bool
	}{
		// Missing and null.
		{`event.mag > 1`, `{}`, false},
		{`event.mag > 1`, `{"mag":null}`, false},
		{`!(event.mag > 1)`, `{}`, false},
		{`event.mag == null`, `{"mag":null}`, true},
		{`event.mag == null`, `{}`, false},
		{`event.alert != 'green'`, `{"alert":null}`, true},
		{`event.alert != 'green'`, `{}`, false},
		{`has(event.mag)`, `{"mag":null}`, true},
		{`has(event.mag)`, `{}`, false},
		{`has(event.a.b)`, `{}`, false},
		{`!has(event.a.b)`, `{}`, false},
		{`contains_ci(event.place, 'x')`, `{"place":null}`, false},
		// An error next to an operand that decides.
		{`event.gone > 1 || true`, `{}`, true},
		{`true || event.gone > 1`, `{}`, true},
		{`event.gone > 1 || false`, `{}`, false},
		{`!(event.gone > 1 && false)`, `{}`, true},
		{`event.gone > 1 ? true : true`, `{}`, false},
		{`contains_ci(event.gone, 'x') || contains_ci(event.place, 'x')`, `{"place":"X"}`, true},
		// Numbers.
		{`event.mag == 5`, `{"mag":5.0}`, true},
		{`event.mag == 5.0`, `{"mag":5}`, true},
		{`event.mag >= 5`, `{"mag":4.999}`, false},
		{`event.mag in [5.0]`, `{"mag":5}`, true},
		{`size(event.l) == 2.0`, `{"l":[1,2]}`, true},
		{`size(event.l) != 2.5`, `{"l":[1,2]}`, true},
		{`2.0 == size(event.l) && size(event.l) == size(event.l)`, `{"l":[1,2]}`, true},
		{`1 == 1.0`, `{}`, true},
		{`1 != 1.0`, `{}`, false},
		{`1u == 1.0 && 1u == 1`, `{}`, true},
		{`event.n in [1, 2.0]`, `{"n":2}`, true},
		{`event.n in [1, 2.0]`, `{"n":1.0}`, true},
		{`event.n in [1, 2.0]`, `{"n":1.5}`, false},
		{`size(event.l) in [1.0, 2.0]`, `{"l":[1,2]}`, true},
		{`int(event.x) == 2.0`, `{"x":2.5}`, true},
		{`double(event.x) == 2`, `{"x":2}`, true},
		{`[1, 2] == [1.0, 2.0]`, `{}`, true},
		{`event.l.exists(x, int(x) == 2.0)`, `{"l":[1,2]}`, true},
		{`event.l.map(x, x * 2) == [2.0, 4.0]`, `{"l":[1,2]}`, true},
		{`event.l.exists(x, x in [9007199254740992.0])`, `{"l":[9007199254740993]}`, true},
		{`event.l.exists(x, 1 + x in [9007199254740992.0])`, `{"l":[9007199254740992]}`, true},
		{`event.l.exists(x, x + 'b' in ['ab', 'cd'])`, `{"l":["a"]}`, true},
		{`(event.b ? size(event.l) : 0) == 2.0`, `{"l":[1,2],"b":true}`, true},
		{`event.id == 9007199254740993`, `{"id":9007199254740993}`, true},
		{`event.id == 9007199254740993`, `{"id":9007199254740992}`, false},
		{`event.id == 9007199254740992.0`, `{"id":9007199254740993}`, true}, // an int meets a double as a double
		{`event.zero == 0`, `{"zero":-0.0}`, true},
		{`event.big > 1e308`, `{"big":1e999}`, true},
		{`event.mag == '5'`, `{"mag":5}`, false},
		{`event.mag > '4'`, `{"mag":5}`, false},
		{`event.zero / 0.0 < 1.0`, `{"zero":0.0}`, false}, // NaN has no place in an order
		{`!(event.zero / 0.0 < 1.0)`, `{"zero":0.0}`, true},
		{`!(1.0 <= event.zero / 0.0)`, `{"zero":0.0}`, true},
		{`!(event.s > event.zero / 0.0)`, `{"zero":0.0,"s":"a"}`, true},
		{`!(event.s > event.zero / 0.0)`, `{"zero":0.0,"s":null}`, false},
		{`event.zero / 0.0 == event.zero / 0.0`, `{"zero":0.0}`, false},
		{`event.zero / 0.0 != 1.0`, `{"zero":0.0}`, true},
		{`event.zero / 0.0 >= 1.0 && event.zero / 0.0 <= 2.0`, `{"zero":0.0}`, false},
		// Text, exact and folded.
		{`event.place.contains('')`, `{"place":"x"}`, true},
		{`contains_ci(event.place, '')`, `{"place":"x"}`, false},
		{`starts_with_ci(event.place, '')`, `{"place":"x"}`, false},
		{`contains_ci(event.place, 'x')`, `{"place":""}`, false},
		{`contains_ci(event.place, 'VANcouver')`, `{"place":"North vancOUVER"}`, true},
		{`contains_ci(event.place, 'k')`, `{"place":"\u212A"}`, true},
		{`contains_ci(event.place, '\u212A')`, `{"place":"k"}`, true},
		{`contains_ci(event.place, 'ΟΔΟΣ')`, `{"place":"οδός οδος"}`, true},
		{`contains_ci(event.place, 'STRASSE')`, `{"place":"Straße"}`, false},
		{`contains_ci(event.place, 'STRAẞE')`, `{"place":"Straße"}`, true},
		{`contains_ci(event.place, 'istanbul')`, `{"place":"İstanbul"}`, false},
		{`contains_ci(event.place, 'İSTANBUL')`, `{"place":"İstanbul"}`, true},
		{`starts_with_ci(event.place, 'north')`, `{"place":"NORTH pole"}`, true},
		{`starts_with_ci(event.place, 'pole')`, `{"place":"NORTH pole"}`, false},
		{`contains_ci(event.place, '\uFFFD')`, "{\"place\":\"\xff\"}", true},
		// Depth, macros, and the rest of CEL.
		{`event.a.b.c.d[1].e == 'x'`, deep, true},
		{`event.a['b'].c.d.exists(x, x == 1)`, deep, true},
		// Loops over a value that is not a list.
		{`!event.list.exists(x, x == null)`, `{"list":""}`, true},
		{`!event.list.exists(x, x == null)`, `{"list":"a"}`, false},
		{`!event.list.exists(x, x == null)`, `{"list":{}}`, true},
		{`!event.list.exists(x, x.id in ['a'])`, `{"list":""}`, true},
		{`event.a.b.c == {'d': [1, {'e': 'x'}]}`, deep, true},
		{`event.a.b.x.d == 1`, deep, false},
		{`event.a.b.c.d.all(x, x == 1)`, deep, false},
		{`timestamp(event.time) > timestamp('2018-01-01T00:00:00Z')`, `{"time":"2018-01-31T01:49:59.65Z"}`, true},
		{`event.place.matches('^[0-9]+km')`, `{"place":"37km NNE of Amboy"}`, true},
		// Data that is not an object.
		{`event == 5`, `5`, true},
		{`event.x == 5`, `5`, false},
		{`event == null`, ``, true},
		{`event[1] == 'b'`, `["a","b"]`, true},
	} {
		x, key := New(), Key{"s", "t"}
		if err := x.Define(key, Definition{}); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, x, key, Entry{Place: 7, Filter: c.filter})
		if got := len(places(t, x, key, c.data)) == 1; got != c.want {
			t.Errorf("%s on %s: %v", c.filter, c.data, got)
		}
		if naive := naive(t, x.topics[key].compiled.Load().filterScope, c.filter, Event{Data: json.RawMessage(c.data)}, nil); naive != c.want {
			t.Errorf("%s on %s: cel-go says %v", c.filter, c.data, naive)
		}
	}
}

func TestTheSchemaDeterminesTheKindOfANumber(t *testing.T) {
	x := newQuakes(t)
	mustAdd(t, x, quakes, Entry{Place: 1, Filter: "mag * 2.0 >= 10.0"}, Entry{Place: 2, Filter: "sig % 2 == 0"})
	if got := places(t, x, quakes, `{"mag":5,"sig":4.0}`); len(got) != 2 {
		t.Errorf("a whole number where the schema says number, or 4.0 where it says integer, was lost: %v", got)
	}
}

func TestBareNamesAreFieldsOfTheSchema(t *testing.T) {
	x, key := New(), Key{"notifybc", "load"}
	if err := x.Define(key, Definition{Schema: json.RawMessage(`{"properties":{"title":{"type":"string"},"event":{"type":"string"}}}`)}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, x, key, Entry{Place: 3, Filter: "contains_ci(title,'vancouver') || contains_ci(title,'victoria')"},
		Entry{Place: 6, Filter: "['Victoria'].exists(title, title == event.title)"}, Entry{Place: 7, Filter: "[title].exists(title, title == 'Ferry to VICTORIA')"},
		Entry{Place: 4, Filter: "event.event == 'x'"}, Entry{Place: 5, Filter: "['Victoria'].exists(title, title == 'Victoria')"})
	if got := places(t, x, key, `{"title":"Ferry to VICTORIA","event":"y"}`); len(got) != 3 || got[0] != 3 || got[1] != 5 || got[2] != 7 {
		t.Errorf("got %v", got)
	}
}

func TestSchemaShapes(t *testing.T) {
	for schema, want := range map[string]map[string]bool{ // field -> may be named
		`{}`:                      {"x": true},
		`true`:                    {"x": true},
		`{"type":"object"}`:       {"x": true},
		`{"properties":{"a":{}}}`: {"a": true, "x": false},
		`{"properties":{"a":{}},"additionalProperties":true}`:                                               {"x": true},
		`{"properties":{"a":{}},"patternProperties":{"^x":{}}}`:                                             {"x": true},
		`{"additionalProperties":false}`:                                                                    {"x": false},
		`{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"a":{"$ref":"#/$defs/d"}}}}}`:                      {"a": true, "x": false},
		`{"$ref":"https://elsewhere/schema"}`:                                                               {"x": true},
		`{"allOf":[{"properties":{"a":{}}},{"required":["a"]}],"anyOf":[{"properties":{"b":{}}}]}`:          {"a": true, "b": true, "x": false},
		`{"properties":{"a":{}},"anyOf":[{"$ref":"#"},{"$ref":"#"},{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}]}`: {"a": true, "x": false},
		`{"properties":{"a":{}},"if":{},"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}}}`:     {"a": true, "b": true, "c": true, "x": false},
	} {
		s, err := lang.ParseSchema(json.RawMessage(schema))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		for name, may := range want {
			if _, known := s.Field(name); known != may {
				t.Errorf("%s: field %s known %v", schema, name, known)
			}
		}
	}
}

func TestFoldIsTheSameForEveryRuneOfAnOrbit(t *testing.T) {
	for _, same := range [][]string{
		{"k", "K", "\u212A"}, {"s", "S", "ſ"}, {"σ", "Σ", "ς"}, {"ß", "ẞ"}, {"å", "Å", "\u212B"}, {"ǆ", "ǅ", "Ǆ"}, {"μ", "µ"},
	} {
		for _, one := range same {
			if lang.Fold(one) != lang.Fold(same[0]) {
				t.Errorf("%q folds to %q, %q to %q", one, lang.Fold(one), same[0], lang.Fold(same[0]))
			}
		}
	}
	for _, text := range []string{"İ", "ı", "ß"} {
		if f := lang.Fold(text); f == "i" || f == "ss" {
			t.Errorf("%q folds to %q", text, f)
		}
	}
	if lang.Fold("aBc Ω") != "abc "+lang.Fold("ω") {
		t.Error("mixed text")
	}
}

func TestAddReplacesAndRemoveForgets(t *testing.T) {
	x := newQuakes(t, near)
	params := json.RawMessage(`{"min_mag":5,"place":"alaska"}`)
	mustAdd(t, x, quakes, Entry{Place: 9, Subscriber: 1, Channel: 2, Rule: "near", Params: params}, Entry{Place: 4})
	mustAdd(t, x, quakes, Entry{Place: 9, Subscriber: 1, Channel: 3, Filter: "mag > 7.0"}, Entry{Place: 9, Subscriber: 1, Channel: 4, Filter: "mag > 8.0"})
	hits, err := x.Match(quakes, Event{Data: json.RawMessage(`{"mag":9,"place":"Alaska"}`)}, nil)
	if want := (fanfare.Hit{Place: 9, Subscriber: 1, Channel: 4, Rule: -1}); err != nil || len(hits) != 2 || hits[1] != want {
		t.Errorf("got %v, %v", hits, err)
	}
	x.Remove(quakes, 9)
	x.Remove(quakes, 9)
	x.Remove(quakes, 4)
	tp := x.topics[quakes]
	if x.Len(quakes) != 0 || len(tp.filters.byText) != 0 || len(tp.texts.Numbers) != 0 || (*tp.columns.tables[0].Load())[0].page.Load() != nil {
		t.Error("something is left of what was removed")
	}
	if n := len(tp.paths.Values.Used); n != len(tp.rules[0].plan.paths) {
		t.Errorf("%d paths are left, the rule has %d", n, len(tp.rules[0].plan.paths))
	}
}

func TestRedefinitionKeepsSubscriptionsOrRefuses(t *testing.T) {
	other := Rule{Name: "other", When: "event.mag > 9.0"}
	x := newQuakes(t, near)
	mustAdd(t, x, quakes, Entry{Place: 1, Rule: "near", Params: json.RawMessage(`{"min_mag":5,"place":"alaska"}`)}, Entry{Place: 2, Filter: "sig > 100"})

	strict := near
	strict.When = "event.mag > sub.min_mag && starts_with_ci(event.place, sub.place)"
	if err := x.Define(quakes, Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{other, strict}}); err != nil {
		t.Fatal(err)
	}
	hits, _ := x.Match(quakes, Event{Data: json.RawMessage(`{"mag":6,"place":"Alaska","sig":7}`)}, nil)
	if len(hits) != 1 || hits[0].Rule != 1 {
		t.Errorf("after the redefinition: %v", hits)
	}
	if got := places(t, x, quakes, `{"mag":5,"place":"Alaska"}`); len(got) != 0 {
		t.Errorf("the old rule still holds: %v", got)
	}

	retyped := near
	retyped.Params = map[string]string{"min_mag": "number", "place": "string", "more": "boolean"}
	for name, c := range map[string]struct {
		def  Definition
		text string
	}{
		"vanished": {Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{other}}, `1 subscription uses rule "near", which the new definition removes`},
		"params":   {Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{retyped}}, `1 subscription uses rule "near", whose params the new definition changes`},
		"schema": {Definition{Schema: json.RawMessage(`{"properties":{"mag":{"type":"number"},"place":{}}}`), Rules: []Rule{near}},
			`1 subscription uses the filter "sig > 100", which the new schema does not allow: /filter: line 1, column 1: unknown name "sig"`},
	} {
		e := asError(t, x.Define(quakes, c.def))
		if e.Code != fanfare.Conflict || len(e.Message) < len(c.text) || e.Message[:len(c.text)] != c.text {
			t.Errorf("%s: %v", name, e)
		}
	}
	x.Remove(quakes, 1)
	if err := x.Define(quakes, Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{other}}); err != nil {
		t.Errorf("a rule without subscriptions cannot go: %v", err)
	}
}

func TestDataThatIsNotJSONIsRefused(t *testing.T) {
	x := newQuakes(t)
	for _, data := range []string{"{", "{} {}", "nonsense", `{"a":01}`} {
		if _, err := x.Match(quakes, Event{Data: json.RawMessage(data)}, nil); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s: %v", data, err)
		}
	}
}
