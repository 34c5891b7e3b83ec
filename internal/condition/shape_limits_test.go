package condition

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// An event searches the index of each shape. Existing filters stay, and further filters of their
// shapes are accepted.
func TestATopicLimitsItsShapes(t *testing.T) {
	const few = 100
	for name, kind := range map[string]func(i int) string{
		"single conditions": func(i int) string { return fmt.Sprintf("event.f%d == 'x'", i) },
		"compounds":         func(i int) string { return fmt.Sprintf("event.f%d == 'x' && event.g%d > 1", i, i) },
		"long ones": func(i int) string {
			return strings.Repeat(fmt.Sprintf("event.f%d == 'x' || ", i), 185) + "event.g == 1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			if err := x.Define(key, Definition{}); err != nil {
				t.Fatal(err)
			}
			topic := x.topics[key].filters
			topic.maxShapes, topic.shapeBytes = few, maxShapeBytes-few/2*lang.MaxTextBytes // as if there were more
			n := 0
			for ; n <= few; n++ {
				if _, err := x.FilterCost(key, kind(n)); err != nil {
					if fanfare.CodeOf(err) != fanfare.TooLarge {
						t.Fatal(err)
					}
					break
				}
				mustAdd(t, x, key, Entry{Place: fanfare.RowID(n), Filter: kind(n)})
			}
			if n > few || n < few/2 {
				t.Fatalf("%d kinds were taken", n)
			}
			other := strings.ReplaceAll(kind(0), "'x'", "'y'")
			if _, err := x.FilterCost(key, other); err != nil {
				t.Errorf("another filter of a kind that is there: %v", err)
			}
			mustAdd(t, x, key, Entry{Place: fanfare.RowID(n), Filter: kind(n)}) // as at start: it was taken once
			if _, err := x.FilterCost(key, kind(n)); err != nil {
				t.Errorf("a filter that is there: %v", err)
			}
			for i := range n + 1 {
				x.Remove(key, fanfare.RowID(i))
			}
			if left := topic.shapeBytes - (maxShapeBytes - few/2*lang.MaxTextBytes); topic.shapeCount() != 0 || left != 0 {
				t.Errorf("%d kinds of %d bytes are left", topic.shapeCount(), left)
			}
			if _, err := x.FilterCost(key, kind(n)); err != nil {
				t.Errorf("a filter after others of the same number were removed: %v", err)
			}
		})
	}
}
