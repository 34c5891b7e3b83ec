package evaluator

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

// jsonTexts are JSON values and texts that resemble them.
var jsonTexts = []string{`null`, `true`, `tru`, `truex`, `0`, `-0`, `00`, `01`, `-`, `1.`, `.5`, `1.5e`, `1e5`, `1E+05`, `1e-5`, `+1`, `1 2`, `"a"`, `"a`, `'a'`,
	`"\u00e9\ud83d\ude00"`, `"\ud800"`, `"\ud800\u0041"`, `"\ud800\ud800\udc00"`, `"\udc00\ud800"`, `"\u12"`, `"\uXYZW"`, `"\x41"`, `"\/\b\f\n\r\t\\\""`,
	"\"\xff\xfe\"", "\"\xed\xa0\x80\"", "\"a\nb\"", "\"\x7f\"", "\"\x00\"", `[]`, `[1,]`, `[,]`, `[1 2]`, `[1,[2,[3]]]`, `{}`, `{"a":1,"a":2}`, `{"a":1,}`,
	`{a:1}`, `{"a" 1}`, `{"a":{"b":[{}]}}`, ` 	1` + "\r\n", "\u00a01", "\ufeff1", ``, ` `, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`,
	`1e999`, `-1e999`, `1e-999`, `{"\u0061":1,"a":2}`, "{\"\xff\":1,\"\ufffd\":2}", `nul`, `[`, `{`, `{"a"`, `{"a":`, `[1`, `"\`, `"\u`, `1e`, `-a`, `NaN`, `Infinity`,
	`12345678901234567890123456789`, `0.1e1`, `[null,true,false]`}

// sameJSON compares a value with the result of encoding/json for the same text.
func sameJSON(v value, other any) bool {
	switch x := other.(type) {
	case nil:
		return v.kind == kindNull
	case bool:
		return v.kind == kindBool && v.isTrue() == x
	case string:
		return v.kind == kindString && v.str == x
	case json.Number:
		if n, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return v.kind == kindInt && v.int() == n
		}
		d, _ := strconv.ParseFloat(string(x), 64)
		return v.kind == kindDouble && math.Float64bits(v.double()) == math.Float64bits(d)
	case []any:
		if v.kind != kindList || len(v.ref.items) != len(x) {
			return false
		}
		for i := range x {
			if !sameJSON(v.ref.items[i], x[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		if v.kind != kindMap || len(v.ref.keys) != len(x) {
			return false
		}
		for i, key := range v.ref.keys {
			if at, ok := x[key.str]; !ok || !sameJSON(v.ref.items[i], at) || v.ref.findText(key.str) != i {
				return false
			}
		}
		return true
	}
	return false
}

func readsAlike(t *testing.T, data []byte) {
	t.Helper()
	v, err := decodeJSON(data, nil)
	if valid := json.Valid(data); valid != (err == nil) {
		t.Fatalf("%q: here %v, by encoding/json valid is %v", data, err, valid)
	}
	if err != nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var other any
	if err := d.Decode(&other); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	if !sameJSON(v, other) {
		t.Fatalf("%q is read differently", data)
	}
}

func TestJSONIsReadAsEncodingJSONReadsIt(t *testing.T) {
	for _, text := range jsonTexts {
		readsAlike(t, []byte(text))
	}
	g := newGenerator(*seed)
	for range *cases {
		text := g.event()
		readsAlike(t, []byte(text))
		readsAlike(t, []byte(g.mutated(text)))
	}
}

func TestTheDepthOfJSONIsLimited(t *testing.T) {
	for _, levels := range []int{maxDepth, maxDepth + 1} {
		data := []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		if _, err := decodeJSON(data, nil); (err == nil) != (levels <= maxDepth) {
			t.Errorf("%d levels: %v", levels, err)
		}
		readsAlike(t, data)
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(readsAlike)
}

func TestTheSchemaDeterminesTheKindOfANumber(t *testing.T) {
	schema := `{"$defs":{"count":{"type":"integer"},"tree":{"properties":{"n":{"type":"number"},"next":{"$ref":"#/$defs/tree"},"below":{"items":{"$ref":"#/$defs/tree"}}}},
		"a/b~c %":{"type":"number"}},
		"properties":{
			"i":{"type":"integer"},"d":{"type":"number"},"w":{},"id":{"type":["integer","null"]},"nd":{"type":["null","number"]},
			"both":{"type":["integer","number"]},"ref":{"$ref":"#/$defs/count"},"pointer":{"$ref":"#/$defs/a~1b~0c%20%25"},"all":{"allOf":[{"type":"number"},{"minimum":0}]},
			"same":{"type":"number","allOf":[{"type":"number"}]},"differ":{"type":"number","allOf":[{"type":"integer"}]},
			"list":{"items":{"type":"number"}},"tuple":{"prefixItems":[{"type":"string"}],"items":{"type":"number"}},"nested":{"items":{"items":{"type":"integer"}}},
			"twice":{"type":"number"},"maybe":{"type":"number"},"tree":{"$ref":"#/$defs/tree"},"elsewhere":{"$ref":"https://example.com/x"},"lost":{"$ref":"#/$defs/none"},
			"loop":{"$ref":"#/properties/loop"},"other":{"properties":{"x":{"type":"number"}}}},
		"allOf":[{"properties":{"twice":{"type":"number"},"part":{"type":"number"}}}],
		"anyOf":[{"properties":{"maybe":{"type":"number"},"branch":{"type":"number"}}}],
		"then":{"properties":{"then":{"type":"number"}}},"dependentSchemas":{"i":{"properties":{"dependent":{"type":"number"}}}}}`
	topic, err := NewTopic([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ data, condition string }{
		{`{"i":5}`, "type(i) == int"}, {`{"i":5.0}`, "type(i) == int"}, {`{"i":1e3}`, "i == 1000 && type(i) == int"}, {`{"i":5.5}`, "type(i) == double"},
		{`{"i":10e-1}`, "type(i) == int"}, {`{"i":9007199254740993.0}`, "i == 9007199254740993"}, {`{"i":1e19}`, "type(i) == double"}, {`{"i":1e400}`, "i > 1e308"},
		{`{"i":-9223372036854775808.0}`, "i == -9223372036854775808"}, {`{"i":9223372036854775808}`, "type(i) == double"}, {`{"i":-0.0}`, "type(i) == int && i == 0"},
		{`{"i":0e99999999999999999999}`, "i == 0 && type(i) == int"}, {`{"i":1e-99999999999999999999}`, "i == 0.0 && type(i) == double"}, {`{"i":0.00e5}`, "type(i) == int"},
		{`{"i":123.4500e2}`, "i == 12345 && type(i) == int"},
		{`{"d":5}`, "type(d) == double"}, {`{"d":9007199254740993}`, "d == 9007199254740992.0"}, {`{"d":-0}`, "string(d) == '-0'"},
		{`{"w":5}`, "type(w) == int"}, {`{"w":5.0}`, "type(w) == double"}, {`{"w":1e3}`, "type(w) == double"}, {`{"w":9223372036854775808}`, "type(w) == double"},
		{`{"id":5.0}`, "type(id) == int"}, {`{"nd":5}`, "type(nd) == double"}, {`{"both":5}`, "type(both) == int"}, {`{"both":5.0}`, "type(both) == double"},
		{`{"ref":5.0}`, "type(ref) == int"}, {`{"pointer":5}`, "type(pointer) == double"}, {`{"all":5}`, "type(all) == double"}, {`{"same":5}`, "type(same) == double"},
		{`{"differ":5}`, "type(differ) == int"}, {`{"list":[5]}`, "type(list_[0]) == double"}, {`{"tuple":["a",5]}`, "type(tuple[1]) == int"}, {`{"nested":[[5.0]]}`, "type(nested[0][0]) == int"},
		{`{"twice":5}`, "type(twice) == int"}, {`{"maybe":5}`, "type(maybe) == int"}, {`{"part":5}`, "type(part) == double"}, {`{"branch":5}`, "type(branch) == int"},
		{`{"then":5}`, "type(then) == int"}, {`{"dependent":5}`, "type(dependent) == int"}, {`{"elsewhere":5}`, "type(elsewhere) == int"}, {`{"lost":5}`, "type(lost) == int"},
		{`{"loop":5}`, "type(loop_) == int"}, {`{"tree":{"next":{"next":{"n":5,"below":[{"n":1}]}}}}`, "type(tree.next.next.n) == double && type(tree.next.next.below[0].n) == double"},
		{`{"other":{"x":1,"y":1}}`, "type(other.x) == double && type(other.y) == int"}, {`{"unknown":5}`, "type(event.unknown) == int"},
	} {
		text := strings.NewReplacer("list_", "event.list", "loop_", "event.loop").Replace(x.condition)
		if got := decideOne(t, topic, text, x.data); got.Result != True {
			t.Errorf("%s of %s is %s (%s)", text, x.data, got.Result, got.Reason)
		}
	}
	for _, text := range []string{"loop == 1", "nothing == 1", "x == 1"} {
		if _, err := topic.Condition(text, nil); err == nil {
			t.Errorf("%s was accepted, although the name needs a prefix", text)
		}
	}
	for _, schema := range []string{`[]`, `1`, `{`, `"x"`} {
		if _, err := NewTopic([]byte(schema)); err == nil {
			t.Errorf("%s was accepted as a schema", schema)
		}
	}
	for _, schema := range []string{`true`, `false`, `{}`} {
		if _, err := NewTopic([]byte(schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// decideOne evaluates a condition for one event.
func decideOne(t *testing.T, topic *Topic, text, data string) Verdict {
	t.Helper()
	c, err := topic.Condition(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	in, err := topic.Event(Event{Data: []byte(data), Attributes: attributes})
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return c.Evaluate(in, nil)
}
