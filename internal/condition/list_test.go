package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// changes returns a topic with a rule like the lists of GOV.UK: any of some values, all of some
// values, and no criterion if the list is empty.
func changes(t *testing.T) (*Index, Key) {
	t.Helper()
	x, key := New(), Key{"govuk", "change"}
	def := Definition{
		Schema: json.RawMessage(`{"required":["kind","orgs"],"properties":{"kind":{"type":"string"},"n":{"type":"number"},
			"orgs":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}},"additionalProperties":false}}}}`),
		Rules: []Rule{{
			Name: "criteria",
			When: `(size(sub.kinds) == 0 || event.kind in sub.kinds) &&
				(size(sub.any) == 0 || event.orgs.exists(o, o.id in sub.any)) &&
				sub.all.all(id, event.orgs.exists(o, o.id == id))`,
			Params: map[string]string{"kinds": "strings", "any": "strings", "all": "strings"},
		}},
	}
	if err := x.Define(key, def); err != nil {
		t.Fatal(err)
	}
	return x, key
}

func TestAnyAndAllOfTheValuesOfAList(t *testing.T) {
	x, key := changes(t)
	for i, c := range []struct {
		params, event string
		want          bool
	}{
		{`{"kinds":[],"any":[],"all":[]}`, `{"kind":"guide","orgs":[]}`, true},
		{`{"kinds":["news","guide"],"any":[],"all":[]}`, `{"kind":"guide","orgs":[]}`, true},
		{`{"kinds":["news"],"any":[],"all":[]}`, `{"kind":"guide","orgs":[]}`, false},
		{`{"kinds":["guid"],"any":[],"all":[]}`, `{"kind":"guide","orgs":[]}`, false},
		{`{"kinds":[],"any":["a","b"],"all":[]}`, `{"kind":"guide","orgs":[{"id":"c"},{"id":"b"}]}`, true},
		{`{"kinds":[],"any":["a","b"],"all":[]}`, `{"kind":"guide","orgs":[{"id":"c"}]}`, false},
		{`{"kinds":[],"any":["a"],"all":[]}`, `{"kind":"guide","orgs":[]}`, false},
		{`{"kinds":[],"any":[],"all":["a","b"]}`, `{"kind":"guide","orgs":[{"id":"b"},{"id":"c"},{"id":"a"}]}`, true},
		{`{"kinds":[],"any":[],"all":["a","b"]}`, `{"kind":"guide","orgs":[{"id":"b"}]}`, false},
		{`{"kinds":["guide"],"any":["c","x"],"all":["a","b"]}`, `{"kind":"guide","orgs":[{"id":"b"},{"id":"c"},{"id":"a"}]}`, true},
		{`{"kinds":["guide"],"any":["x"],"all":["a","b"]}`, `{"kind":"guide","orgs":[{"id":"b"},{"id":"c"},{"id":"a"}]}`, false},
		{`{"kinds":["guide"],"any":[],"all":[]}`, `{"orgs":[]}`, false}, // a missing field is an error
		{`{"kinds":["guide"],"any":[],"all":[]}`, `{"kind":7,"orgs":[]}`, false},
		{`{"kinds":[""],"any":[],"all":[]}`, `{"kind":"","orgs":[]}`, true},
	} {
		mustAdd(t, x, key, Entry{Place: 7, Rule: "criteria", Params: json.RawMessage(c.params)})
		if got := len(places(t, x, key, c.event)) == 1; got != c.want {
			t.Errorf("%d: %s on %s: %v", i, c.params, c.event, got)
		}
	}
}

func TestManyListsStayApart(t *testing.T) {
	x, key := changes(t)
	const n = 500
	list := func(i int) string { return fmt.Sprintf(`["k%d","k%d"]`, i%50, i%7) }
	for i := range n {
		mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Rule: "criteria", Params: json.RawMessage(`{"kinds":` + list(i) + `,"any":[],"all":[]}`)})
	}
	for _, kind := range []int{3, 6, 7, 49} {
		want := 0
		for i := range n {
			if strings.Contains(list(i), fmt.Sprintf(`"k%d"`, kind)) {
				want++
			}
		}
		if got := len(places(t, x, key, fmt.Sprintf(`{"kind":"k%d","orgs":[]}`, kind))); got != want {
			t.Errorf("k%d: %d, want %d", kind, got, want)
		}
	}
	for i := range n {
		x.Remove(key, fanfare.RowID(i))
	}
	if left := x.topics[key].texts.Numbers; len(left) != 0 {
		t.Errorf("lists that nobody has any more are kept: %v", left)
	}
}

func TestAValueThatIsNotAListIsRefused(t *testing.T) {
	x, key := changes(t)
	for _, kinds := range []string{`"guide"`, `null`, `{}`, `[1]`, `["a",null]`, `[["a"]]`, `true`} {
		err := x.CheckParams(key, "criteria", json.RawMessage(`{"kinds":`+kinds+`,"any":[],"all":[]}`))
		if err == nil || err.Error() != `/params/kinds: param "kinds" must be a list of strings` {
			t.Errorf("%s: got %v", kinds, err)
		}
	}
}

func TestAMistakeWithAListIsReportedForTheRule(t *testing.T) {
	for when, want := range map[string]string{
		"event.s == sub.l":                     "a string cannot be compared with a list",
		"event.s.contains(sub.l)":              "contains requires strings, not a list",
		"sub.l.exists(x, x > 5)":               "a string cannot be compared with an integer",
		"sub.l[0] == 5":                        "a string cannot be compared with an integer",
		"sub.l.a == 'x'":                       `a list has no field "a"`,
		"sub.l":                                "the expression must be true or false, not a list",
		"event.s in sub.l && sub.k in event.s": `unknown param "k"`,
	} {
		e := asError(t, New().Check(Definition{
			Schema: json.RawMessage(`{"properties":{"s":{"type":"string"}}}`),
			Rules:  []Rule{{Name: "r", When: when, Params: map[string]string{"l": "strings"}}},
		}))
		if !strings.Contains(e.Message, want) {
			t.Errorf("%s: got %v", when, e)
		}
	}
}
