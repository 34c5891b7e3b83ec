package matching

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/condition"
)

// A matchSpec describes a workload for a process of its own, so that only the index and
// its events count as memory.
type matchSpec struct {
	Workload      string
	Subscriptions int
	Seed          uint64
	Threads       int // threads that match
	Millis        int // duration; 0 only fills the index
	Profile       string
}

// A matchResult is the result of a workload. Rates are per second.
type matchResult struct {
	Filled     float64      // seconds in Add alone
	HeapBytes  float64      // bytes of heap for a subscription
	Conditions float64      // bytes of text of a subscription
	Events     harness.Rate // ordered hits
	Bare       harness.Rate // the same work without conditions
	Naive      float64      // nanoseconds of cel-go for one subscription and one event
	Sample     int          // evaluations behind that
	EventSize  int
	Wrong      []string
}

var matchKey = condition.Key{Service: loadgen.Service, Topic: "workload"}

func MatchPart(_ context.Context, spec matchSpec, _ io.Reader, out *json.Encoder) error {
	w, err := newWorkload(spec.Workload, spec.Subscriptions, spec.Seed)
	if err != nil {
		return err
	}
	var result matchResult
	before := heapInUse()
	x := condition.New()
	if err := x.Define(matchKey, w.definition()); err != nil {
		return err
	}
	took, written, err := fillIndex(x, w, 0, spec.Subscriptions)
	if err != nil {
		return err
	}
	result.Filled = took.Seconds()
	result.HeapBytes = float64(heapInUse()-before) / float64(spec.Subscriptions)
	result.Conditions = float64(written) / float64(spec.Subscriptions)
	if spec.Millis > 0 {
		if err := spec.measure(x, w, &result); err != nil {
			return err
		}
	}
	runtime.KeepAlive(x)
	return out.Encode(result)
}

// fillGroup is the number of subscriptions that are added in one call, as a bulk import
// does.
const fillGroup = 10_000

// fillIndex adds the subscriptions from up to to. It returns the time in Add alone, and
// the bytes of the conditions.
func fillIndex(x *condition.Index, w workload, from, to int) (took time.Duration, written int64, err error) {
	group := make([]condition.Entry, 0, fillGroup)
	for from < to {
		group = group[:0]
		for ; from < to && len(group) < fillGroup; from++ {
			e := entryOf(w, from)
			written += int64(len(e.Filter) + len(e.Params))
			group = append(group, e)
		}
		started := time.Now()
		if err := x.Add(matchKey, group); err != nil {
			return took, written, err
		}
		took += time.Since(started)
	}
	return took, written, nil
}

// heapInUse returns the heap memory in use after a garbage collection.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s matchSpec) measure(x *condition.Index, w workload, result *matchResult) error {
	events := make([][]byte, harness.DistinctEvents)
	for i := range events {
		events[i] = w.event(i)
		result.EventSize += len(events[i])
	}
	result.EventSize /= len(events)
	if err := checkAgainstCEL(x, w, s.Subscriptions, events, result); err != nil {
		return err
	}
	hits := func() func(i int) (int, error) {
		var hits []condition.Hit
		return func(i int) (int, error) {
			var err error
			hits, err = x.Match(matchKey, condition.Event{Data: events[i]}, hits[:0])
			return len(hits), err
		}
	}
	took := time.Duration(s.Millis) * time.Millisecond
	if _, err := harness.RunThreads(s.Threads, took/10, hits); err != nil { // allocates what is reused
		return err
	}
	runtime.GC()
	err := harness.Profiled(s.Profile, func() (err error) {
		result.Events, err = harness.RunThreads(s.Threads, took, hits)
		return err
	})
	if err != nil {
		return err
	}
	return s.measureBare(x, w, events, result)
}

// measureBare compares the hits of some events with the limit, if the limit is exact,
// and measures the rate of the limit.
func (s matchSpec) measureBare(x *condition.Index, w workload, events [][]byte, result *matchResult) error {
	bare := w.bare(len(events))
	var judged report.Checks
	for i := 0; bare.exact && i < len(events); i += len(events) / 64 {
		hits, err := x.Match(matchKey, condition.Event{Data: events[i]}, nil)
		if err != nil {
			return err
		}
		want := bare.answer(i, events[i], nil)
		slices.Sort(want)
		got := make([]uint32, len(hits))
		for k, h := range hits {
			got[k] = uint32(h.Place)
		}
		judged.Require(slices.Equal(got, want), "event %d has %d hits, expected %d", i, len(got), len(want))
	}
	result.Wrong = append(result.Wrong, judged...)
	runtime.GC()
	var err error
	result.Bare, err = harness.RunThreads(s.Threads, time.Duration(s.Millis)*time.Millisecond/3, func() func(i int) (int, error) {
		var places []uint32
		return func(i int) (int, error) {
			places = bare.answer(i, events[i], places[:0])
			return len(places), nil
		}
	})
	return err
}
