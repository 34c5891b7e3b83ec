package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// drawHits draws hits of some people, each subscription with one slot.
func drawHits(t *rapid.T, slots int) (hits []fanfare.Hit) {
	for n := range rapid.IntRange(0, 40).Draw(t, "subscriptions") {
		partition := rapid.SampledFrom([]int{0, 1, 40, 63}).Draw(t, "partition")
		hits = append(hits, fanfare.Hit{
			Place: place(partition, uint32(n)), Subscriber: place(partition, uint32(rapid.IntRange(0, 9).Draw(t, "subscriber"))),
			Channel: uint16(rapid.IntRange(1, 2).Draw(t, "channel")), Rule: -1, Slot: uint16(rapid.IntRange(0, slots).Draw(t, "slot")),
		})
	}
	slices.SortFunc(hits, byRecipient)
	return hits
}

func TestSplitDigestsSplitsHitsBySlot(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		hits := drawHits(t, 3)
		want := slices.Clone(hits)
		now, later := SplitDigests(7, hits, func(slot uint16) (time.Time, bool) {
			return start.Add(time.Duration(slot) * time.Hour), slot != 3 // of 3 nothing is kept
		})
		got := slices.Clone(now)
		for _, h := range now {
			if h.Slot != 0 {
				t.Fatalf("slot %d is told at once", h.Slot)
			}
		}
		for _, g := range later {
			if g.Slot == 3 || !g.Due.Equal(start.Add(time.Duration(g.Slot)*time.Hour)) || g.Manifest.ID.Event() != 7 {
				t.Fatalf("gathered %+v", g)
			}
			for hit := range hitsOf(&g.Manifest) {
				hit.Slot = g.Slot
				got = append(got, hit)
			}
		}
		want = slices.DeleteFunc(want, func(h fanfare.Hit) bool { return h.Slot == 3 })
		slices.SortFunc(want, byRecipient)
		slices.SortFunc(got, byRecipient)
		if !slices.Equal(got, want) {
			t.Fatalf("gathered %v of %v", got, want)
		}
	})
}

func TestRescheduledRecipientsAreInOneManifest(t *testing.T) {
	to := Run{5, time.Unix(1_800_000_000, 0)}
	rapid.Check(t, func(t *rapid.T) {
		m := withoutTemplates(fanfare.NewManifestID(1, 0), drawHits(t, 0))
		carry := Reschedule{}
		var stay, leave []fanfare.Hit
		for _, hit := range hitsIn(&m) {
			if rapid.Bool().Draw(t, "goes") {
				carry[hit.Place] = to
				leave = append(leave, hit)
			} else {
				stay = append(stay, hit)
			}
		}
		stays, goes := carry.Split(&m)
		if got := hitsIn(&stays); !slices.Equal(got, stay) {
			t.Fatalf("%v stay, want %v", got, stay)
		}
		if len(leave) == 0 {
			if len(goes) != 0 {
				t.Fatalf("%v go", goes)
			}
			return
		}
		if got := hitsIn(&goes[0].Manifest); len(goes) != 1 || !slices.Equal(got, leave) || goes[0].Slot != to.Slot || !goes[0].Due.Equal(to.Due) {
			t.Fatalf("%v go, want %v", goes, leave)
		}
		whole := carry.Join(&stays, &goes[0].Manifest)
		if again := carry.Join(&whole, &goes[0].Manifest); shown(&again) != shown(&m) {
			t.Fatalf("joined again: %s, want %s", shown(&again), shown(&m))
		}
	})
}

func hitsIn(m *fanfare.Manifest) []fanfare.Hit { return slices.SortedFunc(hitsOf(m), byRecipient) }

// shown writes out the members of a manifest.
func shown(m *fanfare.Manifest) (text string) {
	for i := range m.Sections {
		for member := range m.Sections[i].Members.All() {
			text += fmt.Sprintln(m.Sections[i].Channel, m.Sections[i].Template, member)
		}
	}
	return text
}

