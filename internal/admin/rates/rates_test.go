package rates

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/control"
)

// memory stores minutes, unless it fails.
type memory struct {
	mu     sync.Mutex
	fail   error
	bodies map[int64]string
	trims  []int64
}

func (m *memory) AddMinutes(_ context.Context, minutes []control.Minute, merge func(stored, more string) (string, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, one := range minutes {
		if stored, ok := m.bodies[one.At]; ok {
			merged, err := merge(stored, one.Body)
			if err != nil {
				return err
			}
			one.Body = merged
		}
		m.bodies[one.At] = one.Body
	}
	return nil
}

func (m *memory) Minutes(_ context.Context, since, until int64, visit func(control.Minute) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(m.bodies)) {
		if at < since || at >= until {
			continue
		}
		if err := visit(control.Minute{At: at, Body: m.bodies[at]}); err != nil {
			return err
		}
	}
	return m.fail
}

func (m *memory) TrimMinutes(_ context.Context, before int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trims = append(m.trims, before)
	maps.DeleteFunc(m.bodies, func(at int64, _ string) bool { return at < before })
	return nil
}

// world is a server whose counters tests change with set.
type world struct {
	mu     sync.Mutex
	store  *memory
	totals Totals
	levels Levels
}

func newWorld() *world { return &world{store: &memory{bodies: map[int64]string{}}} }

func (w *world) sampler() *Sampler {
	return New(Options{Store: w.store, Totals: w.total, Levels: w.level, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
}

func (w *world) total() Totals {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.totals
}

func (w *world) level(context.Context) (Levels, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.levels, nil
}

// set changes counters, or whether the store fails.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	change()
}

// run runs a sampler until the function that it returns is called.
func run(s *Sampler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	return func() { cancel(); <-ended; s.Finish() }
}

// read returns the rows of a period in a step.
func (w *world) read(t *testing.T, since, until time.Time, step time.Duration) []wire.Rate {
	t.Helper()
	r, err := Reader{w.store}.Rates(t.Context(), since, until, step)
	if err != nil {
		t.Fatal(err)
	}
	return r.Rates
}

func TestEachMinuteHasItsOwnCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble begins at a whole minute
		begun := time.Now().UTC()
		w := newWorld()
		w.set(func() { w.totals.Events[fanfare.Normal] = 5 }) // before the sampler starts
		stop := run(w.sampler())
		<-time.After(30 * time.Second)
		w.set(func() {
			w.totals.Events[fanfare.Normal], w.totals.Outcomes[fanfare.Accepted], w.levels.Pending = 7, 100, 40
		})
		<-time.After(time.Minute)
		synctest.Wait()
		w.set(func() {
			w.totals.Outcomes[fanfare.Accepted], w.totals.Outcomes[fanfare.Failed], w.levels.Pending = 130, 1, 10
		})
		<-time.After(time.Minute)
		stop()
		rows := w.read(t, begun, begun.Add(time.Hour), time.Minute)
		if len(rows) != 3 {
			t.Fatalf("%d rows: %+v", len(rows), rows)
		}
		if r := rows[0]; !r.At.Equal(begun) || r.Minutes != 1 || r.Events.Normal != 7 || r.Outcomes[fanfare.Accepted] != 100 || r.Pending != 40 {
			t.Errorf("the first minute is %+v", r)
		}
		if r := rows[1]; r.Events.Normal != 0 || r.Outcomes[fanfare.Accepted] != 30 || r.Outcomes[fanfare.Failed] != 1 || r.Pending != 10 {
			t.Errorf("the second minute is %+v", r)
		}
		rows = w.read(t, begun.Add(20*time.Second), begun.Add(time.Hour), time.Hour)
		if len(rows) != 1 || rows[0].Minutes != 3 || rows[0].Events.Normal != 7 || rows[0].Outcomes[fanfare.Accepted] != 130 || rows[0].Pending != 40 {
			t.Errorf("the hour is %+v", rows)
		}
	})
}

