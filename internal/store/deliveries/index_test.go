package deliveries

import "testing"

// A run takes what has capacity, and one event more than that at most.
func TestARunTakesEventsUntilItIsFull(t *testing.T) {
	for _, c := range []struct {
		messages []int64
		capacity int64
		want     int
	}{
		{nil, 10, 0},
		{[]int64{1, 2, 3}, 10, 3},
		{[]int64{5, 5, 1}, 10, 2},
		{[]int64{5, 6, 1}, 10, 2},
		{[]int64{1000, 1}, 10, 1},
		{[]int64{0, 0, 10, 0}, 10, 3},
		{[]int64{1}, 0, 0},
	} {
		events := make([]behind, len(c.messages))
		for i, n := range c.messages {
			events[i].messages = n
		}
		if got := fitting(events, c.capacity); got != c.want {
			t.Errorf("of %v in capacity for %d: %d, want %d", c.messages, c.capacity, got, c.want)
		}
	}
}
