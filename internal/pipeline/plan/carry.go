package plan

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// A Run is what something that was gathered waits for.
type Run struct {
	Slot uint16
	Due  time.Time
}

// Carry says to which runs subscriptions go that wait for another.
type Carry map[fanfare.RowID]Run

// Split takes what goes out of a manifest that was gathered.
func (c Carry) Split(m *fanfare.Manifest) (stays fanfare.Manifest, goes []fanfare.Gathered) {
	if !c.any(m) {
		return *m, nil
	}
	var remain []fanfare.Hit
	leave := map[Run][]fanfare.Hit{}
	for hit := range hitsOf(m) {
		if to, goes := c[hit.Place]; goes {
			leave[to] = append(leave[to], hit)
		} else {
			remain = append(remain, hit)
		}
	}
	for to, hits := range leave {
		goes = append(goes, fanfare.Gathered{Slot: to.Slot, Due: to.Due, Manifest: plain(m.ID, hits)})
	}
	slices.SortFunc(goes, func(a, b fanfare.Gathered) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Due.Compare(b.Due)) })
	return plain(m.ID, remain), goes
}

func (c Carry) any(m *fanfare.Manifest) bool {
	for i := range m.Sections {
		for _, place := range m.Sections[i].Members.Subscriptions() {
			if _, goes := c[place]; goes {
				return true
			}
		}
	}
	return false
}

// Join returns what is in either of two manifests of one id.
func (c Carry) Join(a, b *fanfare.Manifest) fanfare.Manifest {
	hits := slices.AppendSeq(slices.Collect(hitsOf(a)), hitsOf(b))
	slices.SortFunc(hits, byRecipient)
	return plain(a.ID, slices.Compact(hits))
}

// plain makes the manifest of an id of hits.
func plain(id fanfare.ManifestID, hits []fanfare.Hit) fanfare.Manifest {
	slices.SortFunc(hits, byRecipient)
	return fanfare.Manifest{ID: id, Sections: sections(hits, &Pins{})}
}

// hitsOf are the hits that a manifest without templates is made of.
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
