package report

import (
	"time"
)

// Percentile returns a percentile of sorted values, and 0 if there are none.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p/100))]
}

func MicrosPer(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }
