package record

import (
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestGroupDoesNotWaitForStragglers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		next := 0
		// group records one entry and returns how long it took.
		group := func() time.Duration {
			begun := time.Now()
			f.Expect()
			if err := f.RecordExpected(entryOf(event, next, 1, fanfare.Accepted), nil); err != nil {
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
		f.Expect()
		f.Expect() // of a slow next hop
		if got := waits(160); got > missedRounds+160/waitForAll+1 {
			t.Errorf("%d groups of 160 waited for two that were late with all of them", got)
		}
		f.Expect() // and a third one
		if got := waits(160); got > missedRounds+160/waitForAll+1 {
			t.Errorf("%d groups of 160 waited for three", got)
		}
		for range 3 {
			if err := f.RecordExpected(entryOf(event, next, 1, fanfare.Accepted), nil); err != nil {
				t.Error(err)
			}
			next++
		}
		waits(waitForAll)
		if f.stragglers.known != 0 {
			t.Errorf("%d are not waited for, and none is late any more", f.stragglers.known)
		}
	})
}

func TestOneLateGroupIsIgnored(t *testing.T) {
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
