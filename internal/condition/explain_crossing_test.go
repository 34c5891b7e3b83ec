package condition

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare"
)

func TestACrossingIsExplainedByTheValueBeforeAndAfter(t *testing.T) {
	const filter = "crosses((price - open) * 2.0, 10.0)"
	const none = "there is no previous event with its key"
	for _, c := range []struct{ filter, was, is, result, before, why string }{
		{"crosses(price, 10)", `{"price":9}`, `{"price":11}`, fanfare.PartTrue, "9", ""},
		{"crosses(price, 10)", `{"price":12}`, `{"price":11}`, fanfare.PartFalse, "12", ""},
		{"crosses(price, 10)", ``, `{"price":11}`, fanfare.PartFalse, "", none},
		{"crosses(price, 10)", `{}`, `{"price":11}`, fanfare.PartFalse, "", `the field "price" is missing`},
		{filter, `{"price":9,"open":8}`, `{"price":19,"open":8}`, fanfare.PartTrue, "2", ""},
		{filter, ``, `{"price":19,"open":8}`, fanfare.PartFalse, "", none},
		{"crosses(event.any, 10)", `{"any":9}`, `{"any":"x"}`, fanfare.PartError, "9", ""},
	} {
		part, err := newQuotes(t).Explain(quotes, Entry{Filter: c.filter}, Event{Data: json.RawMessage(c.is), Previous: json.RawMessage(c.was)})
		if err != nil {
			t.Fatal(err)
		}
		before := part.Parts[len(part.Parts)-1]
		if part.Result != c.result || string(before.Value) != c.before || before.Error != c.why {
			t.Errorf("%s from %s to %s is %s, before %s %q", c.filter, c.was, c.is, part.Result, before.Value, before.Error)
		}
		if part.Result == fanfare.PartError && part.Error != "crosses requires numbers, but event.any is a string" {
			t.Errorf("%s: %q", c.filter, part.Error)
		}
	}
}
