package condition

import (
	"encoding/json"
	"testing"
)

// The index and the independent evaluator once had different results for these conditions.
func TestConditionsThatOnceDiffered(t *testing.T) {
	const schema = `{"properties":{"host":{"type":"string"},"n":{"type":"number"},"l":{"type":"array"}},"additionalProperties":true}`
	for _, c := range []struct {
		name, when, params, data string
		want                     bool
	}{
		{"a list with a value that is missing is an error", "event.s in [sub.s, event.gone]", `{"s":"a"}`, `{"s":"a"}`, false},
		{"and one with a value that is there is none", "event.s in [sub.s, event.host]", `{"s":"b"}`, `{"s":"a","host":"a"}`, true},
		{"the value comes first", "event.s in [event.host, sub.s]", `{"s":"a"}`, `{"s":"a","host":"b"}`, true},
		{"a bare name in a macro whose variable is event", "l.exists(event, host == sub.s && event > 1)", `{"s":"a"}`, `{"host":"a","l":[1,2]}`, true},
		{"and beside a param alone", "[1].exists(event, host == 'a') && sub.s == 'b'", `{"s":"b"}`, `{"host":"a"}`, true},
		{"a key of an object has no fields, and none is missing", "!event.o.exists(x, x.a == sub.s)", `{"s":"a"}`, `{"o":{"k":1}}`, false},
		{"an object without keys has none to look at", "!event.o.exists(x, x.a == sub.s)", `{"s":"a"}`, `{"o":{}}`, true},
		{"it is the field of the event", "[{'host': 'x'}].exists(event, event.host == 'x' && host == sub.s)", `{"s":"a"}`, `{"host":"b"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			if err := x.Define(key, Definition{Schema: json.RawMessage(schema), Rules: []Rule{{Name: "r", When: c.when, Params: map[string]string{"s": "string"}}}}); err != nil {
				t.Fatal(err)
			}
			if err := x.Add(key, []Entry{{Place: 1, Rule: "r", Params: json.RawMessage(c.params)}}); err != nil {
				t.Fatal(err)
			}
			if got := len(places(t, x, key, c.data)) == 1; got != c.want {
				t.Errorf("%s with %s is %t for %s", c.when, c.params, got, c.data)
			}
		})
	}
}
