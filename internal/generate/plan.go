// Package generate turns the hits of an event into manifests and cuts manifests
// into batches. It is pure: the same hits and the same pins give the same
// manifests, and a manifest is always cut at the same places, so that a rerun
// publishes the batches it published before.
package generate

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

// wanted is a hit on its way into a member.
type wanted struct {
	subscriber   fanfare.Place
	subscription fanfare.Place
	channel      uint16
	rule         int16
}

// Manifests groups the hits of one event by recipient: one member for each
// (subscriber, channel), naming all subscriptions that matched, with the
// template of the first of the topic's rules among them. Hits are sorted by
// place. Each partition with members is in exactly one manifest.
func Manifests(seq fanfare.EventSeq, hits []fanfare.Hit, pins *Pins) []fanfare.Manifest {
	list := make([]wanted, len(hits))
	for i, h := range hits {
		list[i] = wanted{h.Subscriber, h.Place, h.Channel, h.Rule}
	}
	byRecipient := func(a, b wanted) int {
		return cmp.Or(cmp.Compare(a.subscriber, b.subscriber), cmp.Compare(a.channel, b.channel), cmp.Compare(a.subscription, b.subscription))
	}
	if !slices.IsSortedFunc(list, byRecipient) {
		slices.SortFunc(list, byRecipient)
	}
	var manifests []fanfare.Manifest
	for len(list) > 0 {
		run := runOf(list)
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(seq, list[0].subscriber.Partition()),
			Sections: sections(list[:run], pins),
		})
		list = list[run:]
	}
	return manifests
}

// runOf is how many of the hits the next manifest covers: whole partitions, as
// many as stay within maxManifest, at least one.
func runOf(list []wanted) int {
	end := 0
	for end < len(list) {
		partition := list[end].subscriber.Partition()
		next := end + partitionEnd(list[end:], partition)
		if end > 0 && next > maxManifest {
			return end
		}
		end = next
	}
	return end
}

func partitionEnd(list []wanted, partition int) int {
	n, _ := slices.BinarySearchFunc(list, partition+1, func(w wanted, p int) int { return w.subscriber.Partition() - p })
	return n
}

// sections makes the members of a run of hits and sorts them by section.
func sections(list []wanted, pins *Pins) []fanfare.Section {
	type key struct {
		channel  uint16
		template uint32
	}
	var sections []fanfare.Section
	at := map[key]int{}
	last, lastAt := key{}, -1
	places := make([]fanfare.Place, 0, len(list))
	for len(list) > 0 {
		first := list[0]
		start := len(places)
		best := int16(-1)
		n := 0
		for n < len(list) && list[n].subscriber == first.subscriber && list[n].channel == first.channel {
			places = append(places, list[n].subscription)
			if rule := list[n].rule; rule >= 0 && (best < 0 || rule < best) {
				best = rule
			}
			n++
		}
		k := key{first.channel, pins.of(best)}
		if lastAt < 0 || k != last {
			i, ok := at[k]
			if !ok {
				i = len(sections)
				at[k] = i
				sections = append(sections, fanfare.Section{Channel: k.channel, Template: k.template})
				if i == 0 { // mostly the only one: growing it would leave as much again behind
					sections[i].Members = make([]fanfare.Member, 0, len(list))
				}
			}
			last, lastAt = k, i
		}
		sections[lastAt].Members = append(sections[lastAt].Members,
			fanfare.Member{Subscriber: first.subscriber, Subscriptions: places[start:len(places):len(places)]})
		list = list[n:]
	}
	return sections
}
