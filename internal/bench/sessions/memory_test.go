package sessions

import (
	"math"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// memoryOf makes samples: so many MiB at first, growing by so many a day, and more in every second phase.
func memoryOf(count, samples int, phase time.Duration, first, growth, slow float64) [][]float64 {
	phases := make([][]float64, count)
	for i := range phases {
		for k := range samples {
			day := (phase*time.Duration(i) + phase*time.Duration(k)/time.Duration(samples)).Hours() / 24
			phases[i] = append(phases[i], first+growth*day+slow*float64(i%2))
		}
	}
	return phases
}

func TestTheGrowthOfMemoryIsThatOfTheSecondHalf(t *testing.T) {
	const phase = 56*time.Second + 250*time.Millisecond
	for _, growth := range []float64{0, 40, 2400, -100} {
		var r report.Record
		phases := memoryOf(64, 56, phase, 100, growth, 20)
		for i := range phases[:32] { // the start does not count
			for k := range phases[i] {
				phases[i][k] -= float64(32-i) / 2
			}
		}
		recordMemory(&r, phases, phase)
		if math.Abs(r.GrowthMiB-growth) > 0.01 {
			t.Errorf("a growth of %v MiB/day is measured as %v", growth, r.GrowthMiB)
		}
		if want := 120 + max(growth, growth*0.76)/24; math.Abs(r.Value-want) > 1 {
			t.Errorf("growth %v: the highest of the last quarter is %v, want %v", growth, r.Value, want)
		}
		if len(r.Points) != 8 || r.Points[7].At != "until 1h0m0s" {
			t.Errorf("points %+v", r.Points)
		}
	}
}

func TestTheQuartersHaveTheSamePhases(t *testing.T) {
	for scale, want := range map[float64]int{1: 64, 0.1: 64, 0.01: 32, 0.0001: 8, 24: 64} {
		count, phase := phasesOf(scale)
		if count != want || phase < time.Second {
			t.Errorf("scale %v: %d phases of %v", scale, count, phase)
		}
		if whole := time.Duration(count) * phase; scale > 0.01 && whole.Hours() != scale {
			t.Errorf("scale %v: %v", scale, whole)
		}
	}
}

func TestLatenciesAreCountedWithinAThirtieth(t *testing.T) {
	var l, rest latencies
	for i := range 100_000 {
		to := &l
		if i%3 == 0 {
			to = &rest
		}
		to.add(time.Duration(i+1) * time.Microsecond)
	}
	l.merge(&rest)
	s := l.summary()
	for name, is := range map[string][2]time.Duration{"p50": {s.P50, 50 * time.Millisecond}, "p99": {s.P99, 99 * time.Millisecond}} {
		if is[0] < is[1] || is[0] > is[1]+is[1]/30 {
			t.Errorf("%s is %v, want %v", name, is[0], is[1])
		}
	}
	if s.Max != 100*time.Millisecond || s.Count != 100_000 {
		t.Errorf("%+v", s)
	}
	for _, d := range []time.Duration{-time.Second, 0, 31 * time.Microsecond, 64 * time.Microsecond, time.Hour, math.MaxInt64} {
		if got := latencyOf(latencyStep(d)); d > 0 && (got < d.Truncate(time.Microsecond) || got > d+d/30) && d < math.MaxInt64 {
			t.Errorf("%v is counted as %v", d, got)
		}
	}
}
