package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// MeasureMillis is how long a rate is measured in a process of its own: 3 s, and less at
// small scales.
func (l *Env) MeasureMillis() int { return int(1000 * max(0.15, min(3, 3*l.Scale))) }

// Profile returns the path of a CPU profile, or "" if no profile was asked for.
func (l *Env) Profile(name string) (string, error) {
	if l.Pprof == "" {
		return "", nil
	}
	return filepath.Join(l.Pprof, fmt.Sprintf("%s-%d.pprof", name, time.Now().UnixMilli())), os.MkdirAll(l.Pprof, 0o750)
}

// Profiled calls do and writes a CPU profile of it to path. It writes none if path is
// empty.
func Profiled(path string, do func() error) error {
	if path == "" {
		return do()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	err = do()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

// A Rate is the speed at which threads have answered events.
type Rate struct {
	Events, IDs float64
	P50, P99    float64 // microseconds of one event
	CPU         float64 // nanoseconds of one event, over all cores
}

// DistinctEvents is the number of different events, which the threads use in turn.
const DistinctEvents = 1 << 14

// timedEvery is the number of events of which one is timed, since reading the time takes
// a tenth of a microsecond.
const timedEvery = 16

// RunThreads lets threads answer events until the time is over, at least one event each.
// newAnswer returns the function that a thread calls with the number of an event; it
// returns the number of ids.
func RunThreads(threads int, limit time.Duration, newAnswer func() func(i int) (int, error)) (Rate, error) {
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
	started, cpu := time.Now(), OwnCPU()
	for t := range laps {
		answer := newAnswer()
		wg.Go(func() {
			var l lap
			i := t * DistinctEvents / threads
			for l.events == 0 || !over.Load() {
				var began time.Time
				if l.events%timedEvery == 0 {
					began = time.Now()
				}
				n, err := answer(i & (DistinctEvents - 1))
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
	elapsed, cpu := time.Since(started).Seconds(), OwnCPU()-cpu
	var sum lap
	for _, l := range laps {
		if l.err != nil {
			return Rate{}, l.err
		}
		sum.events, sum.ids, sum.took = sum.events+l.events, sum.ids+l.ids, append(sum.took, l.took...)
	}
	slices.Sort(sum.took)
	return Rate{
		Events: float64(sum.events) / elapsed, IDs: float64(sum.ids) / elapsed,
		P50: report.Percentile(sum.took, 50), P99: report.Percentile(sum.took, 99),
		CPU: float64(cpu.Nanoseconds()) / float64(max(1, sum.events)),
	}, nil
}
