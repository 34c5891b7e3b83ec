// Package rates keeps the values that the console plots: for each minute, the counts of events and outcomes, and the amounts of waiting work.
//
// State. The values of a minute are one row of the control part, which is kept for 8 days. Counts come from counters in memory. The values of the running
// minute, and of minutes that could not be stored yet, are in memory. In a cluster, the node that leads stores the values.
//
// Failure. A minute in which the server did not run has no row. A minute in which the server was restarted, or another node took over, has the values of both.
// While the database cannot be reached, at most an hour is retained. A killed server loses the running minute.
package rates

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// Age is how long the values of a minute are kept.
	Age = 8 * 24 * time.Hour

	maxWaiting = 60          // minutes that could not be stored yet
	trimEvery  = time.Hour   // interval at which old values are deleted
	storeTime  = time.Second // that the last minute may take while the server stops
)

// Totals are counters that only grow while the server runs.
type Totals struct {
	Events   [len(fanfare.Lanes)]int64 // accepted, by lane
	Outcomes fanfare.Counts            // of attempts, by the state that followed
}

// Levels are amounts of waiting work at one moment.
type Levels struct {
	Broadcasts  int64                     `json:"broadcasts,omitempty"` // that are not completed
	Pending     int64                     `json:"pending,omitempty"`    // deliveries without an attempt
	Deferred    int64                     `json:"deferred,omitempty"`   // deliveries between two attempts
	Batches     int64                     `json:"batches,omitempty"`    // on the bus
	EventGroups [len(fanfare.Lanes)]int64 `json:"event_groups"`         // on the bus, by lane
}

// Store stores the values of minutes; *control.Store has these methods.
type Store interface {
	// AddMinutes stores values by the Unix time of their minute. merge returns the values of a minute that has some already.
	AddMinutes(ctx context.Context, minutes []control.Minute, merge func(stored, more string) (string, error)) error
	// Minutes visits the minutes from since until before until, the oldest first.
	Minutes(ctx context.Context, since, until int64, visit func(control.Minute) error) error
	TrimMinutes(ctx context.Context, before int64) error
}

// Options are the sources of the values.
type Options struct {
	Store  Store
	Totals func() Totals
	Levels func(ctx context.Context) (Levels, error) // with an error, those that are known
	Clock  clock.Clock
	Logger *slog.Logger
}

// A Sampler stores the values of each minute. Its methods are for one goroutine, except Read.
type Sampler struct {
	options Options
	minute  time.Time // the running one
	counted Totals    // until the start of the running minute
	waiting []control.Minute
	trimmed time.Time
}

// New returns a Sampler whose first minute begins now. The counts before now belong to it.
func New(o Options) *Sampler {
	return &Sampler{options: o, minute: o.Clock.Now().Truncate(time.Minute)}
}

// Run stores the values of each minute until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.minute.Add(time.Minute).Sub(s.options.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := s.store(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Log(ctx, retry.LogLevel(err), "cannot store the values of the last minute; retrying", "error", err, "minutes", len(s.waiting))
		}
		if err := s.trim(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Log(ctx, retry.LogLevel(err), "cannot delete old values of minutes; retrying", "error", err)
		}
	}
}

// Finish stores the values of the running minute after Run has ended.
func (s *Sampler) Finish() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := s.store(ctx); err != nil {
		s.options.Logger.Debug("the values of the last minute were not stored", "error", err)
	}
}

// store ends the running minute, and stores its values and those that could not be stored before.
func (s *Sampler) store(ctx context.Context) error {
	ended, now := s.minute, s.options.Totals()
	v := values{Minutes: 1, Events: now.Events}
	for lane := range v.Events {
		v.Events[lane] -= s.counted.Events[lane]
	}
	for state := range v.Outcomes {
		v.Outcomes[state] = now.Outcomes[state] - s.counted.Outcomes[state]
	}
	s.minute, s.counted = s.options.Clock.Now().Truncate(time.Minute), now
	var err error
	if v.Levels, err = s.options.Levels(ctx); err != nil {
		s.options.Logger.Debug("some values of the last minute are unknown", "error", err)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.waiting = append(s.waiting, control.Minute{At: ended.Unix(), Body: string(body)})
	s.waiting = s.waiting[max(0, len(s.waiting)-maxWaiting):]
	if err := s.options.Store.AddMinutes(ctx, s.waiting, merge); err != nil {
		return err
	}
	s.waiting = nil
	return nil
}

// trim deletes old values once an hour.
func (s *Sampler) trim(ctx context.Context) error {
	now := s.options.Clock.Now()
	if now.Sub(s.trimmed).Abs() < trimEvery {
		return nil
	}
	if err := s.options.Store.TrimMinutes(ctx, now.Add(-Age).Unix()); err != nil {
		return err
	}
	s.trimmed = now
	return nil
}

// values are the values of one or more minutes, in the form that is stored.
type values struct {
	Minutes  int                       `json:"-"`
	Events   [len(fanfare.Lanes)]int64 `json:"events"`
	Outcomes fanfare.Counts            `json:"outcomes"`
	Levels
}

// add adds other values: the sums of counts, and the maxima of levels.
func (v *values) add(o *values) {
	v.Minutes += o.Minutes
	for lane := range v.Events {
		v.Events[lane] += o.Events[lane]
		v.EventGroups[lane] = max(v.EventGroups[lane], o.EventGroups[lane])
	}
	for state := range v.Outcomes {
		v.Outcomes[state] += o.Outcomes[state]
	}
	v.Broadcasts, v.Pending, v.Deferred, v.Batches = max(v.Broadcasts, o.Broadcasts), max(v.Pending, o.Pending), max(v.Deferred, o.Deferred), max(v.Batches, o.Batches)
}

// merge returns the values of two parts of the same minute.
func merge(stored, more string) (string, error) {
	var a, b values
	err := json.Unmarshal([]byte(more), &b)
	if err == nil && json.Unmarshal([]byte(stored), &a) == nil { // values that cannot be read are replaced
		b.add(&a)
	}
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(b)
	return string(body), err
}
