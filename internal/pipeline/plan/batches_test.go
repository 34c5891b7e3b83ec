package plan

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// audienceOf makes the manifests of a direct send of n, spread over partitions.
func audienceOf(seq fanfare.EventSeq, channel uint16, n int) []fanfare.Manifest {
	d := &fanfare.Direct{Channel: channel}
	for i := range n {
		d.Recipients = append(d.Recipients, fanfare.Recipient{Subscriber: place(i*fanfare.Partitions/n, uint32(i))})
	}
	return DirectManifests(seq, d)
}

func TestSmallEventsShareBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type of struct {
			channel uint16
			event   fanfare.EventSeq
		}
		want, got := map[of]int{}, map[of]int{}
		var cutter Batcher
		for seq := range fanfare.EventSeq(rapid.IntRange(1, 12).Draw(t, "events")) {
			n := rapid.SampledFrom([]int{1, 2, MinOwnBatch - 1, MinOwnBatch, 1000, 1001, 2500}).Draw(t, "members")
			channel := rapid.Uint16Range(1, 2).Draw(t, "channel")
			manifests := audienceOf(seq, channel, n)
			for i := range manifests {
				cutter.Add(7, fanfare.Bulk, &manifests[i])
			}
			want[of{channel, seq}] += n
		}
		large := false
		shared := map[uint16]int{}
		for _, batch := range cutter.Batches() {
			if m := batch.Members(); m > fanfare.MaxBatch || m == 0 || batch.Day != 7 || batch.Lane != fanfare.Bulk {
				t.Fatalf("%+v", batch)
			}
			events := map[fanfare.EventSeq]bool{}
			for _, slice := range batch.Slices {
				key := of{batch.Channel, slice.Manifest.Event()}
				got[key] += slice.Len()
				events[key.event] = true
				if small := want[key] < MinOwnBatch; small && large {
					t.Fatal("a small event comes behind a large one")
				} else if !small {
					large = true
					if len(events) > 1 {
						t.Fatalf("an event of %d members shares a batch: %+v", want[key], batch)
					}
				}
			}
			if !large {
				shared[batch.Channel]++
			}
		}
		for key, n := range want {
			if got[key] != n {
				t.Fatalf("%d members of %+v are in batches, want %d", got[key], key, n)
			}
		}
		for channel, n := range shared {
			if n > 1+12*MinOwnBatch/(fanfare.MaxBatch-MinOwnBatch) {
				t.Fatalf("small events of channel %d are spread over %d batches", channel, n)
			}
		}
		if left := cutter.Batches(); len(left) > 0 {
			t.Fatalf("cut twice: %+v", left)
		}
	})
}

func TestKeepLatestAttemptsNamesEachMemberOnce(t *testing.T) {
	one, other := fanfare.NewManifestID(7, 0), fanfare.NewManifestID(7, 1)
	for _, c := range []struct {
		name       string
		have, want []fanfare.RecipientRange
	}{
		{"one slice", []fanfare.RecipientRange{{Manifest: one, From: 2, To: 9, Attempt: 1}}, []fanfare.RecipientRange{{Manifest: one, From: 2, To: 9, Attempt: 1}}},
		{
			"no repeated member",
			[]fanfare.RecipientRange{{Manifest: one, Positions: []uint32{4}, Attempt: 2}, {Manifest: other, Positions: []uint32{4}, Attempt: 1}},
			[]fanfare.RecipientRange{{Manifest: one, Positions: []uint32{4}, Attempt: 2}, {Manifest: other, Positions: []uint32{4}, Attempt: 1}},
		},
		{
			"postponed twice",
			[]fanfare.RecipientRange{{Manifest: one, Positions: []uint32{4}, Attempt: 1}, {Manifest: one, Positions: []uint32{4}, Attempt: 1}},
			[]fanfare.RecipientRange{{Manifest: one, From: 4, To: 5, Attempt: 1}},
		},
		{
			"postponed and tried meanwhile",
			[]fanfare.RecipientRange{{Manifest: one, Positions: []uint32{3}, Attempt: 2}, {Manifest: one, From: 2, To: 6, Attempt: 1}, {Manifest: one, Positions: []uint32{5}, Attempt: 3}},
			[]fanfare.RecipientRange{{Manifest: one, From: 3, To: 4, Attempt: 2}, {Manifest: one, Positions: []uint32{2, 4}, Attempt: 1}, {Manifest: one, From: 5, To: 6, Attempt: 3}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := fanfare.Batch{Day: 1, Slices: c.have}
			if KeepLatestAttempts(&batch); !reflect.DeepEqual(batch.Slices, c.want) {
				t.Errorf("got %+v, want %+v", batch.Slices, c.want)
			}
		})
	}
}
