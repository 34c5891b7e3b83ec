package digest

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A Slot is a cadence of a service in a time zone.
type Slot = cadence.Slot

// A Move is a subscription whose slot has changed.
type Move = cadence.Move

// Slots is what people chose.
type Slots interface {
	Slot(number uint16) (Slot, bool)
	// Slots lists those that active subscriptions have.
	Slots() []Slot
	// Moves lists subscriptions of which something may have to be carried over, and
	// Carried says, durably, that it was.
	Moves() []Move
	Carried(context.Context, []Move) error
}

// A Topic says how events of a topic are told together.
type Topic struct {
	Template uint32                              // version
	Max      int                                 // events that a member is told of
	Key      func(*fanfare.Event) (string, bool) // what an event is a version of; none: it stands alone
}

// Options are the parts that a Gathering works with.
type Options struct {
	Store *deliveries.Store
	Slots Slots
	Clock clock.Clock
	// Topic finds a topic whose events are told together.
	Topic func(service, topic string) (Topic, bool)
	// Live reports whether a subscription is active.
	Live func(fanfare.RowID) bool
	// State visits the last events of keys that subscriptions of a slot want, each
	// with their hits.
	State func(ctx context.Context, of Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error
	// Publish puts a run among the events. It may be put there again.
	Publish func(context.Context, *fanfare.AcceptedEvent) error
	Logger  *slog.Logger
}

// A Gathering holds back what is not due. Step belongs to one goroutine, all else is
// safe for concurrent use.
type Gathering struct {
	Options
	gate

	running sync.Mutex // held while a run is merged and frozen, or something carried over

	mu   sync.Mutex
	runs map[runKey]*run
	wake chan struct{}
}

type runKey struct {
	slot uint16
	due  int64 // unix seconds
}

// A run is what something waits for.
type run struct {
	deliveries.Waiting
	days      map[fanfare.Day]struct{} // on which something waits for it
	published bool                     // known to whoever steps
	frozen    bool
}

func (r *run) key() runKey { return runKey{r.Slot, r.Due.Unix()} }

// New returns a gathering that knows of nothing that waits. Load comes before all else.
func New(o Options) *Gathering {
	return &Gathering{Options: o, gate: gate{clock: o.Clock, slots: o.Slots}, runs: map[runKey]*run{}, wake: make(chan struct{}, 1)}
}

// Load learns what waits on some days, and which runs there were.
func (g *Gathering) Load(ctx context.Context, days []fanfare.Day) error {
	for _, day := range days {
		if err := g.learn(ctx, day); err != nil {
			return err
		}
		if err := g.Store.LastRuns(ctx, day, g.close); err != nil {
			return err
		}
	}
	for _, r := range g.those(func(*run) bool { return true }) {
		_, frozen, err := g.Store.RunAt(ctx, r.Slot, r.Due)
		if err != nil {
			return err
		}
		if frozen {
			g.over(&fanfare.Run{Slot: r.Slot, Due: r.Due})
		}
	}
	return nil
}

// learn reads what waits on a day.
func (g *Gathering) learn(ctx context.Context, day fanfare.Day) error {
	waiting, err := g.Store.Pending(ctx, day)
	if err == nil {
		g.await(day, waiting...)
	}
	return err
}

func (g *Gathering) learnAll(ctx context.Context) error {
	days, err := g.Store.Days(ctx)
	for _, day := range days {
		if err := unlessGone(g.learn(ctx, day)); err != nil {
			return err
		}
	}
	return err
}

// unlessGone leaves out that a day is there no more: what was of it is gone with it,
// and holds nothing up.
func unlessGone(err error) error {
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil
	}
	return err
}

// await notes that something of a day waits for runs.
func (g *Gathering) await(day fanfare.Day, waiting ...deliveries.Waiting) {
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

// those lists some of the runs.
func (g *Gathering) those(which func(*run) bool) (list []*run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.runs {
		if which(r) {
			list = append(list, r)
		}
	}
	return list
}

func (g *Gathering) daysOf(r *run) []fanfare.Day {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(r.days))
}

// Begin begins a round of matching.
func (g *Gathering) Begin() *Round {
	r := g.begin()
	r.gathering = g
	return r
}

// Kept notes what was frozen, before the round ends. Of an event that was frozen
// before, what waits is read again: whoever froze it may not have known.
func (g *Gathering) Kept(ctx context.Context, frozen []*fanfare.MatchResult, fresh []bool) error {
	woken := false
	for i, f := range frozen {
		day := fanfare.DayOf(f.Posted.ReceivedAt)
		if run := f.Posted.Run; run != nil {
			g.over(run)
			woken = true
		}
		if len(f.Gathered) > 0 && !fresh[i] {
			if err := g.learn(ctx, day); err != nil {
				return err
			}
		}
		for j := range f.Gathered {
			g.await(day, deliveries.Waiting{Slot: f.Gathered[j].Slot, Due: f.Gathered[j].Due, Service: f.Posted.Service})
		}
	}
	if woken {
		g.Wake()
	}
	return nil
}

// over notes that a run is frozen.
func (g *Gathering) over(of *fanfare.Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.runs[runKey{of.Slot, of.Due.Unix()}]; r != nil {
		r.frozen = true
	}
}

// Wake has the next step come at once.
func (g *Gathering) Wake() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
