package condition

import (
	"testing"

	"fanfare.dev/fanfare"
)

func TestSlotsTakeNoMemoryIfAllAreDueAtOnce(t *testing.T) {
	x := New()
	key := Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	first, far := fanfare.NewRowID(0, 1), fanfare.NewRowID(0, 2*rowsPerPage)
	add := func(p fanfare.RowID, slot uint16) {
		t.Helper()
		if err := x.Add(key, []Entry{{Place: p, Slot: slot}}); err != nil {
			t.Fatal(err)
		}
	}
	add(first, 0)
	add(far, 3)
	if x.columns.slots(first) != nil || x.columns.slots(far) == nil {
		t.Fatal("the page with a slot is to have slots, and it alone")
	}
	add(first, 7) // as a change of its cadence
	add(far, 0)
	hits, err := x.Match(key, Event{}, nil)
	if err != nil || len(hits) != 2 || hits[0].Slot != 7 || hits[1].Slot != 0 {
		t.Fatalf("after the changes: %+v, %v; want slots 7 and 0", hits, err)
	}
	x.Remove(key, far)
	if x.columns.entry(far).slots.Load() != nil {
		t.Fatal("slots of an empty page are still kept")
	}
}
