package condition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The test puts a row on each guard of its plan in turn, not only on the rarest: whenever cel-go
// finds the condition true, the guard must lead the event to the row.
func TestEveryGuardFindsTrueConditions(t *testing.T) {
	several, fired := 0, 0
	for tries := 0; fired == 0; tries++ { // one condition in twenty has several guards, and few of those are true
		if tries == 30 {
			t.Fatalf("%d conditions had several guards, and none fired", several)
		}
		rapid.Check(t, func(t *rapid.T) {
			for range 8 {
				guards, hits := everyGuard(t)
				if fired += hits; guards > 1 {
					several++
				}
			}
		})
	}
}

// everyGuard draws a condition and tests each of its guards with several events. hits counts the
// true results.
func everyGuard(t *rapid.T) (guards, hits int) {
	w := newWorld(t)
	entry := w.drawEntry(t, scale{locals: 2, of: []entryKind{filterEntry, ruleEntry, ruleEntry, ruleEntry}})
	w.add(t, []Entry{entry})
	tp := w.x.topics[w.key]
	tb, row := entryRow(tp, entry)
	if tb == nil || len(tb.plan.guards) < 2 {
		return 0, 0
	}
	events := make([]Event, 20)
	for i := range events {
		events[i] = drawEvent(t)
	}
	ix := &rowIndexer{pages: tb.store, texts: tp.texts}
	for number, paths := range tb.plan.guards {
		tb.plan.remove(ix, row)
		tb.store.page(row).setGuard(row, uint8(number))
		for _, one := range paths {
			ix.insert(one, row)
		}
		for _, event := range events {
			want, got := w.naive(t, event), w.hits(t, w.x, event)
			if hits += len(want); !slices.Equal(got, want) {
				t.Fatalf("event %s after %s: guard %d of %q, params %s\n%s", event.Data, event.Previous, number, tb.name, entry.Params, w.difference(got, want))
			}
		}
	}
	return len(tb.plan.guards), hits
}

// entryRow returns the row of an entry, if it has one.
func entryRow(t *topic, e Entry) (*table, uint32) {
	if e.Rule == "" {
		fl := t.filters.byText[e.Filter]
		return fl.table, fl.row
	}
	row := uint32(t.columns.page(e.Place).conditions[e.Place.Local()&pageMask] &^ rowRefFlag)
	return t.pages.page(row).table, row
}
