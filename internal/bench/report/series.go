package report

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// A Series is a rate over time.
type Series struct {
	Name      string    `json:"name"`
	StepMilli int64     `json:"step_ms"`
	PerSecond []float64 `json:"per_second"` // in each step
}

// maxSeries is the maximum number of steps in a series.
const maxSeries = 200

// AddSeries adds the messages that a sink counted over time.
func (r *Record) AddSeries(name string, t sink.Timeline) {
	if len(t.Counts) > 0 {
		r.Over = append(r.Over, newSeries(name, time.Duration(t.StepMillis)*time.Millisecond, t.Counts))
	}
}

func newSeries(name string, step time.Duration, counts []int64) Series {
	of := (len(counts) + maxSeries - 1) / maxSeries
	s := Series{Name: name, StepMilli: step.Milliseconds() * int64(of)}
	for from := 0; from < len(counts); from += of {
		sum, steps := int64(0), counts[from:min(from+of, len(counts))]
		for _, n := range steps {
			sum += n
		}
		s.PerSecond = append(s.PerSecond, float64(sum)/(step.Seconds()*float64(len(steps))))
	}
	return s
}

// curves is a plot of series on one scale.
type curves struct {
	Most, Seconds string
	Lines         []curve
}

type curve struct {
	Name   string
	Points string // of an SVG polyline
	Y      int    // of its name
}

type titledCurves struct {
	Title string
	curves
}

// The plot's area in SVG units.
const (
	curveLeft, curveWidth   = 50.0, 710.0
	curveTop, curveHeight   = 12.0, 188.0
	curveNames, betweenName = 20, 18
)

func newCurves(all []Series) curves {
	most, longest := 0.0, 0.0
	for _, s := range all {
		longest = max(longest, float64(s.StepMilli)*float64(len(s.PerSecond))/1000)
		for _, v := range s.PerSecond {
			most = max(most, v)
		}
	}
	out := curves{Most: Figure(most), Seconds: Figure(longest)}
	for i, s := range all {
		var points strings.Builder
		for k, v := range s.PerSecond {
			at := (float64(k) + 0.5) * float64(s.StepMilli) / 1000
			fmt.Fprintf(&points, "%.1f,%.1f ", curveLeft+curveWidth*at/max(longest, 1e-9), curveTop+curveHeight*(1-v/max(most, 1e-9)))
		}
		out.Lines = append(out.Lines, curve{s.Name, strings.TrimSpace(points.String()), curveNames + betweenName*i})
	}
	return out
}
