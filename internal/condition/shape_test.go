package condition

import (
	"encoding/json"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
)

func TestFiltersThatDifferInLiteralsShareAShape(t *testing.T) {
	for name, c := range map[string]struct {
		filters []string
		forms   int // and terms
	}{
		"texts":                  {[]string{`event.s == 'a'`, `event.s == "b"`, `event.s=='ü'`, `event.s == ''`}, 1},
		"numbers of either kind": {[]string{`event.n > 1`, `event.n > -2`, `event.n > 2.5`, `event.n > 1e3`}, 2},
		"texts beyond ASCII before others": {[]string{
			`event.s == 'zażółć' && event.n < 3`, `event.s == 'x' && event.n < 4`,
		}, 2},
		"large integers stay":        {[]string{`event.n == 9007199254740992`, `event.n == 9007199254740993`, `event.n == 7`}, 3},
		"unsigned and hex stay":      {[]string{`event.n == 2u`, `event.n == 3u`, `event.n == 0x10`, `event.n == 0x11`}, 4},
		"escapes stay":               {[]string{`event.s == 'a\n'`, `event.s == 'b\n'`}, 2},
		"raw and long texts stay":    {[]string{`event.s == r'a'`, `event.s == r'b'`, `event.s == '''a'''`}, 3},
		"comments stay":              {[]string{"event.n > 1 // one", "event.n > 2 // two"}, 2},
		"a pattern stays":            {[]string{`event.s.matches('^a')`, `event.s.matches('^b')`}, 2},
		"what arithmetic takes":      {[]string{`event.n + 1 > 2`, `event.n + 2 > 2`, `event.n - 1 > 2`, `event.n -1 > 2`}, 3},
		"fields in backticks":        {[]string{"event.`a-b` == 'x'", "event.`a-b` == 'y'", "event.`a-c` == 'y'", "event.`n` -1 == 2"}, 3},
		"fields in brackets":         {[]string{`event['a'] == 'x'`, `event['a'] == 'y'`, `event['b'] == 'x'`, `'x' == event["b"]`}, 3},
		"an index stays":             {[]string{`event.list[0] == 'a'`, `event.list[1] == 'a'`}, 2},
		"what is inside a macro":     {[]string{`event.list.all(x, x == 'a')`, `event.list.all(x, x == 'b')`, `event.list.exists(x, 'a' == x + x)`, `event.list.exists(x, 'b' == x + x)`}, 4},
		"what a list has in it":      {[]string{`event.list.exists(x, x == 'a')`, `event.list.exists(x, x == "b")`}, 1},
		"what of a list of others":   {[]string{`event.list.exists(x, x.s in ['a'])`, `event.list.exists(x, x.s in ['b', 'c'])`}, 1},
		"a name that is the event's": {[]string{`event.list.exists(event, event == 'a')`, `event.list.exists(event, event == 'b')`}, 2},
		"a list of texts":            {[]string{`event.s in ['a']`, `event.s in [ "b" , 'c' ]`, `event.s in ['a','b']`}, 1},
		"another list stays":         {[]string{`event.n in [1]`, `event.n in [1, 2]`, `event.s in []`, `event.s in ['a\n']`, `event.s in ['a', 1]`}, 5},
		"some of several":            {[]string{`event.s.matches('^a') || event.n > 1`, `event.s.matches('^a') || event.n > 2`}, 1},
		"other words, other forms":   {[]string{`event.n > 1`, `event.n >= 1`, `event.m > 1`}, 3},
		"not one of another's parts": {[]string{`event.s == 'a b'`, `event.s == 'a' && event.s == 'b'`}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			if err := x.Define(key, Definition{}); err != nil {
				t.Fatal(err)
			}
			for i, text := range c.filters {
				mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: text})
			}
			if got := x.topics[key].filters.shapeCount(); got != c.forms {
				t.Errorf("%d forms, want %d", got, c.forms)
			}
			for i := range c.filters {
				x.Remove(key, fanfare.RowID(i))
			}
			if f := x.topics[key].filters; f.shapeCount()+len(f.shapesByKey)+len(f.byText)+len(f.conjunctShapes.byKey)+len(f.conjunctShapes.guards.byKey) > 0 || len(x.topics[key].texts.Numbers) > 0 {
				t.Error("forms are kept after the last of their filters")
			}
		})
	}
}

// Only the first filter of a shape is compiled, so the others need their own check.
func TestAFilterOfAKnownShapeIsChecked(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"event.n > 2.5", "event.n > 1e3", "event.n in [1, 2.5]"} {
		if err := x.CheckFilter(key, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"event.n > 1.", "event.n > 1.e3", "event.n > 1e", "event.n > 1.5.5", "event.n in [0, 00.]"} {
		if x.CheckFilter(key, text) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestEachFilterOfAShapeHasItsOwnLiterals(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	const n = 300
	add := func() {
		for i := range n {
			mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: fmt.Sprintf(`contains_ci(event.s, 'town %d of') && event.n >= %d || event.m == %d.5`, i, i%7, i)})
		}
	}
	check := func(when string) {
		t.Helper()
		for _, i := range []int{0, 1, 33, 299} {
			for event, want := range map[string]int{
				fmt.Sprintf(`{"s":"near TOWN %d of X","n":7}`, i):         1,
				fmt.Sprintf(`{"s":"near TOWN %d of X","n":%d}`, i, i%7-1): 0,
				fmt.Sprintf(`{"m":%d.5}`, i):                              1,
				fmt.Sprintf(`{"m":%d}`, i):                                0,
			} {
				got := places(t, x, key, event)
				if len(got) != want || want == 1 && got[0] != fanfare.RowID(i) {
					t.Errorf("%s: %s leads to %v, want %d hits of %d", when, event, got, want, i)
				}
			}
		}
	}
	add()
	check("added")
	if err := x.Define(key, Definition{Schema: json.RawMessage(`{"properties":{"s":{"type":"string"},"n":{"type":"number"},"m":{"type":"number"}}}`)}); err != nil {
		t.Fatal(err)
	}
	check("under a schema")
	for i := range n {
		x.Remove(key, fanfare.RowID(i))
	}
	add()
	check("added again")
}
