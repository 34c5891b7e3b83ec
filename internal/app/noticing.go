package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/collect"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// noticing tells services what became of their deliveries, and what their people did,
// as events of the topics fanfare.* that they have declared: it follows behind the
// record and the registry. What is to be told was kept with what it tells of. It is
// planned, posted, and forgotten: after a crash between any two of these the plan is
// posted again, under the same ids, which intake knows.
type noticing struct {
	store     *deliveries.Store
	control   *control.Store
	registry  *registry.Registry
	collector *collect.Collector
	clock     kit.Clock
	logger    *slog.Logger

	told    atomic.Int64 // outcomes and news, since the start
	waiting atomic.Int64 // those that are not told yet
	since   atomic.Int64 // the oldest of them, Unix nanoseconds; 0 for none

	mu    sync.Mutex
	dirty map[fanfare.Day]bool
	wake  chan struct{}

	manifests map[fanfare.DeliveryRef]*fanfare.Manifest // by day and id
	members   int                                       // of them
	events    map[fanfare.EventRef]*fanfare.Posted
	fresh     map[string]bool // of which no plan is left that was made before
}

const (
	// noticePause is for how long outcomes are gathered, so that an event tells of many.
	noticePause = 200 * time.Millisecond
	// noticeGroups is how many groups of outcomes or news a plan has, each of two thousand at most.
	noticeGroups = 64
	// noticePosts is how many events are posted together.
	noticePosts = 64
	// maxNoticeMembers and maxNoticeEvents bound what is at hand of manifests and events.
	maxNoticeMembers = 1_000_000
	maxNoticeEvents  = 10_000
)

func newNoticing(store *deliveries.Store, kept *control.Store, people *registry.Registry, clock kit.Clock, logger *slog.Logger) *noticing {
	return &noticing{store: store, control: kept, registry: people, clock: clock, logger: logger, dirty: map[fanfare.Day]bool{}, wake: make(chan struct{}, 1),
		manifests: map[fanfare.DeliveryRef]*fanfare.Manifest{}, events: map[fanfare.EventRef]*fanfare.Posted{}, fresh: map[string]bool{}}
}

// hears says whether a service is to be told of an entry that is about to be kept.
func (n *noticing) hears(e *fanfare.Entry) bool {
	topic, _ := e.ToldAs()
	return n.registry.HearsOf(e.Channel, topic)
}

// tell notes that a day has something to tell.
func (n *noticing) tell(day fanfare.Day) {
	n.mu.Lock()
	n.dirty[day] = true
	n.mu.Unlock()
	n.hurry()
}

// hurry has the loop look.
func (n *noticing) hurry() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// days takes the days that have something to tell, the oldest first.
func (n *noticing) days() []fanfare.Day {
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

// run tells until the end, first what an earlier run left.
func (n *noticing) run(ctx context.Context) {
	for n.remember(ctx) != nil {
		if rest(ctx, retryPause) != nil {
			return
		}
	}
	for news := true; ; { // of the registry
		select {
		case <-ctx.Done():
			return
		case <-n.registry.Untold():
			news = true
		case <-n.wake:
		}
		if rest(ctx, noticePause) != nil {
			return
		}
		days := n.days()
		n.measure(ctx, days...)
		if news {
			if news = !n.tellAll(ctx, "registry", n.planNews); news {
				n.hurry()
			}
		}
		for _, day := range days {
			if !n.tellAll(ctx, day.String(), func(ctx context.Context) (*tidings, error) { return n.planDay(ctx, day) }) {
				n.tell(day)
			}
		}
		n.measure(ctx)
	}
}

// remember has all days looked at that are kept, and the registry.
func (n *noticing) remember(ctx context.Context) error {
	days, err := n.store.Days(ctx)
	for _, day := range days {
		n.tell(day)
	}
	n.hurry()
	return err
}

// measure counts what is behind, on days that have something to tell and on those
// that are named.
func (n *noticing) measure(ctx context.Context, and ...fanfare.Day) {
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
	add(n.control.WaitingNews(ctx))
	for _, day := range days {
		add(n.store.WaitingNotices(ctx, day))
	}
	n.waiting.Store(sum)
	n.since.Store(oldest)
}

// lag is for how long the oldest of what is not told yet waits.
func (n *noticing) lag() time.Duration {
	since := n.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, n.clock.Now().Sub(time.Unix(0, since)))
}

// tidings are a plan, made into events.
type tidings struct {
	events []fanfare.Posted
	count  int  // of what they tell
	last   bool // there was no more when it was made
	forget func(ctx context.Context) error
}

// tellAll tells what there is of a day, or of the registry; nil is no plan. It is false
// where it is to be tried again. A plan that was made before, by an earlier run or in a
// try that failed, says nothing of what has come behind it since: nobody will.
func (n *noticing) tellAll(ctx context.Context, of string, plan func(context.Context) (*tidings, error)) bool {
	for {
		next, err := plan(ctx)
		if err == nil && next == nil {
			n.fresh[of] = true
			return true
		}
		if err == nil {
			kit.Step("before-notices")
			err = n.post(ctx, next.events)
		}
		if err == nil {
			kit.Step("after-notices")
			err = next.forget(ctx)
		}
		if err != nil {
			delete(n.fresh, of)
			if ctx.Err() == nil {
				n.logger.Log(ctx, levelOf(err), "services could not be told what became of deliveries and of people, it is tried again", "of", of, "error", err)
				_ = rest(ctx, retryPause) // at the end the loop ends, too
			}
			return false
		}
		n.told.Add(int64(next.count))
		if next.last && n.fresh[of] {
			return true
		}
		n.measure(ctx)
	}
}

// post returns when events are durable.
func (n *noticing) post(ctx context.Context, events []fanfare.Posted) error {
	for some := range slices.Chunk(events, noticePosts) {
		results, err := n.collector.Post(ctx, some)
		if err != nil {
			return err
		}
		for i := range results {
			err := results[i].Err
			if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
				continue // the service takes the topic no more
			}
			if err != nil {
				return fmt.Errorf("event %s of %s/%s: %w", some[i].Event.ID, some[i].Service, some[i].Topic, err)
			}
		}
	}
	return nil
}
