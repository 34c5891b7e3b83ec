package matching

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/condition"
)

// An addsSpec describes subscriptions that a process of its own adds to an index.
type addsSpec struct {
	Workload      string
	Subscriptions int
	Single        int // further ones that are added one at a time, while events are matched
	Seed          uint64
	Profile       string
}

type addsResult struct {
	Groups   float64 // subscriptions a second, in groups
	Single   float64 // one at a time, while another thread matches
	P50, P99 float64 // milliseconds from the call until an event matches the subscription
	Beside   float64 // events a second of the other thread
	Bare     float64 // subscriptions a second, without an index
	Wrong    []string
}

// A growingWorkload has further subscriptions, each of which only one event of its own
// matches.
type growingWorkload interface {
	workload
	addition(k int) (e condition.Entry, event []byte)
	// bareAdd returns a function that stores the data of subscription i without an
	// index.
	bareAdd() func(i int)
}

func AddsPart(ctx context.Context, spec addsSpec, _ io.Reader, out *json.Encoder) error {
	made, err := newWorkload(spec.Workload, spec.Subscriptions, spec.Seed)
	if err != nil {
		return err
	}
	w, ok := made.(growingWorkload)
	if !ok {
		return fmt.Errorf("workload %s has no subscriptions to add", spec.Workload)
	}
	x := condition.New()
	if err := x.Define(matchKey, w.definition()); err != nil {
		return err
	}
	var result addsResult
	err = harness.Profiled(spec.Profile, func() error {
		took, _, err := fillIndex(x, w, 0, spec.Subscriptions)
		result.Groups = float64(spec.Subscriptions) / took.Seconds()
		return err
	})
	if err != nil {
		return err
	}
	if err := spec.oneByOne(ctx, x, w, &result); err != nil {
		return err
	}
	keep := w.bareAdd()
	started := time.Now()
	for i := range spec.Subscriptions {
		keep(i)
	}
	result.Bare = float64(spec.Subscriptions) / time.Since(started).Seconds()
	return out.Encode(result)
}

// oneByOne adds subscriptions one at a time and checks that an event matches each, while
// another thread matches events.
func (s addsSpec) oneByOne(ctx context.Context, x *condition.Index, w growingWorkload, result *addsResult) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var events atomic.Int64
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		var hits []condition.Hit
		for i := 0; ctx.Err() == nil && failed == nil; i++ {
			hits, failed = x.Match(matchKey, condition.Event{Data: w.event(i % harness.DistinctEvents)}, hits[:0])
			events.Add(1)
		}
	})
	var judged report.Checks
	var adding time.Duration
	took := make([]float64, s.Single)
	var hits []condition.Hit
	started := time.Now()
	for k := range took {
		e, event := w.addition(k)
		began := time.Now()
		err := x.Add(matchKey, []condition.Entry{e})
		adding += time.Since(began)
		if err == nil {
			hits, err = x.Match(matchKey, condition.Event{Data: event}, hits[:0])
		}
		if err != nil {
			return err
		}
		took[k] = report.Millis(time.Since(began))
		judged.Require(len(hits) == 1 && hits[0].Place == e.Place, "addition %d is in the index, but its event has %d hits", k, len(hits))
	}
	elapsed := time.Since(started).Seconds()
	cancel()
	wg.Wait()
	slices.Sort(took)
	result.Single, result.P50, result.P99 = float64(s.Single)/adding.Seconds(), report.Percentile(took, 50), report.Percentile(took, 99)
	result.Beside, result.Wrong = float64(events.Load())/elapsed, judged
	return failed
}

func (q *priceAlerts) addition(k int) (condition.Entry, []byte) {
	e := entryOf(q, q.n+k)
	e.Params = fmt.Appendf(nil, `{"symbol":"N%d","trigger":1}`, k)
	return e, fmt.Appendf(nil, `{"symbol":"N%d","price":1}`, k)
}

func (q *priceAlerts) bareAdd() func(i int) {
	type row struct {
		place   uint32
		trigger float64
	}
	rows := make([][]row, len(q.symbols.UpTo))
	return func(i int) {
		symbol, trigger := q.alert(i)
		rows[symbol] = append(rows[symbol], row{uint32(placeOf(i)), trigger})
	}
}

func (d distinctFilters) addition(k int) (condition.Entry, []byte) {
	e := entryOf(d, d.n+k)
	e.Filter = fmt.Sprintf("event.symbol == 'N%d' && event.price >= 1.0", k)
	return e, fmt.Appendf(nil, `{"symbol":"N%d","price":1.5}`, k)
}

func (d distinctFilters) bareAdd() func(i int) {
	texts := map[string]uint32{}
	return func(i int) {
		filter, _, _ := d.condition(i)
		texts[filter] = uint32(placeOf(i))
	}
}
