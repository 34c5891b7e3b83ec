package matching

import (
	"fmt"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// runAdds is B7: how fast the index takes subscriptions, and when events match them.
func runAdds(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.MarkInMemory()
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"] = n
	var w report.Checks
	for _, kind := range []struct{ workload, of string }{{"B1", "rule rows"}, {"B5", "different filters"}} {
		spec := addsSpec{Workload: kind.workload, Subscriptions: n, Single: l.Size(20_000, 500), Seed: l.Seed}
		var got addsResult
		profile, err := l.Profile("B7-" + kind.workload)
		if err != nil {
			return err
		}
		spec.Profile = profile
		if err := l.RunPart(r, "adds", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		r.AddPoint(report.Point{At: kind.of + ", 10,000 at once", Value: got.Groups, Limit: got.Bare})
		r.AddPoint(report.Point{At: kind.of + ", one at a time", Value: got.Single, P50Millis: got.P50, P99Millis: got.P99})
		r.Note("%s: %s events/s were matched by another thread while subscriptions were added one at a time", kind.of, report.Figure(got.Beside))
	}
	if err := r.UsePoint("rule rows, 10,000 at once"); err != nil {
		return err
	}
	seen := r.Points[1]
	r.P50Millis, r.P99Millis = seen.P50Millis, seen.P99Millis
	r.Note("the goal for different filters is 100,000/s; the latency of an add runs from the call until an event matches the new subscription, while another thread matches events (goal 5 ms)")
	r.Note("value and limit are those of rule rows, 10,000 at once; the limit appends each row to a slice of its symbol, or puts each text into a map")
	return w.Err()
}

// runMemory is B9: the heap memory of a subscription.
func runMemory(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.MarkInMemory()
	r.Unit = "bytes"
	r.Params["subscriptions"] = n
	for _, kind := range []struct {
		workload, of string
		goal         float64
		facts        float64 // without the text as written
	}{
		// Row id, subscriber and channel; for a rule also the number of the symbol and a
		// threshold.
		{"B1", "rule row", 64, 4 + 4 + 2 + 4 + 8},
		// One bit for the row id, and the number of the filter.
		{"B3", "shared filter", 32, 4 + 4 + 2 + 0.125},
		{"B5", "different filter", 500, 4 + 4 + 2 + 4},
	} {
		got, err := runMatch(l, r, matchSpec{Workload: kind.workload, Subscriptions: n})
		if err != nil {
			return err
		}
		least := kind.facts
		if kind.workload == "B5" {
			least += got.Conditions
		}
		r.AddPoint(report.Point{At: fmt.Sprintf("%s (goal %.0f)", kind.of, kind.goal), Value: got.HeapBytes, Limit: least})
	}
	r.Value = r.Points[0].Value
	r.SetLimit(r.Points[0].Limit)
	r.Note("the value is that of a rule row: heap in use after adding less heap before, divided by the subscriptions")
	r.Note("the limit is the data alone: row id, subscriber and channel, and symbol and threshold or the text of the filter; the ratio is value by limit")
	if n < 1_000_000 {
		r.Note("with so few subscriptions the initial pages of the index count most")
	}
	return nil
}
