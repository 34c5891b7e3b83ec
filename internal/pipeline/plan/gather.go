package plan

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// Gather takes the hits that are not to be told at once out of the hits of an
// event, and returns those that are, and who gets the event later: manifests by
// slot, without templates. due says when the next run of a slot is; a slot that has
// none is left out. The hits that are returned are a part of those that were given.
func Gather(seq fanfare.EventSeq, hits []fanfare.Hit, due func(slot uint16) (time.Time, bool)) (now []fanfare.Hit, later []fanfare.Gathered) {
	first := slices.IndexFunc(hits, func(h fanfare.Hit) bool { return h.Slot != 0 })
	if first < 0 {
		return hits, nil
	}
	now = hits[:first]
	waiting := make([]fanfare.Hit, 0, len(hits)-first)
	for _, h := range hits[first:] {
		if h.Slot == 0 {
			now = append(now, h)
		} else {
			waiting = append(waiting, h)
		}
	}
	bySlot := func(a, b fanfare.Hit) int { return cmp.Compare(a.Slot, b.Slot) }
	if !slices.IsSortedFunc(waiting, bySlot) {
		slices.SortStableFunc(waiting, bySlot) // they are mostly in the order of their subscribers
	}
	for len(waiting) > 0 {
		slot := waiting[0].Slot
		n, _ := slices.BinarySearchFunc(waiting, int(slot)+1, func(h fanfare.Hit, s int) int { return int(h.Slot) - s })
		if at, runs := due(slot); runs {
			for _, m := range Manifests(seq, waiting[:n], &Pins{}) {
				later = append(later, fanfare.Gathered{Slot: slot, Due: at, Manifest: m})
			}
		}
		waiting = waiting[n:]
	}
	return now, later
}
