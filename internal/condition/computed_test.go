package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// shop returns an index with a topic that has a rule for each kind of computed value.
func shop(t *testing.T, when string, params map[string]string) (*Index, Key) {
	t.Helper()
	x, key := New(), Key{"shop", "order"}
	def := Definition{Schema: json.RawMessage(`{"properties":{"price":{"type":"number"},"n":{"type":"integer"},"at":{"type":"string"},"until":{"type":"string"},"tags":{"type":"array"},"title":{"type":"string"},"x":{}}}`)}
	if when != "" {
		def.Rules = []Rule{{Name: "r", When: when, Params: params}}
	}
	if err := x.Define(key, def); err != nil {
		t.Fatal(err)
	}
	return x, key
}

// meets reports whether a filter is true for an event.
func meets(t *testing.T, x *Index, key Key, filter string, event Event) bool {
	t.Helper()
	mustAdd(t, x, key, Entry{Place: 1, Filter: filter})
	hits, err := x.Match(key, event, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Remove(key, 1)
	return len(hits) == 1
}

func TestComputedValuesLeadToRows(t *testing.T) {
	const n = 200
	for when, c := range map[string]struct {
		params map[string]string
		param  func(i int) string
		data   string
		want   []fanfare.RowID
	}{
		"price * 2.0 == sub.x": {
			map[string]string{"x": "number"}, func(i int) string { return fmt.Sprintf(`{"x":%d}`, i) }, `{"price":50.5}`, []fanfare.RowID{101},
		},
		"size(tags) >= sub.x && size(tags) <= sub.x": {
			map[string]string{"x": "number"}, func(i int) string { return fmt.Sprintf(`{"x":%d}`, i) }, `{"tags":[1,2,3]}`, []fanfare.RowID{3},
		},
		"timestamp(at).getHours('America/Vancouver') == sub.x": {
			map[string]string{"x": "number"}, func(i int) string { return fmt.Sprintf(`{"x":%d}`, i) }, `{"at":"2026-07-01T06:30:00Z"}`, []fanfare.RowID{23},
		},
		"contains_ci(title + ' ' + at, sub.s)": {
			map[string]string{"s": "string"}, func(i int) string { return fmt.Sprintf(`{"s":"%d of"}`, i) }, `{"title":"No 17","at":"OF them"}`, []fanfare.RowID{7, 17},
		},
		"string(n) in sub.l": {
			map[string]string{"l": "strings"}, func(i int) string { return fmt.Sprintf(`{"l":["%d","x"]}`, i) }, `{"n":12}`, []fanfare.RowID{12},
		},
	} {
		t.Run(when, func(t *testing.T) {
			x, key := shop(t, when, c.params)
			for i := range n {
				mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Rule: "r", Params: json.RawMessage(c.param(i))})
			}
			if got := places(t, x, key, c.data); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := candidates(t, x, key, c.data); got > len(c.want)+2 {
				t.Errorf("the event looks at %d rows of %d", got, n)
			}
			if got := places(t, x, key, `{"x":1}`); len(got) > 0 {
				t.Errorf("where nothing can be computed: %v", got)
			}
		})
	}
}

