package report

import (
	"fmt"
	"strings"
)

// A Point is one value of what an experiment varies.
type Point struct {
	At        string  `json:"at"` // such as "200 chars"
	Value     float64 `json:"value"`
	Limit     float64 `json:"limit"` // 0: none was measured
	Ratio     float64 `json:"ratio"`
	P50Millis float64 `json:"p50_ms,omitempty"`
	P99Millis float64 `json:"p99_ms,omitempty"`
}

func (r *Record) AddPoint(p Point) {
	if p.Limit > 0 {
		p.Ratio = p.Value / p.Limit
	}
	r.Points = append(r.Points, p)
}

// UsePoint makes a point the value of the whole record.
func (r *Record) UsePoint(at string) error {
	for _, p := range r.Points {
		if p.At == at {
			r.Value, r.P50Millis, r.P99Millis = p.Value, p.P50Millis, p.P99Millis
			r.SetLimit(p.Limit)
			return nil
		}
	}
	return fmt.Errorf("there is no point %q", at)
}

// A trend is how a row of values goes.
type trend string

// The trends. Of values within a fifth of each other nothing else is said.
const (
	Rises       trend = "rises"
	Falls       trend = "falls"
	NearlyEqual trend = "is nearly equal"
	neither     trend = "neither rises nor falls"
)

// slack is by how much a step may go against a trend, and what nearly equal
// values may differ by.
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

// CompareShape says how the record's points go beside how the published ones went.
// It is read by people: a shape is no promise.
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
	r.Note("the published rate %s from point to point, ours %s (%s): %s", published, ours, strings.Join(steps, ", "), verdict)
}
