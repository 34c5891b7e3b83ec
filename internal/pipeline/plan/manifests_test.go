package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

func place(partition int, local uint32) fanfare.RowID { return fanfare.NewRowID(partition, local) }

func TestPersonIsOneMember(t *testing.T) {
	hits := []fanfare.Hit{
		{Place: place(3, 1), Subscriber: place(3, 7), Channel: 1, Rule: -1},
		{Place: place(3, 2), Subscriber: place(3, 9), Channel: 1, Rule: 1},
		{Place: place(3, 5), Subscriber: place(3, 7), Channel: 1, Rule: 2},
		{Place: place(3, 6), Subscriber: place(3, 7), Channel: 1, Rule: 1},
		{Place: place(3, 8), Subscriber: place(3, 7), Channel: 2, Rule: -1},
	}
	manifests := Manifests(5, hits, &Pins{Topic: 100, Rules: []uint32{0, 201, 202}})
	if len(manifests) != 1 || manifests[0].Members() != 3 {
		t.Fatalf("got %+v, want one manifest of three members", manifests)
	}
	section, member, _ := manifests[0].At(0)
	if section.Template != 201 || !slices.Equal(member.Subscriptions, []fanfare.RowID{place(3, 1), place(3, 5), place(3, 6)}) {
		t.Errorf("first member has template %d and %v, want the topic's first matching rule (201) and all three subscriptions", section.Template, member.Subscriptions)
	}
}

func TestPartitionsOfASmallResultShareAManifest(t *testing.T) {
	var hits []fanfare.Hit
	for p := range fanfare.Partitions {
		n := uint32(2)
		if p >= 32 {
			n = 5000
		}
		for i := range n {
			hits = append(hits, fanfare.Hit{Place: place(p, i), Subscriber: place(p, i), Rule: -1})
		}
	}
	manifests := Manifests(1, hits, &Pins{Topic: 1})
	if got := len(manifests); got != 32 {
		t.Errorf("got %d manifests, want 32: 32 small partitions ride with the first large one, then one each", got)
	}
}

func TestHitIsInExactlyOneMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct {
			subscription fanfare.RowID
			channel      uint16
		}
		want := map[pair]fanfare.RowID{}
		var hits []fanfare.Hit
		n := rapid.IntRange(0, 300).Draw(t, "hits")
		used := map[fanfare.RowID]bool{}
		for range n {
			partition := rapid.IntRange(0, fanfare.Partitions-1).Draw(t, "partition")
			h := fanfare.Hit{
				Place:      place(partition, rapid.Uint32Range(0, 1000).Draw(t, "place")),
				Subscriber: place(partition, rapid.Uint32Range(0, 20).Draw(t, "subscriber")),
				Channel:    rapid.Uint16Range(1, 3).Draw(t, "channel"),
				Rule:       rapid.Int16Range(-1, 2).Draw(t, "rule"),
			}
			if used[h.Place] {
				continue
			}
			used[h.Place] = true
			want[pair{h.Place, h.Channel}] = h.Subscriber
			hits = append(hits, h)
		}
		slices.SortFunc(hits, func(a, b fanfare.Hit) int { return int(int64(a.Place) - int64(b.Place)) })
		each := rapid.Bool().Draw(t, "a member for each subscription")
		manifests := Manifests(9, hits, &Pins{Topic: 7, Rules: []uint32{1, 2, 3}, PerSubscription: each})

		var cutter Batcher
		total := len(hits) // members
		covered := map[int]fanfare.ManifestID{}
		recipients := map[[2]uint64]bool{}
		for i := range manifests {
			m := &manifests[i]
			cutter.Add(1, fanfare.Normal, m)
			for _, s := range m.Sections {
				for member := range s.Members.All() {
					partition := member.Subscriber.Partition()
					if other, ok := covered[partition]; ok && other != m.ID {
						t.Fatalf("partition %d is in manifests %x and %x", partition, other, m.ID)
					}
					covered[partition] = m.ID
					recipient := [2]uint64{uint64(member.Subscriber), uint64(s.Channel)}
					if !each && recipients[recipient] {
						t.Fatalf("recipient %v has two members", recipient)
					}
					if each && len(member.Subscriptions) != 1 {
						t.Fatalf("a member has the subscriptions %v", member.Subscriptions)
					}
					if !slices.ContainsFunc(m.PositionsOf(member.Subscriber), func(p uint32) bool {
						_, found, ok := m.At(p)
						return ok && slices.Equal(found.Subscriptions, member.Subscriptions)
					}) {
						t.Fatalf("member %v is at no position of its subscriber", member)
					}
					recipients[recipient] = true
					for _, subscription := range member.Subscriptions {
						if want[pair{subscription, s.Channel}] != member.Subscriber {
							t.Fatalf("subscription %v went to %v", subscription, member.Subscriber)
						}
						delete(want, pair{subscription, s.Channel})
					}
				}
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d hits are in no member", len(want))
		}
		if !each {
			total = len(recipients)
		}
		for _, batch := range cutter.Batches() {
			if batch.Members() > fanfare.MaxBatch {
				t.Fatalf("batch of %d members", batch.Members())
			}
			total -= batch.Members()
		}
		if total != 0 {
			t.Fatalf("the batches lack %d members", total)
		}
	})
}

func TestDirectRecipientIsAMemberWithoutSubscriptions(t *testing.T) {
	d := &fanfare.Direct{Channel: 3, Template: 9}
	for p := range fanfare.Partitions {
		for i := range uint32(160) {
			d.Recipients = append(d.Recipients, fanfare.Recipient{Subscriber: place(p, i)})
		}
	}
	manifests := DirectManifests(7, d)
	if len(manifests) != 2 {
		t.Errorf("got %d manifests, want 2: whole partitions, of 8192 members at most", len(manifests))
	}
	at := 0
	for _, m := range manifests {
		if m.ID != fanfare.NewManifestID(7, d.Recipients[at].Subscriber.Partition()) {
			t.Errorf("manifest %x begins with partition %d", uint64(m.ID), d.Recipients[at].Subscriber.Partition())
		}
		for position := range uint32(m.Members()) {
			section, member, _ := m.At(position)
			if section.Channel != 3 || section.Template != 9 || member.Subscriber != d.Recipients[at].Subscriber || len(member.Subscriptions) != 0 {
				t.Fatalf("member %d is %+v of channel %d, template %d", at, member, section.Channel, section.Template)
			}
			at++
		}
	}
	if at != len(d.Recipients) {
		t.Errorf("%d members, want %d", at, len(d.Recipients))
	}
}
