// Package plan groups the hits of an event into manifests, and cuts manifests into batches. It
// also merges the events that wait for a digest. Matching, digests, the release of due work and
// recovery call it.
//
// It has no state and does no I/O: the same hits and pins give the same manifests, and a manifest
// is always cut at the same positions. A repeated run therefore publishes the same batches.
package plan

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// Pins are the template versions of an event's messages.
type Pins struct {
	Topic uint32   // for filters, and for rules without a template
	Rules []uint32 // in the topic's order of rules; 0: the topic's template

	PerSubscription bool // a member for each subscription
}

// of returns the template for the first rule that matched; -1 means none.
func (p *Pins) of(rule int16) uint32 {
	if rule >= 0 && int(rule) < len(p.Rules) && p.Rules[rule] != 0 {
		return p.Rules[rule]
	}
	return p.Topic
}

// maxManifest is the number of hits after which the next partition begins a new manifest. A
// single partition may have more.
const maxManifest = 8192

// Manifests groups the hits of one event by recipient: one member for each (subscriber, channel),
// with all subscriptions that matched and the template of the first rule among them, in the
// topic's order of rules; or one member for each subscription. It sorts the hits. Each partition with members is in exactly one
// manifest.
func Manifests(seq fanfare.EventSeq, hits []fanfare.Hit, pins *Pins) []fanfare.Manifest {
	if !slices.IsSortedFunc(hits, byRecipient) {
		slices.SortFunc(hits, byRecipient)
	}
	var manifests []fanfare.Manifest
	for len(hits) > 0 {
		run := manifestLen(hits, func(h fanfare.Hit) fanfare.RowID { return h.Subscriber })
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(seq, hits[0].Subscriber.Partition()),
			Sections: sections(hits[:run], pins),
		})
		hits = hits[run:]
	}
	return manifests
}

func byRecipient(a, b fanfare.Hit) int {
	return cmp.Or(cmp.Compare(a.Subscriber, b.Subscriber), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Place, b.Place))
}

// manifestLen returns the length of the next manifest in a list that is sorted by subscriber: as
// many whole partitions as fit in maxManifest, at least one.
func manifestLen[T any](list []T, subscriber func(T) fanfare.RowID) int {
	end := 0
	for end < len(list) {
		partition := subscriber(list[end]).Partition()
		n, _ := slices.BinarySearchFunc(list[end:], partition+1, func(t T, p int) int { return subscriber(t).Partition() - p })
		next := end + n
		if end > 0 && next > maxManifest {
			return end
		}
		end = next
	}
	return end
}

// sections groups the hits of a manifest into sections of members.
func sections(hits []fanfare.Hit, pins *Pins) []fanfare.Section {
	type key struct {
		channel  uint16
		template uint32
	}
	var sections []fanfare.Section
	at := map[key]int{}
	last, lastAt := key{}, -1
	var places []fanfare.RowID
	for len(hits) > 0 {
		first := hits[0]
		places = places[:0]
		best := int16(-1)
		for len(hits) > 0 && hits[0].Subscriber == first.Subscriber && hits[0].Channel == first.Channel {
			places = append(places, hits[0].Place)
			if rule := hits[0].Rule; rule >= 0 && (best < 0 || rule < best) {
				best = rule
			}
			hits = hits[1:]
			if pins.PerSubscription {
				break
			}
		}
		k := key{first.Channel, pins.of(best)}
		if lastAt < 0 || k != last {
			i, ok := at[k]
			if !ok {
				i = len(sections)
				at[k] = i
				sections = append(sections, fanfare.Section{Channel: k.channel, Template: k.template})
				if i == 0 { // mostly the only section: reserve its memory at once
					sections[i].Members.Grow(len(hits)+1, len(hits)+len(places))
				}
			}
			last, lastAt = k, i
		}
		sections[lastAt].Members.Add(first.Subscriber, places...)
	}
	return sections
}

// DirectManifests returns the manifests of a direct send: a member for each recipient, without
// subscriptions. Each partition with members is in exactly one manifest.
func DirectManifests(seq fanfare.EventSeq, d *fanfare.Direct) []fanfare.Manifest {
	var manifests []fanfare.Manifest
	for list := d.Recipients; len(list) > 0; {
		run := manifestLen(list, func(r fanfare.Recipient) fanfare.RowID { return r.Subscriber })
		section := fanfare.Section{Channel: d.Channel, Template: d.Template}
		section.Members.Grow(run, 0)
		for i := range list[:run] {
			section.Members.Add(list[i].Subscriber)
		}
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(seq, list[0].Subscriber.Partition()),
			Sections: []fanfare.Section{section},
		})
		list = list[run:]
	}
	return manifests
}

// SplitDigests splits the hits of an event into immediate hits, whose memory is that of hits, and
// the manifests of recipients who wait for a digest, by slot and without templates. due returns
// when the next run of a slot is. Hits of a slot without a run are dropped.
func SplitDigests(seq fanfare.EventSeq, hits []fanfare.Hit, due func(slot uint16) (time.Time, bool)) (immediate []fanfare.Hit, later []fanfare.Gathered) {
	first := slices.IndexFunc(hits, func(h fanfare.Hit) bool { return h.Slot != 0 })
	if first < 0 {
		return hits, nil
	}
	immediate = hits[:first]
	waiting := make([]fanfare.Hit, 0, len(hits)-first)
	for _, h := range hits[first:] {
		if h.Slot == 0 {
			immediate = append(immediate, h)
		} else {
			waiting = append(waiting, h)
		}
	}
	bySlot := func(a, b fanfare.Hit) int { return cmp.Compare(a.Slot, b.Slot) }
	if !slices.IsSortedFunc(waiting, bySlot) {
		slices.SortStableFunc(waiting, bySlot) // mostly they are sorted by subscriber
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
	return immediate, later
}
