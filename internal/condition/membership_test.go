package condition

import (
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

func TestFiltersThatNameSeveralValuesAreFoundByThem(t *testing.T) {
	const n = 300
	for name, c := range map[string]struct {
		filter func(i int) string
		data   string
		want   []fanfare.RowID
	}{
		"one of some values": {
			func(i int) string { return fmt.Sprintf("event.s in ['v%d', 'v%d', 'v%d']", i, i+1, i+1) }, `{"s":"v7"}`, []fanfare.RowID{6, 7},
		},
		"of numbers and texts": {
			func(i int) string { return fmt.Sprintf("event.n in [%d, 'x', %d.5, null]", i, i) }, `{"n":7.5}`, []fanfare.RowID{7},
		},
		"or something else": {
			func(i int) string { return fmt.Sprintf("event.s in ['v%d', 'w'] || event.n == %d", i, i) }, `{"s":"v7","n":9}`, []fanfare.RowID{7, 9},
		},
		"and more": {
			func(i int) string { return fmt.Sprintf("event.s in ['v%d', 'v%d'] && event.n > %d", i, i+1, i) }, `{"s":"v7","n":7}`, []fanfare.RowID{6},
		},
		"a value in the event's list": {
			func(i int) string { return fmt.Sprintf("'v%d' in event.list", i) }, `{"list":["v7",1,"v9"]}`, []fanfare.RowID{7, 9},
		},
		"an element of the event's list": {
			func(i int) string { return fmt.Sprintf("event.list.exists(x, x == 'v%d')", i) }, `{"list":["v7",1,"v9"]}`, []fanfare.RowID{7, 9},
		},
		"a field of one, of some values": {
			func(i int) string { return fmt.Sprintf("event.list.exists(o, o.id in ['v%d', 'v%d'])", i, i+1) }, `{"list":[1,{"id":"v7"},{}]}`, []fanfare.RowID{6, 7},
		},
		"and one side of an or": {
			func(i int) string {
				return fmt.Sprintf("event.list.exists(o, 'v%d' == o.id) || event.s == 'w%d'", i, i)
			}, `{"list":[{"id":"v7"}],"s":"w8"}`, []fanfare.RowID{7, 8},
		},
		"a name in the event's object": {
			func(i int) string { return fmt.Sprintf("'v%d' in event.list", i) }, `{"list":{"v7":null}}`, []fanfare.RowID{7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			if err := x.Define(key, Definition{}); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: c.filter(i)})
			}
			if got := places(t, x, key, c.data); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := candidates(t, x, key, c.data); got > 8 {
				t.Errorf("the event looks at %d rows of %d", got, n)
			}
			if got := places(t, x, key, `{"list":"v7"}`); len(got) > 0 {
				t.Errorf("of a text, no list, and missing fields: %v", got)
			}
		})
	}
}

func TestMembership(t *testing.T) {
	for filter, want := range map[string]bool{
		"event.n in [1, 2.0, 'a']":            true,
		"!(event.n in [1, 3])":                true,
		"event.gone in [1]":                   false,
		"!(event.gone in [1])":                false,
		"event.nil in [null]":                 true,
		"2.0 in event.list":                   true,
		"!('a' in event.list)":                true,
		"[1] in event.list":                   true,
		"event.n in event.list":               true,
		"event.list in [event.list, 5]":       true,
		"event.n in []":                       false,
		"!(event.n in [])":                    true,
		"'x' in event.n":                      false,
		"!('x' in event.n)":                   false,
		"!(5 in event.o)":                     true,
		"'x' in event.o && !('y' in event.o)": true,
		"event.n in event.list.map(x, x)":     true,
		"event.n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]": true,
		"event.n in {2: 'a'}": true,
	} {
		x, key := New(), Key{"s", "t"}
		if err := x.Define(key, Definition{}); err != nil {
			t.Fatal(err)
		}
		const data = `{"n":2,"nil":null,"list":[2,[1],null],"o":{"x":1}}`
		mustAdd(t, x, key, Entry{Place: 7, Filter: filter})
		if got := len(places(t, x, key, data)) == 1; got != want {
			t.Errorf("%s: %v", filter, got)
		}
		if naive := naive(t, x.topics[key].compiled.Load().filterScope, filter, Event{Data: []byte(data)}, nil); naive != want {
			t.Errorf("%s: cel-go says %v", filter, naive)
		}
	}
}
