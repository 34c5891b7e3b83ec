package condition

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

func TestABadFilterIsRefusedWithItsPosition(t *testing.T) {
	x := newQuakes(t)
	for _, c := range []struct {
		filter       string
		line, column int
		message      string
		hint         string
	}{
		{"event.mag >", 1, 12, "syntax error: mismatched input end of the expression", ""},
		{"event.mag == 'abc", 1, 14, "syntax error: ", ""},
		{"event.mag = 5", 1, 11, "syntax error: ", "write == to test for equality"},
		{"event.mag <> 5", 1, 12, "syntax error: ", "write != for"},
		{"event.mag > 5 and event.mag < 6", 1, 15, "syntax error: ", "write && instead of and"},
		{"event.mag > 5 OR event.mag < 3", 1, 15, "syntax error: ", "write || instead of or"},
		{"not event.mag > 5", 1, 5, "syntax error: ", ""},
		{"event.place LIKE 'x'", 1, 13, "syntax error: ", "contains_ci"},
		{"as > 3", 1, 1, "reserved identifier: as", ""},
		{"event.mag >= 5.0 &&\n  event.plcae == 'x'", 2, 9, `unknown field "plcae"`, "did you mean place?"},
		{"event.geo.lot > 1", 1, 11, `unknown field "lot"`, "did you mean lat?"},
		{"event['foo'] == 1", 1, 6, `unknown field "foo"`, "valid names are geo, mag, place, sig, tags, type"},
		{"has(event.foo)", 1, 5, `unknown field "foo"`, "valid names are "},
		{"event.tags.exists(t, t.nme == 'x')", 1, 24, `unknown field "nme"`, "did you mean name?"},
		{"event.tags[0].nam == ''", 1, 15, `unknown field "nam"`, "did you mean name?"},
		{"place.lat == 1", 1, 7, `a string has no field "lat"`, ""},
		{"mga > 5", 1, 1, `unknown name "mga"`, "did you mean mag?"},
		{"sub.min > 5", 1, 1, `unknown name "sub"`, "a filter has no params"},
		{"type == 'quarry'", 1, 6, "a type cannot be compared with a string", "write the field as event.type"},
		{"place > 5", 1, 7, "a string cannot be compared with an integer", ""},
		{"mag + 1 > 3.0", 1, 5, "arithmetic cannot mix", "write 2.0 instead of 2"},
		{"mag && true", 1, 1, "an operand of &&, || or ! must be a boolean, not a number", ""},
		{"mag", 1, 1, "the expression must be true or false, not a number", ""},
		{"contains_ci(mag, 'x')", 1, 13, "contains_ci requires strings, not a number", ""},
		{"place.matches('(')", 1, 15, "invalid matches argument", ""},
		{"size(event.tags) == 'a'", 1, 18, "an integer cannot be compared with a string", ""},
		{"size(event.tags) in ['a', 'b']", 1, 18, "an integer cannot be compared with a string", ""},
		{"size(event.tags) == null", 1, 18, "an integer cannot be compared with null", ""},
		{"[1] == ['a']", 1, 5, "an integer cannot be compared with a string", ""},
		{"[1, 2][0] == 'a'", 1, 11, "an integer cannot be compared with a string", ""},
		{"{1: 'a'} == {'b': 'a'}", 1, 10, "an integer cannot be compared with a string", ""},
		{"2u == 'a'", 1, 4, "an integer cannot be compared with a string", ""},
		{"bytes(place) == 'a'", 1, 14, "a list of bytes cannot be compared with a string", ""},
		{"'a' in place", 1, 5, "in requires a list or an object, not a string", "use contains()"},
		{"event.tags['a'] == 1", 1, 11, `a list has no field "a"`, ""},
		{"event.geo['lot'] > 1", 1, 10, `unknown field "lot"`, "did you mean lat?"},
		{"place['lat'] == 1", 1, 6, `a string has no field "lat"`, ""},
		{"has(event['foo'])", 1, 5, `unknown field "foo"`, "valid names are "},
		{"event.place.lowerAscii() == 'x'", 1, 13, `unknown function "lowerAscii"`, "contains_ci"},
		{"event.mag > 1.0 &&\n  'é' == place.trim()", 2, 16, `unknown function "trim"`, "valid names are contains, "},
		{"event.place.startswith('x')", 1, 13, `unknown function "startswith"`, "did you mean startsWith?"},
		{"containsci(place, 'x')", 1, 1, `unknown function "containsci"`, "did you mean contains_ci?"},
		{"lower(place) == 'x'", 1, 1, `unknown function "lower"`, "contains_ci"},
		{"has(event)", 1, 5, "has() requires a field", ""},
		{"has(event.tags[0])", 1, 15, "has() requires a field", ""},
		{`"é" == place && bogus`, 1, 17, `unknown name "bogus"`, "valid names are "},
	} {
		e := asError(t, x.CheckFilter(quakes, c.filter))
		if e.Code != fanfare.Invalid || e.Pointer != "/filter" || e.Line != c.line || e.Column != c.column ||
			!strings.Contains(e.Message, c.message) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q: got %s %d:%d %q (%q)", c.filter, e.Code, e.Line, e.Column, e.Message, e.Hint)
		}
		if err := x.Add(quakes, []Entry{{Place: 1}, {Place: 2, Filter: c.filter}}); err == nil || x.Len(quakes) != 0 {
			t.Errorf("%q: Add said %v and kept %d", c.filter, err, x.Len(quakes))
		}
	}
}

