package bench

import "fmt"

// runAdds is B7: how fast the index takes subscriptions, and when they are seen.
func runAdds(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.inProcess()
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"] = n
	var w wrong
	for _, kind := range []struct{ workload, of string }{{"B1", "rule rows"}, {"B5", "different filters"}} {
		spec := addsSpec{Workload: kind.workload, Subscriptions: n, Single: l.size(20_000, 500), Seed: l.Seed}
		var got addsResult
		profile, err := l.profile("B7-" + kind.workload)
		if err != nil {
			return err
		}
		spec.Profile = profile
		if err := l.inProcess(r, "adds", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		r.point(Point{At: kind.of + ", 10,000 at once", Value: got.Groups, Limit: got.Bare})
		r.point(Point{At: kind.of + ", one at a time", Value: got.Single, P50Millis: got.P50, P99Millis: got.P99})
		r.note("%s: %s events/s were matched by another thread while they came one at a time", kind.of, figure(got.Beside))
	}
	if err := r.stand("rule rows, 10,000 at once"); err != nil {
		return err
	}
	seen := r.Points[1]
	r.P50Millis, r.P99Millis = seen.P50Millis, seen.P99Millis
	r.note("the goal for different filters is 100,000/s; the latencies are from the call that adds one, while events are matched, until an event has met it: goal 5 ms")
	r.note("value and limit are those of rule rows, 10,000 at once; the limit makes them and appends each to a slice of its symbol (rule rows) or puts each text in a map (filters)")
	return w.err()
}

// runMemory is B9: what one subscription takes of the heap.
func runMemory(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.inProcess()
	r.Unit = "bytes"
	r.Params["subscriptions"] = n
	for _, kind := range []struct {
		workload, of string
		goal         float64
		facts        float64 // without the text as written
	}{
		// Place, subscriber and channel; and for a rule the symbol's number and a threshold.
		{"B1", "rule row", 64, 4 + 4 + 2 + 4 + 8},
		// Of the place one bit; and the filter's number.
		{"B3", "shared filter", 32, 4 + 4 + 2 + 0.125},
		{"B5", "different filter", 500, 4 + 4 + 2 + 4},
	} {
		got, err := l.match(r, matchSpec{Workload: kind.workload, Subscriptions: n})
		if err != nil {
			return err
		}
		least := kind.facts
		if kind.workload == "B5" {
			least += got.Conditions
		}
		r.point(Point{At: fmt.Sprintf("%s (goal %.0f)", kind.of, kind.goal), Value: got.HeapBytes, Limit: least})
	}
	r.Value = r.Points[0].Value
	r.limit(r.Points[0].Limit)
	r.note("value is that of a rule row; heap in use before and after, by subscription, with everything that the index holds")
	r.note("the limit is the facts alone: place, subscriber and channel, symbol and threshold, or the text of a different filter; the ratio is how many times that is taken")
	if n < 1_000_000 {
		r.note("with so few subscriptions the pages that the index begins with count most")
	}
	return nil
}
