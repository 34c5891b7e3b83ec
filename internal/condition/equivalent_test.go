package condition

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// The test needs no judge: two equivalent conditions match the same events, however the index
// stores them.
func TestEquivalentConditionsHaveEqualHits(t *testing.T) {
	const a, b = "%[1]s", "%[2]s"
	same := [][2]string{
		{a + " && " + b, b + " && " + a},
		{a + " || " + b, b + " || " + a},
		{a, "!(!" + a + ")"},
		{a, "(" + a + " && true || false)"},
		{"!(" + a + " && " + b + ")", "!" + a + " || !" + b},
		{"!(" + a + " || " + b + ")", "!" + a + " && !" + b},
		{a + " ? " + b + " : false", a + " && " + b},
		{a + " && " + a, a},
	}
	hits := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		draw := func() string { return "(" + drawFilter(t, w.bare()) + ")" }
		form, one, other := pick(t, same), draw(), draw()
		var entries []Entry
		for i, text := range form {
			e := Entry{Place: fanfare.NewRowID(i, 0), Filter: fmt.Sprintf(text+"%.0[1]s%.0[2]s", one, other)}
			if w.x.CheckFilter(w.key, e.Filter) != nil {
				return
			}
			entries = append(entries, e)
		}
		w.add(t, entries)
		for range 15 {
			event := drawEvent(t)
			got := w.hits(t, w.x, event)
			if hits += len(got); len(got) == 1 {
				t.Fatalf("event %s after %s: %q and %q are not the same: %v", event.Data, event.Previous, entries[0].Filter, entries[1].Filter, got)
			}
		}
	})
	if hits == 0 {
		t.Error("no condition was ever true")
	}
}
