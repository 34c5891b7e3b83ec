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
		done, forget, err := b.Await(mine)
		if err != nil {
			t.Fatal(err)
		}
		left, forgetLeft, err := b.Await(mine)
		if err != nil {
			t.Fatal(err)
		}
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
		if n := b.waiters.count.Load(); n != 0 || len(b.waiters.of) != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}

func TestOnlySoManyMayWait(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		var forgets []func()
		for range MaxWaiters {
			_, forget, err := b.Await(event)
			if err != nil {
				t.Fatal(err)
			}
			forgets = append(forgets, forget)
		}
		if _, _, err := b.Await(tomorrow); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("one more: %v", err)
		}
		forgets[7]()
		if _, _, err := b.Await(tomorrow); err != nil {
			t.Errorf("after one has left: %v", err)
		}
	})
}