func TestAFilterOverALimitIsRefused(t *testing.T) {
	x := newQuakes(t)
	long := "place == '" + strings.Repeat("x", lang.MaxTextBytes) + "'"
	if e := asError(t, x.CheckFilter(quakes, long)); e.Code != fanfare.TooLarge {
		t.Errorf("long text: %v", e)
	}
	for _, filter := range []string{
		strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100),
		"size(" + strings.Repeat("[", 100) + strings.Repeat("]", 100) + ") == 1",
		"place == '\xff'", "  ",
	} {
		if err := x.CheckFilter(quakes, filter); err == nil {
			t.Errorf("%.20q is taken", filter)
		}
	}
	chain := strings.TrimSuffix(strings.Repeat("mag > 5.0 || ", 300), " || ")
	if err := x.CheckFilter(quakes, chain); err != nil {
		t.Errorf("a long chain is refused: %v", err)
	}
}

func TestWithoutASchemaAnyFieldOfTheEventMayBeNamed(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	if err := x.CheckFilter(key, "event.what.ever == 1"); err != nil {
		t.Error(err)
	}
	if e := asError(t, x.CheckFilter(key, "event.s.lowerAscii() == 'x'")); e.Message != `unknown function "lowerAscii"` || e.Column != 9 {
		t.Errorf("column %d: %s", e.Column, e.Message)
	}
	if e := asError(t, x.CheckFilter(key, "whatever == 1")); e.Hint != "the topic has no schema: write event.whatever" {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestADefinitionIsRefusedAtTheFaultyMember(t *testing.T) {
	good := near
	for name, c := range map[string]struct {
		def     Definition
		pointer string
		text    string
	}{
		"schema":       {Definition{Schema: json.RawMessage(`{"type":`)}, "/schema", "not valid JSON"},
		"no name":      {Definition{Rules: []Rule{good, {When: "true"}}}, "/rules/1/name", "no name"},
		"twice":        {Definition{Rules: []Rule{good, good}}, "/rules/1/name", `"near"`},
		"syntax":       {Definition{Rules: []Rule{{Name: "r", When: "event.x =="}}}, "/rules/0/when", "syntax error"},
		"empty":        {Definition{Rules: []Rule{{Name: "r"}}}, "/rules/0/when", "empty"},
		"unknown type": {Definition{Rules: []Rule{{Name: "r", When: "true", Params: map[string]string{"x": "int"}}}}, "/rules/0/params/x", `"int"`},
		"param name":   {Definition{Rules: []Rule{{Name: "r", When: "true", Params: map[string]string{"a/b": "string"}}}}, "/rules/0/params/a~1b", "letters"},
		"unknown param": {Definition{Rules: []Rule{{Name: "r", When: "event.x == sub.plac", Params: map[string]string{"place": "string"}}}},
			"/rules/0/when", `unknown param "plac"`},
		"unknown field": {Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{{Name: "r", When: "event.depth > 3"}}},
			"/rules/0/when", `unknown field "depth"`},
		"wrong type": {Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{{Name: "r", When: "event.place >= sub.x", Params: map[string]string{"x": "number"}}}},
			"/rules/0/when", "a string cannot be compared with a number"},
	} {
		e := asError(t, New().Check(c.def))
		if e.Code != fanfare.Invalid || e.Pointer != c.pointer || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %v", name, e)
		}
	}
	if err := New().Check(Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{good}}); err != nil {
		t.Error(err)
	}
}

