package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/collect"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/notice"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// noticing tells services what became of their deliveries, as events of the topics
// fanfare.* that they have declared: it follows behind the record. What is to be told
// was kept with the outcomes. It is planned, posted, and forgotten: after a crash
// between any two of these the plan is posted again, under the same ids, which intake
// knows.
type noticing struct {
	store     *deliveries.Store
	registry  *registry.Registry
	collector *collect.Collector
	clock     kit.Clock
	logger    *slog.Logger

	told    atomic.Int64 // outcomes, since the start
	waiting atomic.Int64 // outcomes that are not told yet
	since   atomic.Int64 // the oldest of them, Unix nanoseconds; 0 for none

	mu    sync.Mutex
	dirty map[fanfare.Day]bool
	wake  chan struct{}

	manifests map[fanfare.DeliveryRef]*fanfare.Manifest // by day and id
	members   int                                       // of them
	events    map[fanfare.EventRef]*fanfare.Posted
}

const (
	// noticePause is for how long outcomes are gathered, so that an event tells of many.
	noticePause = 200 * time.Millisecond
	// noticeGroups is how many groups of outcomes a plan has, each of two thousand at most.
	noticeGroups = 64
	// noticePosts is how many events are posted together.
	noticePosts = 64
	// maxNoticeMembers and maxNoticeEvents bound what is at hand of manifests and events.
	maxNoticeMembers = 1_000_000
	maxNoticeEvents  = 10_000
)

func newNoticing(store *deliveries.Store, people *registry.Registry, clock kit.Clock, logger *slog.Logger) *noticing {
	return &noticing{store: store, registry: people, clock: clock, logger: logger, dirty: map[fanfare.Day]bool{}, wake: make(chan struct{}, 1),
		manifests: map[fanfare.DeliveryRef]*fanfare.Manifest{}, events: map[fanfare.EventRef]*fanfare.Posted{}}
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		if rest(ctx, noticePause) != nil {
			return
		}
		days := n.days()
		n.measure(ctx, days...)
		for _, day := range days {
			if err := n.tellDay(ctx, day); err != nil && ctx.Err() == nil {
				n.logger.Log(ctx, levelOf(err), "services could not be told what became of deliveries, it is tried again", "day", day.String(), "error", err)
				n.tell(day)
				_ = rest(ctx, retryPause) // at the end the loop ends, too
			}
		}
		n.measure(ctx)
	}
}

// remember has all days looked at that are kept.
func (n *noticing) remember(ctx context.Context) error {
	days, err := n.store.Days(ctx)
	for _, day := range days {
		n.tell(day)
	}
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
	for _, day := range days {
		entries, since, err := n.store.WaitingNotices(ctx, day)
		if err != nil {
			continue
		}
		sum += entries
		if at := since.UnixNano(); entries > 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	n.waiting.Store(sum)
	n.since.Store(oldest)
}

// lag is for how long the oldest outcome waits that is not told yet.
func (n *noticing) lag() time.Duration {
	since := n.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, n.clock.Now().Sub(time.Unix(0, since)))
}

// tellDay tells what there is of a day.
func (n *noticing) tellDay(ctx context.Context, day fanfare.Day) error {
	for {
		plan, err := n.store.PlanNotices(ctx, day, noticeGroups)
		if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
			return nil // the day was removed, and with it what there was to tell
		}
		if err == nil && len(plan) == 0 {
			return nil
		}
		if err == nil {
			kit.Step("before-notices")
			err = n.post(ctx, day, plan)
		}
		if err != nil {
			return err
		}
		kit.Step("after-notices")
		if err := n.store.ToldNotices(ctx, day, plan); err != nil {
			return err
		}
		for i := range plan {
			n.told.Add(int64(len(plan[i].Entries)))
		}
		if len(plan) < noticeGroups {
			return nil
		}
		n.measure(ctx, day)
	}
}

