package deliver

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantileIsAtMostAnEighthTooLong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h histogram
		var all []time.Duration
		for range 1 + random.IntN(300) {
			d := time.Duration(random.Int64N(1 << random.IntN(42)))
			all = append(all, d)
			h.count(d)
		}
		slices.Sort(all)
		for _, share := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			exact := all[max(int(share*float64(len(all)))-1, 0)]
			if got := h.quantile(share); got < exact || float64(got) > 1.125*float64(exact)+128 {
				t.Fatalf("quantile %v of %d is %v, exactly %v", share, len(all), got, exact)
			}
		}
	}
	var none, long histogram
	if none.quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	for _, d := range []time.Duration{-1, 1000 * time.Hour} {
		long.count(d) // beyond the largest step
	}
}

func TestOutcomeWindowForgetsAfterHalfAMinute(t *testing.T) {
	var w outcomeWindow
	begin := time.Unix(1_800_000_000, 0)
	for second := range 100 {
		w.at(begin.Add(time.Duration(second)*time.Second)).answers++
	}
	end := begin.Add(99 * time.Second)
	for after, want := range map[time.Duration]int{0: 30, 5 * time.Second: 25, 25 * time.Second: 5, 30 * time.Second: 0, time.Hour: 0} {
		if got := w.sum(end.Add(after), windowParts).answers; got != want {
			t.Errorf("%v after the last answer the window has %d, want %d", after, got, want)
		}
	}
}
