package digest

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A Slot is a cadence of a service in a time zone.
type Slot = cadence.Slot

// A Move is a subscription whose slot has changed.
type Move = cadence.Move

// Slots provides the slots of subscriptions.
type Slots interface {
	Slot(number uint16) (Slot, bool)
	// Slots lists the slots of active subscriptions.
	Slots() []Slot
	// PendingMoves lists subscriptions whose waiting events may have to move to another run. ConfirmMoves
	// notes durably that they have moved.
	PendingMoves() []Move
	ConfirmMoves(context.Context, []Move) error
}

// A Topic specifies how a digest reports the events of a topic.
type Topic struct {
	Template uint32                              // version of the digest template
	Max      int                                 // events in a message
	Key      func(*fanfare.Event) (string, bool) // only the newest event of a key is reported; nil: all are
}

// Options are the parts that a Scheduler works with.
type Options struct {
	Store *deliveries.Store
	Slots Slots
	Clock clock.Clock
	// Topic returns how events of a topic are reported; false if they are not.
	Topic func(service, topic string) (Topic, bool)
	// Live reports whether a subscription is active.
	Live func(fanfare.RowID) bool
	// State visits the last event of each key that matches subscriptions of a slot, with their
	// hits.
	State func(ctx context.Context, of Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error
	// Publish appends a run to the events. It may be appended again.
	Publish func(context.Context, *fanfare.AcceptedEvent) error
	Logger  *slog.Logger
}

// A Scheduler holds back recipients until their digest is due. Step belongs to one goroutine; the
// other methods are safe for concurrent use.
type Scheduler struct {
	Options
	rounds

	running sync.Mutex // held while a run is merged and frozen, and while events are rescheduled

	mu   sync.Mutex
	runs map[runKey]*run
	wake chan struct{}
}

type runKey struct {
	slot uint16
	due  int64 // unix seconds
}

// A run is a digest for which events wait.
type run struct {
	deliveries.Waiting
	days      map[fanfare.Day]struct{} // whose events wait for it
	published bool                     // used only by Step
	frozen    bool
}

func (r *run) key() runKey { return runKey{r.Slot, r.Due.Unix()} }

// New returns a Scheduler without runs. Call Load first.
func New(o Options) *Scheduler {
	return &Scheduler{Options: o, rounds: rounds{clock: o.Clock, slots: o.Slots}, runs: map[runKey]*run{}, wake: make(chan struct{}, 1)}
}

// Load reads the runs for which events of some days wait, and the runs that were published. It counts the days.
func (g *Scheduler) Load(ctx context.Context, days []fanfare.Day, count *progress.Phase) error {
	for _, day := range days {
		if err := g.loadDay(ctx, day); err != nil {
			return err
		}
		if err := g.Store.LastRuns(ctx, day, g.closeSlot); err != nil {
			return err
		}
		count.Add(1)
	}
	for _, r := range g.selectRuns(func(*run) bool { return true }) {
		_, frozen, err := g.Store.RunAt(ctx, r.Slot, r.Due)
		if err != nil {
			return err
		}
		if frozen {
			g.markFrozen(&fanfare.Run{Slot: r.Slot, Due: r.Due})
		}
	}
	return nil
}

// loadDay reads the runs for which events of a day wait.
func (g *Scheduler) loadDay(ctx context.Context, day fanfare.Day) error {
	waiting, err := g.Store.Pending(ctx, day)
	if err == nil {
		g.addWaiting(day, waiting...)
	}
	return err
}

func (g *Scheduler) loadAll(ctx context.Context) error {
	days, err := g.Store.Days(ctx)
	for _, day := range days {
		if err := ignoreRemoved(g.loadDay(ctx, day)); err != nil {
			return err
		}
	}
	return err
}

// ignoreRemoved returns nil for the error of a removed day, whose events are removed with it.
func ignoreRemoved(err error) error {
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil
	}
	return err
}

// addWaiting notes that events of a day wait for runs.
func (g *Scheduler) addWaiting(day fanfare.Day, waiting ...deliveries.Waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range waiting {
		key := runKey{w.Slot, w.Due.Unix()}
		r := g.runs[key]
		if r == nil {
			r = &run{Waiting: w, days: map[fanfare.Day]struct{}{}}
			g.runs[key] = r
		}
		r.days[day] = struct{}{}
	}
}

// selectRuns lists the runs that which accepts.
func (g *Scheduler) selectRuns(which func(*run) bool) (list []*run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.runs {
		if which(r) {
			list = append(list, r)
		}
	}
	return list
}

func (g *Scheduler) daysOf(r *run) []fanfare.Day {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(r.days))
}

// Begin begins a round of matching.
func (g *Scheduler) Begin() *Round {
	r := g.begin()
	r.scheduler = g
	return r
}

// Committed records results that are frozen, before the round ends. For an event that was frozen
// before, it reads the runs from the store: the earlier attempt may have failed before it noted
// them.
func (g *Scheduler) Committed(ctx context.Context, frozen []*fanfare.MatchResult, fresh []bool) error {
	wake := false
	for i, f := range frozen {
		day := fanfare.DayOf(f.Posted.ReceivedAt)
		if run := f.Posted.Run; run != nil {
			g.markFrozen(run)
			wake = true
		}
		if len(f.Gathered) > 0 && !fresh[i] {
			if err := g.loadDay(ctx, day); err != nil {
				return err
			}
		}
		for j := range f.Gathered {
			g.addWaiting(day, deliveries.Waiting{Slot: f.Gathered[j].Slot, Due: f.Gathered[j].Due, Service: f.Posted.Service})
		}
	}
	if wake {
		g.Wake()
	}
	return nil
}

// markFrozen notes that a run is frozen.
func (g *Scheduler) markFrozen(of *fanfare.Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.runs[runKey{of.Slot, of.Due.Unix()}]; r != nil {
		r.frozen = true
	}
}

// Wake starts the next step now.
func (g *Scheduler) Wake() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