// post makes events of a plan, and returns when they are durable.
func (n *noticing) post(ctx context.Context, day fanfare.Day, plan []deliveries.Notices) error {
	outcomes, err := n.outcomes(ctx, day, plan)
	if err != nil {
		return err
	}
	events, err := notice.Events(outcomes)
	if err != nil {
		return err
	}
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

// outcomes are those of a plan that somebody is to be told of, with what there is to
// say of them.
func (n *noticing) outcomes(ctx context.Context, day fanfare.Day, plan []deliveries.Notices) ([]notice.Outcome, error) {
	if err := n.read(ctx, day, plan); err != nil {
		return nil, err
	}
	var all []notice.Outcome
	var members []fanfare.Member
	for i := range plan {
		for j := range plan[i].Entries {
			e := &plan[i].Entries[j]
			of := n.events[fanfare.EventRef{Day: day, Seq: e.Delivery.Manifest.Event()}]
			topic, _ := e.ToldAs()
			if of == nil || fanfare.ReservedTopic(of.Topic) || !n.registry.Hears(of.Service, topic) {
				continue
			}
			section, member, ok := n.manifests[ofManifest(e.Delivery)].At(e.Delivery.Position)
			if !ok {
				continue
			}
			outcome := notice.Outcome{Entry: e, Name: fmt.Sprintf("%s-%x-%x", day, plan[i].ID, j), Of: of}
			if c, known := n.registry.Channel(section.Channel); known {
				outcome.Channel = c.Name
			}
			all, members = append(all, outcome), append(members, member)
		}
	}
	return n.named(ctx, all, members)
}

func ofManifest(of fanfare.DeliveryRef) fanfare.DeliveryRef {
	of.Position = 0
	return of
}

// read has the events and manifests of a plan at hand.
func (n *noticing) read(ctx context.Context, day fanfare.Day, plan []deliveries.Notices) error {
	if n.members > maxNoticeMembers {
		clear(n.manifests)
		n.members = 0
	}
	if len(n.events) > maxNoticeEvents {
		clear(n.events)
	}
	var seqs []fanfare.EventSeq
	var ids []fanfare.ManifestID
	for i := range plan {
		for j := range plan[i].Entries {
			of := plan[i].Entries[j].Delivery
			if n.manifests[ofManifest(of)] == nil {
				ids = append(ids, of.Manifest)
			}
			if n.events[fanfare.EventRef{Day: day, Seq: of.Manifest.Event()}] == nil {
				seqs = append(seqs, of.Manifest.Event())
			}
		}
	}
	slices.Sort(seqs)
	slices.Sort(ids)
	return n.store.Moment(ctx, day, func(m *deliveries.Moment) error {
		return errors.Join(
			m.Posted(slices.Compact(seqs), func(p *fanfare.Posted) { n.events[fanfare.EventRef{Day: day, Seq: p.Seq}] = bare(p) }),
			m.Manifests(slices.Compact(ids), func(manifest *fanfare.Manifest) {
				n.manifests[fanfare.DeliveryRef{Day: day, Manifest: manifest.ID}] = manifest
				n.members += manifest.Members()
			}))
	})
}

// bare is an event without its data and its recipients.
func bare(p *fanfare.Posted) *fanfare.Posted {
	p.Event.Data, p.Event.Binary, p.Event.Extensions = nil, nil, nil
	if p.Direct != nil {
		p.Direct = &fanfare.Direct{Reference: p.Direct.Reference}
	}
	return p
}

// named puts names on whom outcomes are about. Those of messages that tell of nothing
// but outcomes are left out.
func (n *noticing) named(ctx context.Context, all []notice.Outcome, members []fanfare.Member) ([]notice.Outcome, error) {
	var who, what []fanfare.Place
	for i := range members {
		who, what = append(who, members[i].Subscriber), append(what, members[i].Subscriptions...)
	}
	slices.Sort(who)
	slices.Sort(what)
	subscribers, subscriptions, ours := map[fanfare.Place]string{}, map[fanfare.Place]string{}, map[fanfare.Place]bool{}
	err := n.registry.Subscribers(ctx, slices.Compact(who), func(s *registry.SubscriberRow) error {
		subscribers[s.Place] = s.ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = n.registry.Subscriptions(ctx, slices.Compact(what), func(s *registry.SubscriptionRow) error {
		subscriptions[s.Place] = s.ID
		ours[s.Place] = n.registry.OfReserved(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	told := all[:0]
	for i := range all {
		o := all[i]
		o.Subscriber = subscribers[members[i].Subscriber]
		others := o.Of.Direct != nil
		for _, place := range members[i].Subscriptions {
			if id := subscriptions[place]; id != "" {
				o.Subscriptions = append(o.Subscriptions, id)
			}
			others = others || !ours[place]
		}
		if others {
			told = append(told, o)
		}
	}
	return told, nil
}
