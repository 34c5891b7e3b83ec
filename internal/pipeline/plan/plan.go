// Package generate turns the hits of an event into manifests and cuts manifests
// into batches. It is pure: the same hits and the same pins give the same
// manifests, and a manifest is always cut at the same places, so that a rerun
// publishes the batches it published before.
package plan

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// Pins are the template versions that an event's messages are pinned to.
type Pins struct {
	Topic uint32   // for own filters, and for rules without a template
	Rules []uint32 // by position in the topic's order; 0 takes the topic's
}

// of returns the template for the best rule that matched; -1 is none.
func (p *Pins) of(rule int16) uint32 {
	if rule >= 0 && int(rule) < len(p.Rules) && p.Rules[rule] != 0 {
		return p.Rules[rule]
	}
	return p.Topic
}

// maxManifest is where a manifest that covers several partitions ends: the next
// partition begins a new one. A single partition may go beyond.
const maxManifest = 8192

// Manifests groups the hits of one event by recipient: one member for each
// (subscriber, channel), naming all subscriptions that matched, with the
// template of the first of the topic's rules among them. It sorts the hits. Each
// partition with members is in exactly one manifest.
func Manifests(seq fanfare.EventSeq, hits []fanfare.Hit, pins *Pins) []fanfare.Manifest {
	if !slices.IsSortedFunc(hits, byRecipient) {
		slices.SortFunc(hits, byRecipient)
	}
	var manifests []fanfare.Manifest
	for len(hits) > 0 {
		run := runOf(hits, func(h fanfare.Hit) fanfare.RowID { return h.Subscriber })
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

// runOf is how many of a list, sorted by subscriber, the next manifest covers:
// whole partitions, as many as stay within maxManifest, at least one.
func runOf[T any](list []T, subscriber func(T) fanfare.RowID) int {
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

// sections makes the members of a run of hits and sorts them by section.
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
		}
		k := key{first.Channel, pins.of(best)}
		if lastAt < 0 || k != last {
			i, ok := at[k]
			if !ok {
				i = len(sections)
				at[k] = i
				sections = append(sections, fanfare.Section{Channel: k.channel, Template: k.template})
				if i == 0 { // mostly the only one: growing it would leave as much again behind
					sections[i].Members.Grow(len(hits)+1, len(hits)+len(places))
				}
			}
			last, lastAt = k, i
		}
		sections[lastAt].Members.Add(first.Subscriber, places...)
	}
	return sections
}