func TestTimesOfTheEvent(t *testing.T) {
	x, key := shop(t, "", nil)
	const at = `{"at":"2026-03-29T00:59:59.5Z","until":"2026-03-29T03:00:00+01:00","n":5,"x":5}`
	for filter, want := range map[string]bool{
		"timestamp(at) < timestamp(until)":                                    true,
		"timestamp(until) - timestamp(at) > duration('1h')":                   true,
		"timestamp(until) - timestamp(at) <= duration('3600.5s')":             true,
		"timestamp(until) - timestamp(at) < duration('1h')":                   false,
		"timestamp(at) + duration('1h') >= timestamp('2026-03-29T01:59:59Z')": true,
		"timestamp(at) == timestamp('2026-03-29T01:59:59.5+01:00')":           true,
		"timestamp(at) != timestamp(at)":                                      false,
		"timestamp(at) > timestamp('2026-03-29T00:59:59.5Z')":                 false,
		"timestamp(n) > timestamp('1970-01-01T00:00:04Z')":                    true,
		"timestamp(at) > x":                                                       false, // an error
		"!(timestamp(at) > x)":                                                    false,
		"timestamp(x) > timestamp(at)":                                            false,
		"timestamp(title) > timestamp(at) || n == 5":                              true, // an error or true
		"timestamp(at).getHours() == 0":                                           true,
		"timestamp(at).getHours('Europe/Berlin') == 1":                            true, // a second before summer time
		"(timestamp(at) + duration('1s')).getHours('Europe/Berlin') == 3":         true,
		"timestamp(at).getDayOfWeek('Europe/Berlin') == 0":                        true, // a Sunday
		"timestamp(at).getDayOfWeek('America/Vancouver') == 6":                    true,
		"timestamp(at).getDayOfWeek('America/Vancouver') in [0, 6]":               true,
		"timestamp(at).getDate('-01:30') == 28":                                   true,
		"timestamp(at).getMonth('+00:00') == 2":                                   true, // months begin at 0
		"timestamp(at).getMilliseconds('UTC') == 500":                             true,
		"timestamp(at).getDayOfYear('UTC') == 87":                                 true,
		"duration('90m').getMinutes() == 90 && n == 5":                            true,
		"(timestamp(until) - timestamp(at)).getMinutes() == 60":                   true,
		"at.getHours('UTC') == 0":                                                 false, // nor has a text
		"timestamp(at).getHours('UTC') >= 0 && timestamp(at).getHours('UTC') < 1": true,
	} {
		if got := meets(t, x, key, filter, Event{Data: json.RawMessage(at)}); got != want {
			t.Errorf("%s: %v", filter, got)
		}
	}
	for filter, want := range map[string]string{
		"at > timestamp('2026-01-01T00:00:00Z')":                    "line 1, column 4: a string cannot be compared with a time (convert the string with timestamp(...))",
		"timestamp(at).getHours('Europe/Berln') > 8":                `unknown time zone "Europe/Berln"`,
		"timestamp(at).getHours('Local') > 8":                       `unknown time zone "Local"`,
		"timestamp(at).getHours('+25:00') > 8":                      `unknown time zone "+25:00"`,
		"timestamp('yesterday') < timestamp(at)":                    "timestamp",
		"duration('1 day') < duration('3h')":                        "duration",
		"(timestamp(until) - timestamp(at)).getMinutes('UTC') >= 0": "no matching overload",
		"timestamp(at)": "the expression must be true or false, not a time",
	} {
		if e := asError(t, x.CheckFilter(key, filter)); !lang.ContainsFolded(lang.Fold(e.Error()), lang.Fold(want)) {
			t.Errorf("%s: got %v", filter, e)
		}
	}
}

func TestAttributesOfTheEvent(t *testing.T) {
	x, key := shop(t, "", nil)
	at := time.Date(2026, 7, 1, 6, 30, 0, 0, time.UTC)
	event := expr.Event{Data: json.RawMessage(`{"n":5,"title":"/shop"}`), Attributes: expr.Attributes{
		ID: "42", Source: "/shop", Type: "order", Time: at,
		Extensions: map[string]json.RawMessage{"tenant": json.RawMessage(`"blue"`), "weight": json.RawMessage("3"), "dry": json.RawMessage("true"), "id": json.RawMessage(`"no"`)},
	}}
	for filter, want := range map[string]bool{
		"ce.source == '/shop' && ce.type == 'order'": true,
		"ce.id == '42'":      true,
		"ce.source == title": true,
		"ce.tenant == 'blue' && ce.weight >= 3 && ce.dry":               true,
		"ce['tenant'].startsWith('bl')":                                 true,
		"ce.subject == ''":                                              false, // missing
		"has(ce.subject)":                                               false,
		"has(ce.tenant) && !has(ce.colour)":                             true,
		"'tenant' in ce":                                                true,
		"contains_ci(ce.source, 'SHOP')":                                true,
		"ce.time > timestamp('2026-01-01T00:00:00Z')":                   true,
		"ce.time.getHours('America/Vancouver') == 23":                   true,
		"ce.time.getHours() in [6, 7] && n == 5":                        true,
		"ce.time - duration('24h') < timestamp('2026-06-30T07:00:00Z')": true,
		"[1, 2].exists(i, i + ce.weight == 5)":                          true,
		"ce == event":                                                   false,
	} {
		if got := meets(t, x, key, filter, event); got != want {
			t.Errorf("%s: %v", filter, got)
		}
	}
	if meets(t, x, key, "ce.time > timestamp('2026-01-01T00:00:00Z') || has(ce.tenant)", Event{}) {
		t.Error("attributes of the event before are seen")
	}
	for filter, want := range map[string]string{
		"ce.Source == 'x'":                  `unknown attribute "Source" (did you mean source?)`,
		"ce.data.n == 5":                    `unknown attribute "data"`,
		"ce.data_base64 == 'x'":             `unknown attribute "data_base64"`,
		"ce.source == 5":                    "a string cannot be compared with an integer",
		"ce.time > '2026-01-01'":            "a time cannot be compared with a string (convert the string with timestamp(...))",
		"ce":                                "the expression must be true or false, not an object",
		"ce.time.hours > 5":                 `a time has no field "hours"`,
		"geo.within(ce.source, 1, 2, 3, 4)": "geo.within requires numbers, not a string",
	} {
		if e := asError(t, x.CheckFilter(key, filter)); !lang.ContainsFolded(lang.Fold(e.Message+" ("+e.Hint+")"), lang.Fold(want)) {
			t.Errorf("%s: got %v (%s)", filter, e, e.Hint)
		}
	}
}