func TestParamsAreRefusedMemberByMember(t *testing.T) {
	x := newQuakes(t, near)
	for params, want := range map[string]string{
		`{"min_mag":5,"place":"alaska"}`:           "",
		`{"min_mag":5}`:                            `/params/place: param "place" is missing; it must be a string`,
		``:                                         `/params/min_mag: param "min_mag" is missing`,
		`{"min_mag":"5","place":"x"}`:              `/params/min_mag: param "min_mag" must be a number`,
		`{"min_mag":null,"place":"x"}`:             `/params/min_mag: param "min_mag" must be a number`,
		`{"min_mag":1e999,"place":"x"}`:            `/params/min_mag: param "min_mag" must be a number`,
		`{"min_mag":5,"place":7}`:                  `/params/place: param "place" must be a string`,
		`{"min_mag":5,"place":"x","plac":1}`:       `/params/plac: unknown param "plac" (did you mean place?)`,
		`{"min_mag":true,"place":[],"a":1,"b":{}}`: `/params/min_mag: param "min_mag" must be a number; /params/place: param "place" must be a string; /params/a: unknown param "a"`,
		`[5]`: `/params: the params are not a JSON object`,
		`{`:   `/params: the params are not a JSON object`,
	} {
		err := x.CheckParams(quakes, "near", json.RawMessage(params))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", params, err, want)
		}
		if err := x.Add(quakes, []Entry{{Place: 1, Rule: "near", Params: json.RawMessage(params)}}); (err == nil) != (want == "") {
			t.Errorf("%s: Add said %v", params, err)
		}
	}
	e := asError(t, x.CheckParams(quakes, "naer", nil))
	if e.Pointer != "/rule" || e.Hint != "did you mean near?" {
		t.Errorf("unknown rule: %v", e)
	}
}

func TestAnUnknownTopicIsNotFound(t *testing.T) {
	x, key := New(), Key{"s", "nowhere"}
	_, err := x.Match(key, Event{}, nil)
	for _, err := range []error{err, x.CheckFilter(key, "true"), x.CheckParams(key, "r", nil), x.Add(key, nil)} {
		if fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
	}
	x.Remove(key, 1)
	if x.Len(key) != 0 {
		t.Error("an unknown topic has subscriptions")
	}
}

func TestUnknownParamTypesAreRefused(t *testing.T) {
	e := asError(t, New().Check(Definition{Rules: []Rule{{Name: "r", When: "event.a == sub.a", Params: map[string]string{"a": "text"}}}}))
	if e.Pointer != "/rules/0/params/a" || !strings.Contains(e.Message, `unknown type "text"`) || e.Hint != "use number, string, boolean or strings" {
		t.Errorf("got %s: %v (%s)", e.Pointer, e, e.Hint)
	}
}
