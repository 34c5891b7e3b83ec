package notifier

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// Notifier reports the outcomes of the recorder and the changes of the registry.
type Notifier struct {
	store     *deliveries.Store
	control   *control.Store
	registry  *registry.Registry
	collector *ingest.Ingester
	callbacks Callbacks // nil: none
	clock     clock.Clock
	logger    *slog.Logger

	posted  atomic.Int64 // outcomes and news, since the start
	waiting atomic.Int64 // outcomes and news that are not posted yet
	since   atomic.Int64 // time of the oldest waiting one, Unix nanoseconds; 0 if there is none

	mu    sync.Mutex
	dirty map[fanfare.Day]bool
	wake  chan struct{}

	manifests map[fanfare.DeliveryRef]*fanfare.Manifest // by day and id
	members   int                                       // total members of manifests
	events    map[fanfare.EventRef]*fanfare.AcceptedEvent
	fresh     map[string]bool // days, and the registry, that have no plan from an earlier run
}

const (
	// noticePause is how long outcomes are collected, so that an event contains many of them.
	noticePause = 200 * time.Millisecond
	// noticeGroups is the number of groups of outcomes or news in a plan, of at most two thousand each.
	noticeGroups = 64
	// noticePosts is the number of events that are posted together.
	noticePosts = 64
	// maxNoticeMembers and maxNoticeEvents bound the manifests and events in memory.
	maxNoticeMembers = 1_000_000
	maxNoticeEvents  = 10_000
)

func New(store *deliveries.Store, kept *control.Store, people *registry.Registry, clock clock.Clock, logger *slog.Logger) *Notifier {
	return &Notifier{store: store, control: kept, registry: people, clock: clock, logger: logger, dirty: map[fanfare.Day]bool{}, wake: make(chan struct{}, 1),
		manifests: map[fanfare.DeliveryRef]*fanfare.Manifest{}, events: map[fanfare.EventRef]*fanfare.AcceptedEvent{}, fresh: map[string]bool{}}
}

// Callbacks report outcomes of messages in another way than by events.
type Callbacks interface {
	// Wants reports whether the outcomes of a channel are reported.
	Wants(channel uint16) bool
	// Post returns when the reports are durable. It may be called with the same outcomes again.
	Post(ctx context.Context, outcomes []Outcome) error
}

// Hears reports whether a service wants to know the outcome of an entry.
func (n *Notifier) Hears(e *fanfare.Entry) bool {
	topic, _ := e.ToldAs()
	return n.callbacks != nil && n.callbacks.Wants(e.Channel) || n.registry.ChannelHasReservedSubscriptions(e.Channel, topic)
}

// MarkDay records that outcomes of a day are waiting to be posted.
func (n *Notifier) MarkDay(day fanfare.Day) {
	n.mu.Lock()
	n.dirty[day] = true
	n.mu.Unlock()
	n.hurry()
}

// hurry wakes the loop early.
func (n *Notifier) hurry() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// days removes and returns the days with waiting outcomes, the oldest first.
func (n *Notifier) days() []fanfare.Day {
	n.mu.Lock()
	defer n.mu.Unlock()
	var days []fanfare.Day
	for day := range n.dirty {
		days = append(days, day)
	}
	clear(n.dirty)
	slices.Sort(days)
	return days
}

// Run posts events until ctx ends. It begins with the work that an earlier run left.
func (n *Notifier) Run(ctx context.Context) {
	for n.remember(ctx) != nil {
		if retry.Sleep(ctx, retry.Pause) != nil {
			return
		}
	}
	for news := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-n.registry.NewNotices():
			news = true
		case <-n.wake:
		}
		if retry.Sleep(ctx, noticePause) != nil {
			return
		}
		days := n.days()
		n.measure(ctx, days...)
		if news {
			if news = !n.postAll(ctx, "registry", n.planNews); news {
				n.hurry()
			}
		}
		for _, day := range days {
			if !n.postAll(ctx, day.String(), func(ctx context.Context) (*eventBatch, error) { return n.planDay(ctx, day) }) {
				n.MarkDay(day)
			}
		}
		n.measure(ctx)
	}
}

