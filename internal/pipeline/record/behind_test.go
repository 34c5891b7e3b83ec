package record

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// TestALetterThatLeftDoesNotWaitForThousandsThatDidNot has a batch settled without
// letters while one is on the wire.
func TestALetterThatLeftDoesNotWaitForThousandsThatDidNot(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		entry := func(position int) fanfare.Entry {
			return fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, 0), Position: uint32(position)}, Attempt: 1, State: fanfare.Suppressed, At: time.Now()}
		}
		callers.Go(func() {
			all := make([]fanfare.Entry, 5*maxGroup)
			for i := range all {
				all[i] = entry(100 + i)
			}
			if err := b.RecordAll(all); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		b.Expect()
		callers.Go(func() {
			left := entry(99)
			if err := b.RecordExpected(&left, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		end()
		callers.Wait()
		kept := b.store.kept()
		if first := kept[1].Entries[0].Delivery.Position; first != 99 || len(kept[1].Entries) != maxGroup {
			t.Errorf("the next group has %d entries and begins with position %d, want %d and the letter that left", len(kept[1].Entries), first, maxGroup)
		}
	})
}

func TestWhatWasSettledWithoutALetterHasItsPartOfEachGroup(t *testing.T) {
	r := &Recorder{}
	for range 3 * maxGroup {
		r.waiting, r.behind = append(r.waiting, &slip{}), append(r.behind, &slip{due: &fanfare.Due{}})
	}
	for left := 6 * maxGroup; left > 0; left -= maxGroup {
		group := r.take(nil)
		behind := 0
		for _, s := range group {
			if s.due != nil {
				behind++
			}
		}
		if len(group) != maxGroup || behind < leastBehind {
			t.Errorf("a group of %d has %d that were settled without a letter, at least %d of %d are theirs", len(group), behind, leastBehind, maxGroup)
		}
	}
	if r.more() {
		t.Error("something is left")
	}
}