// TestMergeTakesTheNewestEvents compares with a simple implementation: of each person, channel and
// template all events of active subscriptions, of each key the newest, and of each topic the
// newest ones.
func TestMergeTakesTheNewestEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics := rapid.SliceOfN(rapid.IntRange(1, 4), 3, 3).Draw(t, "max")
		d := DigestMerger{Max: topics, Live: func(p fanfare.RowID) bool { return p.Local()%7 != 3 }}
		type recipient struct {
			subscriber fanfare.RowID
			channel    uint16
			template   uint32
		}
		wanted := map[recipient]map[int][]fanfare.RowID{}
		var events [][]fanfare.Hit
		for n := range rapid.IntRange(1, 8).Draw(t, "events") {
			topic := rapid.IntRange(0, 2).Draw(t, "topic")
			d.Sources = append(d.Sources, SourceEvent{Topic: topic, Template: uint32(100 + topic/2), Version: rapid.IntRange(0, 2).Draw(t, "thing"),
				Bytes: rapid.SampledFrom([]int{0, 1, MaxMessageEventBytes / 2, MaxMessageEventBytes}).Draw(t, "bytes")})
			if v := &d.Sources[n].Version; *v > 0 {
				*v += 2 * topic // a thing has one topic
			}
			events = append(events, drawHits(t, 0))
			for _, h := range events[n] {
				if !d.Live(h.Place) {
					continue
				}
				to := recipient{h.Subscriber, h.Channel, d.Sources[n].Template}
				if wanted[to] == nil {
					wanted[to] = map[int][]fanfare.RowID{}
				}
				wanted[to][n] = append(wanted[to][n], h.Place)
			}
		}
		want := map[recipient]string{}
		used := map[uint32]bool{}
		for to, of := range wanted {
			var items []fanfare.Item
			more := 0
			things, told, bytes := map[int]bool{}, map[int]int{}, 0
			for _, n := range slices.Backward(slices.Sorted(maps.Keys(of))) {
				s := d.Sources[n]
				if s.Version > 0 && things[s.Version] {
					continue
				}
				things[s.Version] = true
				if bytes+s.Bytes > MaxMessageEventBytes {
					bytes = math.MaxInt / 2 // earlier events do not fit either
				}
				if told[s.Topic]++; told[s.Topic] > topics[s.Topic] || bytes > MaxMessageEventBytes {
					more++
					continue
				}
				bytes += s.Bytes
				used[uint32(n)] = true
				slices.Sort(of[n])
				for _, p := range slices.Backward(of[n]) {
					items = append(items, fanfare.Item{Number: uint32(n), Subscription: p})
				}
			}
			slices.Reverse(items)
			want[to] = fmt.Sprint(items, more)
		}
		got := map[recipient]string{}
		cut := rapid.IntRange(0, fanfare.Partitions).Draw(t, "cut")
		seen := map[fanfare.ManifestID]bool{}
		for _, pass := range [][2]int{{0, cut}, {cut, fanfare.Partitions}} {
			for n := range events {
				for _, m := range Manifests(fanfare.EventSeq(n+1), events[n], &Pins{}) {
					d.Add(uint32(n), &m, pass[0], pass[1])
					d.Add(uint32(n), &m, pass[0], pass[1]) // what is there twice counts once
				}
			}
			for _, m := range d.Manifests(9) {
				if seen[m.ID] {
					t.Fatalf("two manifests %x", uint64(m.ID))
				}
				seen[m.ID] = true
				for i := range m.Sections {
					for member := range m.Sections[i].Members.All() {
						to := recipient{member.Subscriber, m.Sections[i].Channel, m.Sections[i].Template}
						if got[to] != "" {
							t.Fatalf("%v twice", to)
						}
						got[to] = fmt.Sprint(member.Items, member.More)
						for _, item := range member.Items {
							if !slices.Contains(member.Subscriptions, item.Subscription) {
								t.Fatalf("%v of %v", item, member)
							}
						}
					}
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("told\n%v, want\n%v", got, want)
		}
		if numbers := slices.Sorted(maps.Keys(used)); !slices.Equal(d.Used(), numbers) {
			t.Fatalf("used %v, want %v", d.Used(), numbers)
		}
	})
}

// BenchmarkADigestOfAMillion merges five events that a million people wait for.
func BenchmarkADigestOfAMillion(b *testing.B) {
	const people, events = 1_000_000, 5
	hits := make([]fanfare.Hit, people)
	for i := range hits {
		p := place(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
		hits[i] = fanfare.Hit{Place: p, Subscriber: p, Channel: 1, Rule: -1, Slot: 1}
	}
	slices.SortFunc(hits, byRecipient)
	var rows [events][][]byte
	for n := range rows {
		for _, m := range Manifests(fanfare.EventSeq(n), hits, &Pins{}) {
			blob, err := m.AppendBinary(nil)
			if err != nil {
				b.Fatal(err)
			}
			rows[n] = append(rows[n], blob)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d := DigestMerger{Sources: make([]SourceEvent, events), Max: []int{50}, Live: func(fanfare.RowID) bool { return true }}
		members := 0
		for _, pass := range [][2]int{{0, 32}, {32, 64}} {
			for n := range rows {
				for _, blob := range rows[n] {
					var m fanfare.Manifest
					if err := m.UnmarshalBinary(blob); err != nil {
						b.Fatal(err)
					}
					d.Add(uint32(n), &m, pass[0], pass[1])
				}
			}
			for _, m := range d.Manifests(9) {
				members += m.Members()
			}
		}
		if members != people {
			b.Fatal(members)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/people/events, "ns/item")
}