// remember marks the registry and all stored days.
func (n *Notifier) remember(ctx context.Context) error {
	days, err := n.store.Days(ctx)
	for _, day := range days {
		n.MarkDay(day)
	}
	n.hurry()
	return err
}

// measure counts the waiting outcomes and news, on marked days and on the days in and.
func (n *Notifier) measure(ctx context.Context, and ...fanfare.Day) {
	days := and
	n.mu.Lock()
	for day := range n.dirty {
		if !slices.Contains(and, day) {
			days = append(days, day)
		}
	}
	n.mu.Unlock()
	var sum, oldest int64
	add := func(waiting int64, since time.Time, err error) {
		if err != nil || waiting == 0 {
			return
		}
		sum += waiting
		if at := since.UnixNano(); oldest == 0 || at < oldest {
			oldest = at
		}
	}
	add(n.control.WaitingNotices(ctx))
	for _, day := range days {
		add(n.store.WaitingNotices(ctx, day))
	}
	n.waiting.Store(sum)
	n.since.Store(oldest)
}

// Lag returns how long the oldest outcome or news has waited.
func (n *Notifier) Lag() time.Duration {
	since := n.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, n.clock.Now().Sub(time.Unix(0, since)))
}

// An eventBatch is a plan with its events.
type eventBatch struct {
	events []fanfare.AcceptedEvent
	called []Outcome // for callbacks
	count  int       // outcomes or news in the events
	last   bool      // no further work was waiting when the plan was made
	forget func(ctx context.Context) error
}

// Posted returns how many outcomes and news were posted since the start.
func (n *Notifier) Posted() int64 { return n.posted.Load() }

// Waiting returns how many outcomes and news wait to be posted.
func (n *Notifier) Waiting() int64 { return n.waiting.Load() }

// PostTo sets ingest, which starts after the recorder. It must be called before Run.
func (n *Notifier) PostTo(c *ingest.Ingester) { n.collector = c }

// CallBack sets the callbacks. It must be called before outcomes are recorded.
func (n *Notifier) CallBack(c Callbacks) { n.callbacks = c }

// postAll posts the work of a day, or of the registry. It returns false if the caller must
// try again. A plan from an earlier run, or from a failed attempt, does not show whether
// more work was added after it, so only a fresh plan ends the loop.
func (n *Notifier) postAll(ctx context.Context, of string, plan func(context.Context) (*eventBatch, error)) bool {
	for {
		next, err := plan(ctx)
		if err == nil && next == nil {
			n.fresh[of] = true
			return true
		}
		if err == nil {
			failpoint.Hit("before-notices")
			err = n.post(ctx, next.events)
		}
		if err == nil && len(next.called) > 0 {
			err = n.callbacks.Post(ctx, next.called)
		}
		if err == nil {
			failpoint.Hit("after-notices")
			err = next.forget(ctx)
		}
		if err != nil {
			delete(n.fresh, of)
			if ctx.Err() == nil {
				n.logger.Log(ctx, retry.LogLevel(err), "cannot post events about deliveries and subscribers to services; retrying", "of", of, "error", err)
				_ = retry.Sleep(ctx, retry.Pause) // the loop ends when ctx does
			}
			return false
		}
		n.posted.Add(int64(next.count))
		if next.last && n.fresh[of] {
			return true
		}
		n.measure(ctx)
	}
}

// post appends events to EVENTS and returns when they are durable.
func (n *Notifier) post(ctx context.Context, events []fanfare.AcceptedEvent) error {
	for some := range slices.Chunk(events, noticePosts) {
		results, err := n.collector.Post(ctx, some)
		if err != nil {
			return err
		}
		for i := range results {
			err := results[i].Err
			if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
				continue // the service has removed the topic
			}
			if err != nil {
				return fmt.Errorf("event %s of %s/%s: %w", some[i].Event.ID, some[i].Service, some[i].Topic, err)
			}
		}
	}
	return nil
}