// A field named ce has to be written event.ce.
func TestAFieldNamedCeIsReachable(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{Schema: json.RawMessage(`{"properties":{"ce":{"type":"string"}}}`)}); err != nil {
		t.Fatal(err)
	}
	event := expr.Event{Data: json.RawMessage(`{"ce":"x"}`), Attributes: expr.Attributes{Source: "y"}}
	if !meets(t, x, key, "event.ce == 'x' && ce.source == 'y'", event) {
		t.Error("the field and the attribute are not told apart")
	}
}

func TestAttributesLeadToRows(t *testing.T) {
	x, key := shop(t, "ce.source == sub.s", map[string]string{"s": "string"})
	for i := range 100 {
		mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Rule: "r", Params: json.RawMessage(fmt.Sprintf(`{"s":"/%d"}`, i))})
	}
	hits, err := x.Match(key, Event{Attributes: Attributes{Source: "/7"}}, nil)
	if err != nil || len(hits) != 1 || hits[0].Place != 7 {
		t.Errorf("got %v, %v", hits, err)
	}
	part, err := x.Explain(key, Entry{Rule: "r", Params: json.RawMessage(`{"s":"/7"}`)}, Event{Attributes: Attributes{ID: "1"}})
	if err != nil || part.Error != "ce.source is missing" {
		t.Errorf("got %+v, %v", part, err)
	}
}

// The value of the field with that name is unrelated to the elements of the list.
func TestAVariableThatHidesAFieldIsNotIndexed(t *testing.T) {
	for when, want := range map[string]bool{
		"sub.l.exists(title, title == title)":         true,
		"sub.l.all(title, title == title)":            true,
		"tags.exists(sub, sub.z == sub.y)":            true,
		"sub.l.exists(x, x == title)":                 false,
		"tags.exists(title, title.z in sub.l)":        true,
		"sub.l.exists(x, tags.exists(x, x.z == x.y))": true,
	} {
		x, key := shop(t, when, map[string]string{"l": "strings", "z": "string", "y": "string"})
		mustAdd(t, x, key, Entry{Place: 1, Rule: "r", Params: json.RawMessage(`{"l":["a"],"z":"p","y":"q"}`)})
		if got := len(places(t, x, key, `{"title":"b","tags":[{"z":"a","y":"a"}]}`)) == 1; got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
}

func TestTheClockOfTheSubscription(t *testing.T) {
	when := "ce.time.getHours(sub.zone) >= sub.from && !(ce.time.getHours(sub.zone) > sub.to)"
	x, key := shop(t, when, map[string]string{"zone": "string", "from": "number", "to": "number"})
	for i, c := range []struct {
		zone     string
		from, to int
		want     bool
	}{
		{"Europe/Berlin", 8, 8, true},
		{"Europe/Berlin", 9, 20, false},
		{"America/Vancouver", 23, 23, true},
		{"UTC", 0, 6, true},
		{"+02:00", 8, 8, true},
		{"-12:30", 18, 18, true},
		{"", 6, 6, true},
		{"Europe/Berln", 0, 24, false}, // an error, in its negation too
		{"+99:00", 0, 24, false},
	} {
		params := fmt.Sprintf(`{"zone":%q,"from":%d,"to":%d}`, c.zone, c.from, c.to)
		mustAdd(t, x, key, Entry{Place: 1, Rule: "r", Params: json.RawMessage(params)})
		event := expr.Event{Attributes: expr.Attributes{Time: time.Date(2026, 7, 1, 6, 30, 0, 0, time.UTC)}}
		for range 2 { // from the frame, the second time
			hits, err := x.Match(key, event, nil)
			if err != nil || len(hits) == 1 != c.want {
				t.Errorf("%d: %s: %d hits, %v", i, params, len(hits), err)
			}
		}
		sub := map[string]any{"zone": c.zone, "from": float64(c.from), "to": float64(c.to)}
		if naive := naive(t, x.topics[key].compiled.Load().ruleScopes[0], when, event, sub); naive != c.want {
			t.Errorf("%s: cel-go says %v", params, naive)
		}
	}
}
