package record

import (
	"testing"

	"fanfare.dev/fanfare"
)

// isDone reports whether a channel is closed.
func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestAwaitNotifiesOfTheCompletionOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		mine, other := event, tomorrow
		f.Begin(mine, 2, fanfare.Progress{})
		f.Begin(other, 1, fanfare.Progress{})
		done, forget := f.Await(mine)
		left, forgetLeft := f.Await(mine)
		forgetLeft()
		forgetLeft()
		f.record(t, other, 0, 1, fanfare.Accepted)
		f.record(t, mine, 0, 1, fanfare.Accepted)
		if isDone(done) {
			t.Fatal("notified before the last delivery was settled")
		}
		f.record(t, mine, 1, 1, fanfare.Failed)
		if !isDone(done) {
			t.Fatal("not notified")
		}
		forget()
		if isDone(left) {
			t.Error("notified after forget")
		}
		if n := f.waiters.count.Load(); n != 0 || len(f.waiters.channels) != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}
