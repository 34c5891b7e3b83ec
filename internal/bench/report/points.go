package report

import (
	"fmt"
	"strings"
)

// A Point is the result for one value of the parameter that an experiment varies.
type Point struct {
	At        string  `json:"at"` // such as "200 chars"
	Value     float64 `json:"value"`
	Limit     float64 `json:"limit"` // 0: none was measured
	Ratio     float64 `json:"ratio"`
	P50Millis float64 `json:"p50_ms,omitempty"`
	P99Millis float64 `json:"p99_ms,omitempty"`
	CPUMicros float64 `json:"cpu_us,omitempty"` // of the server for one item
}

func (r *Record) AddPoint(p Point) {
	if p.Limit > 0 {
		p.Ratio = p.Value / p.Limit
	}
	r.Points = append(r.Points, p)
}

// UsePoint makes a point the result of the whole record.
func (r *Record) UsePoint(at string) error {
	for _, p := range r.Points {
		if p.At == at {
			r.Value, r.P50Millis, r.P99Millis = p.Value, p.P50Millis, p.P99Millis
			r.SetLimit(p.Limit)
			return nil
		}
	}
	return fmt.Errorf("the record has no point %q", at)
}

// A trend describes how values change from point to point.
type trend string

// The trends. Values within a fifth of each other are nearly equal.
const (
	Rises       trend = "rises"
	Falls       trend = "falls"
	NearlyEqual trend = "is nearly equal"
	neither     trend = "neither rises nor falls"
)

// slack is how far a step may go against a trend, and equal how far nearly equal values
// may differ.
const (
	slack = 0.1
	equal = 0.2
)

func trendOf(values []float64) trend {
	if len(values) == 0 {
		return NearlyEqual
	}
	least, most := values[0], values[0]
	up, down := true, true
	for i, v := range values {
		least, most = min(least, v), max(most, v)
		if i > 0 {
			up = up && v >= values[i-1]*(1-slack)
			down = down && v <= values[i-1]*(1+slack)
		}
	}
	switch first, last := values[0], values[len(values)-1]; {
	case most-least <= equal*most:
		return NearlyEqual
	case up && last > first:
		return Rises
	case down && last < first:
		return Falls
	}
	return neither
}

// CompareShape notes how the points change, compared with the published ones. It is
// information for readers and never fails a run.
func (r *Record) CompareShape(published trend) {
	var values []float64
	var steps []string
	for _, p := range r.Points {
		values = append(values, p.Value)
		steps = append(steps, Figure(p.Value))
	}
	ours := trendOf(values)
	verdict := "as published"
	if ours != published {
		verdict = "NOT as published"
	}
	r.Note("from point to point the published rate %s, this one %s (%s): %s", published, ours, strings.Join(steps, ", "), verdict)
}
