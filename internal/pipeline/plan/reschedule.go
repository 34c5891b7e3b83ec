package plan

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// A Run is the digest for which events wait.
type Run struct {
	Slot uint16
	Due  time.Time
}

// Reschedule contains the new runs of subscriptions whose cadence has changed.
type Reschedule map[fanfare.RowID]Run

// Split splits a manifest of waiting recipients into those who stay and those who move to another
// run.
func (r Reschedule) Split(m *fanfare.Manifest) (stay fanfare.Manifest, moved []fanfare.Gathered) {
	if !r.any(m) {
		return *m, nil
	}
	var rest []fanfare.Hit
	moving := map[Run][]fanfare.Hit{}
	for hit := range hitsOf(m) {
		if to, moves := r[hit.Place]; moves {
			moving[to] = append(moving[to], hit)
		} else {
			rest = append(rest, hit)
		}
	}
	for to, hits := range moving {
		moved = append(moved, fanfare.Gathered{Slot: to.Slot, Due: to.Due, Manifest: withoutTemplates(m.ID, hits)})
	}
	slices.SortFunc(moved, func(a, b fanfare.Gathered) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Due.Compare(b.Due)) })
	return withoutTemplates(m.ID, rest), moved
}

func (r Reschedule) any(m *fanfare.Manifest) bool {
	for i := range m.Sections {
		for _, place := range m.Sections[i].Members.Subscriptions() {
			if _, moves := r[place]; moves {
				return true
			}
		}
	}
	return false
}

// Join returns the union of two manifests with the same id.
func (r Reschedule) Join(a, b *fanfare.Manifest) fanfare.Manifest {
	hits := slices.AppendSeq(slices.Collect(hitsOf(a)), hitsOf(b))
	slices.SortFunc(hits, byRecipient)
	return withoutTemplates(a.ID, slices.Compact(hits))
}

// withoutTemplates returns the manifest of some hits.
func withoutTemplates(id fanfare.ManifestID, hits []fanfare.Hit) fanfare.Manifest {
	slices.SortFunc(hits, byRecipient)
	return fanfare.Manifest{ID: id, Sections: sections(hits, &Pins{})}
}

// hitsOf visits the hits of a manifest without templates.
func hitsOf(m *fanfare.Manifest) iter.Seq[fanfare.Hit] {
	return func(yield func(fanfare.Hit) bool) {
		for i := range m.Sections {
			for member := range m.Sections[i].Members.All() {
				for _, place := range member.Subscriptions {
					if !yield(fanfare.Hit{Place: place, Subscriber: member.Subscriber, Channel: m.Sections[i].Channel, Rule: -1}) {
						return
					}
				}
			}
		}
	}
}
