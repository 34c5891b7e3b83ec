package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestNoSecondExceedsTheRateWithLateTimers has a sender that wakes late, tries, refunds,
// and pauses at random.
func TestNoSecondExceedsTheRateWithLateTimers(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			perSecond := math.Exp(random.Float64()*11) / 10 // 0.1 to 6000
			var r Rate
			now := start
			r.Set(perSecond, now)
			var left []time.Time
			for len(left) < 3000 {
				if wait := r.Wait(now); wait > 0 {
					late := time.Duration(random.ExpFloat64() * float64(2*time.Millisecond))
					now = now.Add(wait + late)
					continue
				}
				r.Take(now)
				if random.IntN(10) == 0 {
					now = now.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
					r.Refund()
				} else {
					left = append(left, now)
				}
				if random.IntN(500) == 0 {
					now = now.Add(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
			}
			most := int(math.Ceil(perSecond))
			for i := most; i < len(left); i++ {
				if span := left[i].Sub(left[i-most]); span < time.Second {
					t.Fatalf("%d messages within %v at %.2f a second", most+1, span, perSecond)
				}
			}
		})
	}
}

// TestRateOf360SustainsMoreThan355 has timers that wake up to two milliseconds late, like
// those of a busy machine.
func TestRateOf360SustainsMoreThan355(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var r Rate
	now := start
	r.Set(360, now)
	sent := 0
	for now.Sub(start) < time.Minute {
		if wait := r.Wait(now); wait > 0 {
			now = now.Add(wait + time.Duration(random.IntN(2000))*time.Microsecond)
			continue
		}
		r.Take(now)
		sent++
	}
	if rate := float64(sent) / now.Sub(start).Seconds(); rate < 355 || rate > 360 {
		t.Errorf("%.1f messages a second, want 355 to 360", rate)
	}
}

func TestChangedRateAppliesAtOnce(t *testing.T) {
	var r Rate
	r.Set(1.0/3600, start)
	r.Take(start)
	if wait := r.Wait(start); wait < 59*time.Minute {
		t.Fatalf("one an hour: the next may leave after %v", wait)
	}
	r.Set(500, start)
	if wait := r.Wait(start); wait > 3*time.Millisecond {
		t.Errorf("at 500 a second the next leaves after %v", wait)
	}
	r.Set(0, start)
	r.Take(start)
	if wait := r.Wait(start.Add(24 * time.Hour)); wait < 24*time.Hour {
		t.Errorf("at a rate of nothing the next leaves after %v", wait)
	}
	for _, none := range []float64{math.Inf(1), float64(rate.Inf), -1} {
		r.Set(1, start)
		if r.Set(none, start); r.Limited() || r.Wait(start) != 0 {
			t.Errorf("%g a second is no limit, but the next waits for %v", none, r.Wait(start))
		}
	}
}
