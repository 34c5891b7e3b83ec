package condition

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// The test has values at which the result of a comparison changes.
func TestFiltersAtTheBoundsOfComparisons(t *testing.T) {
	x, key := shop(t, "", nil)
	for _, c := range []struct {
		filter, data string
		want         bool
	}{
		{"uint(n) > 3u", `{"n":4}`, true},
		{"uint(n) > 3u", `{"n":3}`, false},
		{"3u < uint(n)", `{"n":4}`, true},
		{"timestamp(at).getMinutes('+00:59') == 59", `{"at":"2026-01-01T00:00:00Z"}`, true},
		{"timestamp(at).getMinutes('-23:00') == 0", `{"at":"2026-01-01T00:00:00Z"}`, true},
		{"timestamp(at).getHours('+23:59') == 23", `{"at":"2026-01-01T00:00:00Z"}`, true},
	} {
		if got := meets(t, x, key, c.filter, Event{Data: json.RawMessage(c.data)}); got != c.want {
			t.Errorf("%s is %t for %s", c.filter, got, c.data)
		}
	}
}

// The texts end inside of a list of texts.
func TestAListWithoutEndIsRefused(t *testing.T) {
	x, key := shop(t, "", nil)
	for _, filter := range []string{"title in [", "title in [ ", "title in ['a'", "title in ['a' ", "title in ['a',", "title in ['a', ", "title in ['a"} {
		if e := asError(t, x.CheckFilter(key, filter)); e.Code != fanfare.Invalid || !strings.Contains(e.Message, "syntax error") {
			t.Errorf("%s: got %v", filter, e)
		}
	}
}

// The rows differ in a param that selects a field of the event by its name.
func TestAPartThatReadsParamsByTheirNameIsOfOneRow(t *testing.T) {
	x, key := shop(t, "n > 0 && (sub[event.title] == 'x' || sub.s.contains('z'))", map[string]string{"s": "string", "t": "string"})
	mustAdd(t, x, key, Entry{Place: 1, Rule: "r", Params: json.RawMessage(`{"s":"a","t":"y"}`)},
		Entry{Place: 2, Rule: "r", Params: json.RawMessage(`{"s":"a","t":"x"}`)}, Entry{Place: 3, Rule: "r", Params: json.RawMessage(`{"s":"a","t":"y"}`)})
	if got := places(t, x, key, `{"n":1,"title":"t"}`); len(got) != 1 || got[0] != 2 {
		t.Errorf("met by %v", got)
	}
}

// The filter has a sum that is invalid for integers and valid for doubles.
func TestAFilterUsesTheCurrentSchema(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	for _, kind := range []string{"integer", "number", "integer"} {
		def := Definition{Schema: json.RawMessage(`{"properties":{"n":{"type":"` + kind + `"},"m":{"type":"` + kind + `"}}}`)}
		if err := x.Define(key, def); err != nil {
			t.Fatal(err)
		}
		if x.Len(key) == 0 {
			mustAdd(t, x, key, Entry{Place: 1, Filter: "event.n + event.m > 9.3e18"}, Entry{Place: 2, Filter: "event.n > 0 && event.n + event.m > 9.3e18"})
		}
		want := 0
		if kind == "number" {
			want = 2
		}
		if got := places(t, x, key, `{"n":9000000000000000000,"m":9000000000000000000}`); len(got) != want {
			t.Errorf("with %s it is met by %v", kind, got)
		}
	}
}

// The conditions have params where a field of the event is usual.
func TestConditionsOnParamsOnly(t *testing.T) {
	for _, c := range []struct{ when, data string }{
		{"timestamp(sub.s).getHours(sub.t) == n", `{"n":1}`},
		{"{'a': sub.t}['a'] == '+01:00'", `{"n":1}`},
		{"{sub.t: 1}.exists(k, k == title)", `{"title":"+01:00"}`},
	} {
		x, key := shop(t, c.when, map[string]string{"s": "string", "t": "string"})
		for i, zone := range []string{"+00:00", "+01:00", "+02:00"} {
			mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Rule: "r", Params: json.RawMessage(`{"s":"2026-01-01T00:00:00Z","t":"` + zone + `"}`)})
		}
		if got := places(t, x, key, c.data); len(got) != 1 || got[0] != 1 {
			t.Errorf("%s is met by %v", c.when, got)
		}
	}
}

// The ids are just after the existing pages.
func TestPagesOfIDsGrow(t *testing.T) {
	x, key := shop(t, "", nil)
	for _, page := range []fanfare.RowID{0, 8, 16, 33} {
		mustAdd(t, x, key, Entry{Place: page << pageBits, Filter: "n > 0"})
	}
	if got := places(t, x, key, `{"n":1}`); len(got) != 4 {
		t.Errorf("met by %v", got)
	}
}
