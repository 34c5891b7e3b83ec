package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A matchRate is how fast events were answered, and how fast the ids came.
type matchRate struct {
	Events, IDs float64
	P50, P99    float64 // microseconds of one event
	CPU         float64 // nanoseconds of one event, on whatever core
}

// matchedEvents is how many different ones go round.
const matchedEvents = 1 << 14

// timedEvery is how many events go by between two whose time is taken, as taking it
// takes a tenth of a microsecond.
const timedEvery = 16

// race has threads answer the events in turn until the time is over, at least one each. newAnswer
// makes what each of them calls with an event's number and gets the number of ids.
func race(threads int, limit time.Duration, newAnswer func() func(i int) (int, error)) (matchRate, error) {
	var over atomic.Bool
	var wg sync.WaitGroup
	type lap struct {
		events, ids int
		took        []float64
		err         error
	}
	laps := make([]lap, threads)
	timer := time.AfterFunc(limit, func() { over.Store(true) })
	defer timer.Stop()
	started, cpu := time.Now(), ownCPU()
	for t := range laps {
		answer := newAnswer()
		wg.Go(func() {
			var l lap
			i := t * matchedEvents / threads
			for l.events == 0 || !over.Load() {
				var began time.Time
				if l.events%timedEvery == 0 {
					began = time.Now()
				}
				n, err := answer(i & (matchedEvents - 1))
				if err != nil {
					l.err = err
					break
				}
				if l.events%timedEvery == 0 {
					l.took = append(l.took, float64(time.Since(began).Nanoseconds())/1000)
				}
				l.events++
				l.ids += n
				i++
			}
			laps[t] = l
		})
	}
	wg.Wait()
	elapsed, cpu := time.Since(started).Seconds(), ownCPU()-cpu
	var sum lap
	for _, l := range laps {
		if l.err != nil {
			return matchRate{}, l.err
		}
		sum.events, sum.ids, sum.took = sum.events+l.events, sum.ids+l.ids, append(sum.took, l.took...)
	}
	slices.Sort(sum.took)
	return matchRate{
		Events: float64(sum.events) / elapsed, IDs: float64(sum.ids) / elapsed,
		P50: percentile(sum.took, 50), P99: percentile(sum.took, 99),
		CPU: float64(cpu.Nanoseconds()) / float64(max(1, sum.events)),
	}, nil
}
