package sessions

import (
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// recordMemory records the samples of the memory of the server, by phase. The value is the maximum of the last quarter, the
// limit that of the second one: in the first quarter, caches and pools still fill. The growth is the slope over the second
// half, through the means of two phases each, one with the slow client and one without: a line through the samples would be
// steeper or flatter because the last phase is one with the slow client.
func recordMemory(r *report.Record, phases [][]float64, phase time.Duration) {
	n := len(phases)
	highest := func(from, to int) float64 { return slices.Max(slices.Concat(phases[from:to]...)) }
	r.Value = highest(n*3/4, n)
	r.SetLimit(highest(n/4, n/2))
	var means []float64
	for i := n / 2; i+1 < n; i += 2 {
		means = append(means, mean(slices.Concat(phases[i], phases[i+1])))
	}
	r.GrowthMiB = slope(means) / (2 * phase).Hours() * 24
	for i := range leastPhases {
		at := (time.Duration(n*(i+1)/leastPhases) * phase).Round(time.Second)
		r.AddPoint(report.Point{At: "until " + at.String(), Value: highest(n*i/leastPhases, n*(i+1)/leastPhases)})
	}
	var kinds [2][]float64
	for i := n / 2; i < n; i++ {
		kinds[i%2] = append(kinds[i%2], phases[i]...)
	}
	r.Note("value: the highest resident memory of the server in the last quarter; limit: in the second quarter; in the second half it was %.1f MiB on average without the slow client and %.1f MiB with it, and grew by %.0f MiB/day",
		mean(kinds[0]), mean(kinds[1]), r.GrowthMiB)
}

// recordNeighbours records the latency of the steady client without and with the slow one beside it.
func recordNeighbours(r *report.Record, got *paced) {
	var p99 [2][]time.Duration
	for i, p := range got.Phases {
		p99[i%2] = append(p99[i%2], p.P99)
	}
	for i, name := range []string{"without", "with"} {
		slices.Sort(p99[i])
		all := got.Even
		if i == 1 {
			all = got.Odd
		}
		middle := report.Millis(p99[i][len(p99[i])/2])
		r.Note("latency %s the slow client: median of the p99 of %d phases %.2f ms; of all requests p50 %.2f ms, p99 %.2f ms, maximum %.0f ms",
			name, len(p99[i]), middle, report.Millis(all.P50), report.Millis(all.P99), report.Millis(all.Max))
		r.P50Millis, r.P99Millis = report.Millis(all.P50), middle
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// slope returns the slope of the least-squares line through equidistant values, per value.
func slope(values []float64) float64 {
	middle, average := float64(len(values)-1)/2, mean(values)
	var xy, xx float64
	for i, v := range values {
		x := float64(i) - middle
		xy += x * (v - average)
		xx += x * x
	}
	return xy / xx
}
