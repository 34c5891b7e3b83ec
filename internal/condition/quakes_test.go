package condition

import (
	"encoding/json"
	"errors"
	"testing"

	"fanfare.dev/fanfare"
)

var quakes = Key{"demo", "earthquake"}

const quakeSchema = `{"type":"object","properties":{
	"mag":{"type":["number","null"]}, "place":{"type":["string","null"]}, "sig":{"type":"integer"}, "type":{"type":"string"},
	"geo":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}}},
	"tags":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}`

// near is the rule of the earthquake example.
var near = Rule{Name: "near", When: "event.mag >= sub.min_mag && contains_ci(event.place, sub.place)",
	Params: map[string]string{"min_mag": "number", "place": "string"}}

func newQuakes(t testing.TB, rules ...Rule) *Index {
	t.Helper()
	x := New()
	if err := x.Define(quakes, Definition{Schema: json.RawMessage(quakeSchema), Rules: rules}); err != nil {
		t.Fatal(err)
	}
	return x
}

func mustAdd(t testing.TB, x *Index, key Key, entries ...Entry) {
	t.Helper()
	if err := x.Add(key, entries); err != nil {
		t.Fatal(err)
	}
}

// places returns the ids that match; it is never nil.
func places(t testing.TB, x *Index, key Key, data string) []fanfare.RowID {
	t.Helper()
	hits, err := x.Match(key, Event{Data: json.RawMessage(data)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := []fanfare.RowID{}
	for _, h := range hits {
		list = append(list, h.Place)
	}
	return list
}

func asError(t testing.TB, err error) *fanfare.Error {
	t.Helper()
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		t.Fatalf("got %v (%T), want a *fanfare.Error", err, err)
	}
	return e
}
