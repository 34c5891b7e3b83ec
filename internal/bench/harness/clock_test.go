package harness

import (
	"testing"
	"time"
)

func TestReadsBecomeFrequentTowardsTheEnd(t *testing.T) {
	for _, c := range []struct {
		elapsed        time.Duration
		settled, total int64
		want           time.Duration
	}{
		{0, 0, 0, ShortestPoll},
		{100 * time.Millisecond, 0, 100, 5 * time.Millisecond},
		{10 * time.Second, 50, 100, longestPoll},
		{10 * time.Second, 999, 1000, 2502502 * time.Nanosecond},
		{10 * time.Second, 100, 100, ShortestPoll},
	} {
		if got := PollPause(c.elapsed, c.settled, c.total); got != c.want {
			t.Errorf("after %v with %d of %d: %v, want %v", c.elapsed, c.settled, c.total, got, c.want)
		}
	}
}