func TestAMinuteWithARestartHasTheValuesOfBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := newWorld()
		stop := run(w.sampler())
		<-time.After(10 * time.Second)
		w.set(func() { w.totals.Outcomes[fanfare.Accepted], w.levels.Deferred = 10, 3 })
		stop()
		<-time.After(10 * time.Second)
		w.set(func() { w.totals, w.levels = Totals{}, Levels{} })
		stop = run(w.sampler())
		<-time.After(10 * time.Second)
		w.set(func() { w.totals.Outcomes[fanfare.Accepted], w.levels.Deferred = 5, 1 })
		stop()
		if rows := w.read(t, begun, begun.Add(time.Hour), time.Minute); len(rows) != 1 || rows[0].Outcomes[fanfare.Accepted] != 15 || rows[0].Deferred != 3 || rows[0].Minutes != 1 {
			t.Errorf("the minute is %+v", rows)
		}
	})
}

func TestMinutesWithoutAServerAreAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := newWorld()
		run(w.sampler())()
		<-time.After(10 * time.Minute)
		run(w.sampler())()
		rows := w.read(t, begun, begun.Add(time.Hour), 5*time.Minute)
		if len(rows) != 2 || !rows[1].At.Equal(begun.Add(10*time.Minute)) {
			t.Errorf("the rows are %+v", rows)
		}
	})
}

func TestMinutesOfAnOutageAreStoredAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := newWorld()
		stop := run(w.sampler())
		w.set(func() { w.store.fail = errors.New("no database") })
		<-time.After(90*time.Minute + time.Second)
		synctest.Wait()
		w.set(func() { w.totals.Outcomes[fanfare.Accepted] = 1 })
		w.set(func() { w.store.fail = nil })
		stop()
		if rows := w.read(t, begun, begun.Add(2*time.Hour), time.Minute); len(rows) != maxWaiting || rows[len(rows)-1].Outcomes[fanfare.Accepted] != 1 {
			t.Errorf("%d rows", len(rows))
		}
	})
}

func TestOldValuesAreDeletedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.store.bodies[time.Now().Add(-Age-time.Minute).Unix()] = `{}`
		stop := run(w.sampler())
		<-time.After(3*time.Hour + time.Second)
		stop()
		if len(w.store.trims) != 3 || len(w.store.bodies) != 181 {
			t.Errorf("%d deletions, %d minutes", len(w.store.trims), len(w.store.bodies))
		}
	})
}

func TestAPeriodIsLimited(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	for _, test := range []struct {
		since, until time.Time
		step         time.Duration
		ok           bool
	}{
		{at.Add(-24 * time.Hour), at, time.Minute, true},
		{at.Add(time.Minute - 25*time.Hour), at, time.Minute, true},
		{at.Add(-25 * time.Hour), at, time.Minute, false}, // 1,500 steps and a half
		{at.Add(-26 * time.Hour), at, time.Minute, false},
		{at.Add(-8 * 24 * time.Hour), at, time.Hour, true},
		{at.Add(-8 * 24 * time.Hour), at, 7 * time.Minute, false},
		{time.Time{}, at, time.Hour, false},
		{at, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour, false},
		{at, at.Add(-time.Minute), time.Minute, false},
		{at, at, time.Hour, true}, // the running step
		{at.Add(-time.Hour), at, 0, false},
		{at.Add(-time.Hour), at, -time.Minute, false},
		{at.Add(-time.Hour), at, 90 * time.Second, false},
		{at.Add(-time.Hour), at, 2 * time.Hour, false},
	} {
		w := newWorld()
		_, err := Reader{w.store}.Rates(t.Context(), test.since, test.until, test.step)
		if test.ok != (err == nil) || err != nil && fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s to %s in %s: %v", test.since, test.until, test.step, err)
		}
	}
}

func TestUnreadableValuesAreUnknown(t *testing.T) {
	w := newWorld()
	w.store.bodies[60], w.store.bodies[120] = "damaged", `{"events":[1,2,3],"outcomes":{"accepted":4,"unknown":1},"batches":9,"later":true}`
	rows := w.read(t, time.Unix(0, 0), time.Unix(3600, 0), time.Minute)
	if len(rows) != 1 || rows[0].Events.Bulk != 3 || rows[0].Outcomes[fanfare.Accepted] != 4 || rows[0].BatchesPending != 9 {
		t.Errorf("the rows are %+v", rows)
	}
	if body, err := merge("damaged", `{"events":[1,0,0]}`); err != nil || body != `{"events":[1,0,0],"outcomes":{},"event_groups":[0,0,0]}` {
		t.Errorf("merged with damaged values: %s, %v", body, err)
	}
}
