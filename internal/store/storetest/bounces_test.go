package storetest_test

import (
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// bounceOf is a message that came back of an address, which is told by a byte.
func bounceOf(service uint32, whom byte, position uint32, why control.BounceKind, at time.Time) control.BounceRecord {
	return control.BounceRecord{
		Service: service, AddressKind: 1, Hash: suppression.Hash{whom}, Kind: why, At: at.UnixNano(),
		Delivery: fanfare.DeliveryRef{Day: today, Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(5, 0), 0), Position: position},
	}
}

// keepBounces keeps some, and says what is kept now of the address of each.
func keepBounces(t *testing.T, c *control.Store, list ...control.BounceRecord) (counted [][]control.BounceKind) {
	t.Helper()
	all, err := c.AddBounces(t.Context(), list)
	if err != nil || len(all) != len(list) {
		t.Fatalf("%d answers to %d bounces: %v", len(all), len(list), err)
	}
	for i := range all {
		var kinds []control.BounceKind
		for _, b := range all[i] {
			if b.Service != list[i].Service || b.AddressKind != list[i].AddressKind || b.Hash != list[i].Hash {
				t.Errorf("of %+v there is %+v", list[i], b)
			}
			kinds = append(kinds, b.Kind)
		}
		counted = append(counted, kinds)
	}
	return counted
}

func expectBounces(t *testing.T, when string, got [][]control.BounceKind, want ...[]control.BounceKind) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%s: got %v, want %v", when, got, want)
	}
}

func TestAMessageThatCameBackIsCountedOnceForItsAddress(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		const hard, soft, complaint = control.BounceHard, control.BounceSoft, control.BounceComplaint
		first := bounceOf(2, 'a', 0, hard, noon)
		expectBounces(t, "the first", keepBounces(t, c, first), []control.BounceKind{hard})
		again := first
		again.At += int64(time.Hour)
		expectBounces(t, "the same again, and twice in one go", keepBounces(t, c, again, again), []control.BounceKind{hard}, []control.BounceKind{hard})
		all, err := c.AddBounces(t.Context(), []control.BounceRecord{again})
		if err != nil || len(all[0]) != 1 || all[0][0].At != first.At {
			t.Errorf("the time is another: %v, %v", all, err)
		}
		expectBounces(t, "two of one address, one of another, one of another service",
			keepBounces(t, c, bounceOf(2, 'a', 1, soft, noon), bounceOf(2, 'b', 2, hard, noon), bounceOf(3, 'a', 0, soft, noon), bounceOf(2, 'a', 0, complaint, noon)),
			[]control.BounceKind{hard, complaint, soft}, []control.BounceKind{hard}, []control.BounceKind{soft}, []control.BounceKind{hard, complaint, soft})
	})
}

func TestOldBouncesAreForgotten(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		keepBounces(t, c, bounceOf(2, 'a', 0, control.BounceSoft, noon.Add(-time.Second)), bounceOf(2, 'a', 1, control.BounceHard, noon))
		if err := c.DeleteBounces(t.Context(), noon); err != nil {
			t.Fatal(err)
		}
		expectBounces(t, "what is younger stays", keepBounces(t, c, bounceOf(2, 'a', 2, control.BounceMailboxFull, noon)), []control.BounceKind{control.BounceHard, control.BounceMailboxFull})
	})
}

func TestALiftedSuppressionRemovesItsBounces(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		for _, lift := range []struct {
			when string
			at   int64
			want []control.BounceKind
		}{
			{"the time of a suppression was over", 0, []control.BounceKind{control.BounceSoft, control.BounceSoft, control.BounceMailboxFull}},
			{"it was lifted", noon.UnixNano(), []control.BounceKind{control.BounceSoft, control.BounceMailboxFull}},
		} {
			keepBounces(t, c, bounceOf(2, 'a', 0, control.BounceSoft, noon), bounceOf(2, 'a', 1, control.BounceSoft, noon.Add(1)),
				bounceOf(2, 'b', 2, control.BounceHard, noon), bounceOf(3, 'a', 3, control.BounceHard, noon))
			lifted := suppression.Record{Service: 2, Kind: 1, Hash: suppression.Hash{'a'}, Reason: suppression.ReasonSoftBounces, At: lift.at, Lifted: true}
			if err := c.Commit(&control.Batch{Suppressions: []suppression.Record{lifted}}); err != nil {
				t.Fatal(err)
			}
			expectBounces(t, lift.when, keepBounces(t, c, bounceOf(2, 'a', 4, control.BounceMailboxFull, noon.Add(1))), lift.want)
			expectBounces(t, lift.when+", of others", keepBounces(t, c, bounceOf(2, 'b', 2, control.BounceHard, noon), bounceOf(3, 'a', 3, control.BounceHard, noon)),
				[]control.BounceKind{control.BounceHard}, []control.BounceKind{control.BounceHard})
		}
	})
}
