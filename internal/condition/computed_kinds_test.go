package condition

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

// 1 and 1.0 differ in CEL's arithmetic.
func TestIntegersAndDoublesAreDifferentComputedValues(t *testing.T) {
	filters := []string{"event.n + 1 == 3", "event.n + 1.0 == 3.0", "event.n + 1u == 3u", "string(event.n) + '1' == '21'", "size(event.l + [1.0]) == 1", "size(event.l + ['1.0']) == 1"}
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}} {
		x, key := New(), Key{"s", "t"}
		if err := x.Define(key, Definition{}); err != nil {
			t.Fatal(err)
		}
		for _, i := range order {
			mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: filters[i]})
		}
		for data, want := range map[string][]fanfare.RowID{
			`{"n":2}`:   {0, 3},
			`{"n":2.0}`: {1, 3},
			`{"l":[]}`:  {4, 5},
		} {
			if got := places(t, x, key, data); !slices.Equal(got, want) {
				t.Errorf("%s, added as %v: got %v, want %v", data, order, got, want)
			}
		}
	}
}
