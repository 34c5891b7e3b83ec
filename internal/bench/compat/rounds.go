package compat

import (
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// rounds is the number of times that two APIs are measured in turn.
const rounds = 3

// alternate measures our own API and another one in turn. The value of the record is the median rate of the other API, and its limit that
// of our own. The profile is that of the other API in the first round.
func alternate(s *harness.Server, r *report.Record, mailSink *harness.Sink, name string, own, other func(round int) (loadgen.HTTPResult, error)) error {
	var limits, values []float64
	window := s.OpenWindow(mailSink)
	for round := range rounds {
		ours, err := own(round)
		if err != nil {
			return s.WithLog(err)
		}
		if err := s.ToggleProfile(); err != nil {
			return err
		}
		theirs, err := other(round)
		if err != nil {
			return s.WithLog(err)
		}
		if err := s.ToggleProfile(); err != nil {
			return err
		}
		limits, values = append(limits, ours.PerSecond), append(values, theirs.PerSecond)
		r.P50Millis, r.P99Millis = theirs.P50, theirs.P99
		r.Note("round %d: own %s, %s %s", round+1, report.Figure(ours.PerSecond), name, report.Figure(theirs.PerSecond))
	}
	harness.RecordUsage(r, window.Close())
	r.Value = median(values)
	r.SetLimit(median(limits))
	return nil
}

func median(three []float64) float64 {
	a, b, c := three[0], three[1], three[2]
	return max(min(a, b), min(max(a, b), c))
}
