package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestGroupSizeIsLimitedByTheRatePerSecond(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		most      int
		sizes     []int // consecutive groups
	}{
		{30, 100, []int{30, 30, 30}},
		{100, 100, []int{100, 100}},
		{600, 100, []int{100, 100, 100}},
		{3000, 100, []int{100, 100, 100}},
		{250, 100, []int{83, 83, 84, 83, 83, 84}}, // three groups in a second, and never more than 250
		{5, 4, []int{2, 3, 2, 3}},
		{2.5, 100, []int{3, 3}},
		{1, 100, []int{1, 1}},
		{0.5, 100, []int{1, 1}},
		{600, 1, []int{1, 1}},
		{-1, 100, []int{100, 100}},
	} {
		var r Rate
		r.Set(c.perSecond, start)
		var sizes []int
		for range c.sizes {
			n := r.GroupSize(c.most)
			r.TakeFor(n, start)
			sizes = append(sizes, n)
		}
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("at %v/s groups of %d at most have %v, want %v", c.perSecond, c.most, sizes, c.sizes)
		}
	}
}

// TestNoSecondExceedsTheRateWithGroupsAndSingleMessages has a sender with late timers,
// partial groups, and pauses.
func TestNoSecondExceedsTheRateWithGroupsAndSingleMessages(t *testing.T) {
	for _, perSecond := range []int{2, 5, 11, 30, 250, 360, 600, 3000} {
		for _, mixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d mixed %v", perSecond, mixed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(perSecond), 11))
				var r Rate
				now := start
				r.Set(float64(perSecond), now)
				var left []time.Time
				for now.Sub(start) < 2*time.Minute {
					n := r.GroupSize(100)
					if mixed && random.IntN(3) == 0 {
						n = 1 + random.IntN(n)
					}
					for wait := r.WaitFor(n, false, now); wait > 0; wait = r.WaitFor(n, false, now) {
						now = now.Add(wait + time.Duration(random.IntN(2000))*time.Microsecond)
					}
					r.TakeFor(n, now)
					gone := n
					if mixed && random.IntN(10) == 0 {
						gone = random.IntN(n + 1)
						r.RefundFor(n - gone)
					}
					left = append(left, slices.Repeat([]time.Time{now}, gone)...)
					if mixed && random.IntN(100) == 0 {
						now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
					}
				}
				if most := mostInASecond(left); most > perSecond {
					t.Errorf("%d left in one second, of %d", most, perSecond)
				}
				if got := float64(len(left)) / now.Sub(start).Seconds(); !mixed && got < float64(perSecond)*0.97 {
					t.Errorf("%.1f a second left, of %d", got, perSecond)
				}
			})
		}
	}
}

// TestGroupWaitsUntilTheRateAllowsAllOfIt sends single messages before: what they did not
// use is not saved, and the first group of an idle rate is sent at once.
func TestGroupWaitsUntilTheRateAllowsAllOfIt(t *testing.T) {
	var r Rate
	r.Set(100, start)
	if wait := r.WaitFor(50, false, start); wait != 0 {
		t.Fatalf("the first group waits for %v", wait)
	}
	r.TakeFor(50, start)
	near(t, "the next group", r.WaitFor(50, false, start), 50*10100*time.Microsecond)

	r = Rate{}
	r.Set(100, start)
	r.Take(start)
	near(t, "a group behind a message", r.WaitFor(50, false, start), 50*10100*time.Microsecond)
}

// TestUrgentMessagesDoNotWaitForAGroup sends urgent messages between groups: they are sent
// as if there were no groups and use what is saved for the next one, and the average is
// that of the rate.
func TestUrgentMessagesDoNotWaitForAGroup(t *testing.T) {
	var r Rate
	r.Set(30, start)
	now, urgent, grouped := start, 0, 0
	next := start // time of the next urgent message
	for now.Sub(start) < time.Minute {
		if !now.Before(next) {
			if wait := r.WaitFor(1, true, now); wait > r.Interval() {
				t.Fatalf("an urgent message waits for %v", wait)
			} else if wait == 0 {
				r.Take(now)
				urgent++
				next = next.Add(200 * time.Millisecond)
			}
		}
		if r.WaitFor(30, false, now) == 0 {
			r.TakeFor(30, now)
			grouped += 30
		}
		now = now.Add(time.Millisecond)
	}
	if urgent != 300 {
		t.Errorf("%d urgent messages left, want 300", urgent)
	}
	if all := urgent + grouped; all > 60*30+30 || all < 60*30*9/10 {
		t.Errorf("%d messages left in a minute at 30 a second, of them %d in groups", all, grouped)
	}
}

func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want-6*time.Millisecond || got > want+6*time.Millisecond {
		t.Errorf("%s waits for %v, want %v", what, got, want)
	}
}

func TestShareTakesAGroupAndOthersGetAsMuch(t *testing.T) {
	var shared SharedRate
	shared.Set(100, start)
	one, other := shared.NewShare(), shared.NewShare()
	counts := [2]int{}
	now := start
	var left []time.Time
	for now.Sub(start) < 20*time.Second {
		for i, s := range []*Share{one, other} {
			if taken, _ := s.Take(now, s.GroupSize(25), false); taken > 0 {
				counts[i] += taken
				left = append(left, slices.Repeat([]time.Time{now}, taken)...)
			}
		}
		now = now.Add(time.Millisecond)
	}
	if most := mostInASecond(left); most > 100 {
		t.Errorf("%d left in one second, of 100", most)
	}
	if counts[0]+counts[1] < 1940 || counts[0] < 900 || counts[1] < 900 {
		t.Errorf("the shares sent %v in 20 s at 100/s", counts)
	}
}

func TestQuotaGivesAGroupAllOrTheRestOfTheDay(t *testing.T) {
	reserved := int64(0)
	var grant func()
	var q *Quota
	q = NewQuota(250, time.UTC, func(day string, block int64) {
		granted := min(block, 250-reserved)
		reserved += granted
		grant = func() { q.Grant(day, block, granted) }
	})
	var sizes []int
	for range 100 {
		taken, wait := q.Take(start, 100, false)
		if wait > quotaPoll {
			break
		}
		if taken > 0 {
			sizes = append(sizes, taken)
		}
		if grant != nil {
			grant()
			grant = nil
		}
	}
	if !slices.Equal(sizes, []int{100, 100, 50}) {
		t.Errorf("groups of %v left of a quota of 250", sizes)
	}
	q.Refund(start, 50)
	if taken, _ := q.Take(start, 100, false); taken != 50 {
		t.Errorf("of 50 that were given back %d may leave", taken)
	}
}
