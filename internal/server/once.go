package server

import "fanfare.dev/fanfare"

// once leaves each member of a batch in one of its slices, that of its latest
// attempt. Work that was put off, and after a restart once more, is due twice; what
// was tried in between is due for its next attempt besides. Where all that is handed
// on together it is one batch, and a member that is named again would wait for its
// own batch to let go of it, for ever.
func once(batch *fanfare.Batch) {
	if len(batch.Slices) < 2 {
		return
	}
	latest, twice := make(map[fanfare.DeliveryRef]int, batch.Members()), false
	for i := range batch.Slices {
		for _, ref := range batch.Slices[i].Refs(batch.Day) {
			before, known := latest[ref]
			twice = twice || known
			if !known || batch.Slices[before].Attempt < batch.Slices[i].Attempt {
				latest[ref] = i
			}
		}
	}
	if !twice {
		return
	}
	var left []fanfare.RecipientRange
	for i := range batch.Slices {
		slice := batch.Slices[i]
		var positions []uint32
		for _, ref := range slice.Refs(batch.Day) {
			if latest[ref] == i {
				positions = append(positions, ref.Position)
			}
		}
		if len(positions) > 0 {
			left = append(left, fanfare.RangeOf(slice.Manifest, slice.Attempt, positions))
		}
	}
	batch.Slices = left
}
