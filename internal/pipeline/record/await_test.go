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

func TestWhoWaitsIsToldOfTheEndAndOfNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		mine, other := event, tomorrow
		b.Begin(mine, 2, fanfare.Progress{})
		b.Begin(other, 1, fanfare.Progress{})
		done, forget := b.Await(mine)
		left, forgetLeft := b.Await(mine)
		forgetLeft()
		forgetLeft()
		b.record(t, other, 0, 1, fanfare.Accepted)
		b.record(t, mine, 0, 1, fanfare.Accepted)
		if isDone(done) {
			t.Fatal("told before the last delivery was settled")
		}
		b.record(t, mine, 1, 1, fanfare.Failed)
		if !isDone(done) {
			t.Fatal("not told")
		}
		forget()
		if isDone(left) {
			t.Error("who had left was told")
		}
		if n := b.waiters.count.Load(); n != 0 || len(b.waiters.channels) != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}
