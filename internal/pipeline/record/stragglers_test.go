package record

import (
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestAGroupDoesNotWaitForWhatIsLateWithEveryGroup(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		next := 0
		// group keeps one entry, and says how long it took.
		group := func() time.Duration {
			begun := time.Now()
			b.Expect()
			if err := b.RecordExpected(entryOf(event, next, 1, fanfare.Accepted), nil); err != nil {
				t.Error(err)
			}
			next++
			return time.Since(begun)
		}
		waits := func(groups int) (n int) {
			for range groups {
				if group() > 0 {
					n++
				}
			}
			return n
		}
		if got := waits(100); got != 0 {
			t.Errorf("%d groups waited for nothing", got)
		}
		b.Expect()
		b.Expect() // which a next hop takes long for
		if got := waits(160); got > missedRounds+160/waitForAll+1 {
			t.Errorf("%d groups of 160 waited for two that were late with all of them", got)
		}
		b.Expect() // and a third
		if got := waits(160); got > missedRounds+160/waitForAll+1 {
			t.Errorf("%d groups of 160 waited for three", got)
		}
		for range 3 {
			if err := b.RecordExpected(entryOf(event, next, 1, fanfare.Accepted), nil); err != nil {
				t.Error(err)
			}
			next++
		}
		waits(waitForAll)
		if b.stragglers.known != 0 {
			t.Errorf("%d are not waited for, and none is late any more", b.stragglers.known)
		}
	})
}

func TestOneLateGroupSaysNothing(t *testing.T) {
	var of stragglers
	for i := range 1000 {
		of.ignore()
		missing := int64(0)
		if i%missedRounds != 0 {
			missing = 20
		}
		if of.groupClosed(missing); of.known != 0 {
			t.Fatalf("%d are not waited for after %d groups, some of which were whole", of.known, i)
		}
	}
}
