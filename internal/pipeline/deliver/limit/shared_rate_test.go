package limit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// sender sends through a share whenever it may, with a late timer.
type sender struct {
	share *Share
	every time.Duration // at most one message in this time; 0: no limit
	late  time.Duration // maximum delay after each wait
	from  time.Duration
	to    time.Duration

	next time.Time
	sent []time.Time
}

// play runs senders for a while and returns when messages were sent.
func play(t *testing.T, span time.Duration, all []*sender, at func(time.Time)) (left []time.Time) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Unix(1_800_000_000, 0)
	for _, s := range all {
		s.next = start.Add(s.from)
	}
	for now := start; now.Sub(start) < span; {
		at(now)
		var one *sender
		for _, s := range all {
			if (s.to == 0 || s.next.Sub(start) < s.to) && (one == nil || s.next.Before(one.next)) {
				one = s
			}
		}
		now = one.next
		switch _, wait := one.share.Take(now, 1, false); {
		case wait > 0:
			one.next = now.Add(wait + time.Duration(random.Int64N(int64(one.late)+1)))
		default:
			left = append(left, now)
			one.sent = append(one.sent, now)
			one.next = now.Add(one.every)
		}
	}
	return left
}

// mostInASecond returns the maximum number within any one second.
func mostInASecond(left []time.Time) (most int) {
	first := 0
	for i := range left {
		for left[i].Sub(left[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestSharesOfARateNeverExceedItTogetherAndNoneStarves(t *testing.T) {
	const span = 20 * time.Second
	for _, c := range []struct {
		name  string
		rate  float64
		late  []time.Duration
		every time.Duration // of another sender with few messages
	}{
		{"two", 360, []time.Duration{0, 0}, 0},
		{"one whose timers are late", 360, []time.Duration{0, 4 * time.Millisecond}, 0},
		{"two of a slow rate", 5, []time.Duration{0, 4 * time.Millisecond}, 0},
		{"many of a fast rate", 5000, []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond}, 0},
		{"one that sends now and then", 360, []time.Duration{time.Millisecond, time.Millisecond}, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			var shared SharedRate
			shared.Set(c.rate, time.Time{})
			var all []*sender
			for _, late := range c.late {
				all = append(all, &sender{share: shared.NewShare(), late: late})
			}
			rare := &sender{share: shared.NewShare(), every: c.every, late: time.Millisecond}
			if c.every > 0 {
				all = append(all, rare)
			}
			left := play(t, span, all, func(time.Time) {})
			if most := mostInASecond(left); most > int(c.rate) {
				t.Errorf("%d left in one second, of %v", most, c.rate)
			}
			if got := float64(len(left)) / span.Seconds(); got < c.rate*0.97 {
				t.Errorf("%.1f a second left, of %v", got, c.rate)
			}
			if c.every > 0 {
				all = all[:len(c.late)]
				if want := int(span/c.every) * 3 / 4; len(rare.sent) < want {
					t.Errorf("who has little to send sent %d, want %d at least", len(rare.sent), want)
				}
			}
			fair := (len(left) - len(rare.sent)) / len(all)
			for i, s := range all {
				if n := len(s.sent); n < fair*9/10-1 || n > fair*11/10+1 {
					t.Errorf("number %d sent %d of %d, its part is %d", i, n, len(left), fair)
				}
			}
		})
	}
}

// TestSingleShareGetsTheWholeRate has a second share come and go.
func TestSingleShareGetsTheWholeRate(t *testing.T) {
	var shared SharedRate
	shared.Set(100, time.Time{})
	stays := &sender{share: shared.NewShare(), late: time.Millisecond}
	goes := &sender{share: shared.NewShare(), late: time.Millisecond, from: 10 * time.Second, to: 20 * time.Second}
	play(t, 30*time.Second, []*sender{stays, goes}, func(time.Time) {})
	counts := [3]int{}
	for _, at := range stays.sent {
		counts[min(2, int(at.Sub(stays.sent[0])/(10*time.Second)))]++
	}
	for i, want := range [3]int{990, 495, 990} {
		if counts[i] < want*97/100 || counts[i] > want*103/100 {
			t.Errorf("in part %d it sent %d, want about %d", i, counts[i], want)
		}
	}
}

func TestLoweredSharedRateAppliesAtOnce(t *testing.T) {
	var shared SharedRate
	shared.Set(1000, time.Time{})
	all := []*sender{{share: shared.NewShare()}, {share: shared.NewShare()}}
	var lowered time.Time
	start := time.Time{}
	left := play(t, 10*time.Second, all, func(now time.Time) {
		if start.IsZero() {
			start = now
		}
		if lowered.IsZero() && now.Sub(start) > 5*time.Second {
			lowered = now
			shared.Set(10, now)
		}
	})
	after := 0
	for _, at := range left {
		if at.After(lowered.Add(10 * time.Millisecond)) {
			after++
		}
	}
	if after > 51 || after < 45 {
		t.Errorf("%d left in the five seconds after the rate was lowered to 10/s", after)
	}
}
