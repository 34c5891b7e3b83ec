package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/collect"
	"fanfare.dev/fanfare/internal/generate"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// matching takes the event groups of one lane off EVENTS, matches them, freezes
// the manifests and publishes the batches. Only then is a group done.
type matching struct {
	queue    *bus.Queue
	bus      *bus.Bus
	index    *match.Index
	registry *registry.Registry
	store    *sqlite.Deliveries
	recorder *record.Recorder
	clock    kit.Clock
	logger   *slog.Logger

	hits []fanfare.Hit // reused
}

const (
	// maxRound bounds the events that are frozen in one transaction.
	maxRound = 1024
	// maxRoundHits ends a round early, so that the manifests of many large
	// results are not in memory at once.
	maxRoundHits = 200_000
	// maxFailures is after how many failures work is parked.
	maxFailures = 5
	// retryPause is how long work that failed rests.
	retryPause = time.Second
)

// run works until ctx ends or the bus closes.
func (m *matching) run(ctx context.Context) {
	for {
		lease, err := next(ctx, m.queue, m.logger)
		if err != nil {
			return
		}
		m.round(ctx, lease)
	}
}

// next takes a message off a queue. It returns an error only at the end: what
// else the bus reports passes.
func next(ctx context.Context, queue *bus.Queue, logger *slog.Logger) (*bus.Lease, error) {
	for {
		lease, err := queue.Next(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, bus.ErrClosed) {
			return lease, err
		}
		logger.Error("the bus gives nothing, it is asked again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// round is the groups that are processed together.
type round struct {
	leases []*bus.Lease
	frozen []*fanfare.Frozen
	hits   int
}

// round processes a group and those that wait behind it.
func (m *matching) round(ctx context.Context, lease *bus.Lease) {
	var r round
	for lease != nil {
		if err := m.add(ctx, &r, lease); err != nil {
			m.fail(ctx, lease, err)
		}
		if len(r.frozen) >= maxRound || r.hits >= maxRoundHits {
			break
		}
		var err error
		if lease, err = m.queue.Poll(); err != nil {
			break
		}
	}
	if err := m.finish(ctx, &r); err != nil {
		m.logger.Error("events could not be frozen, they come again", "error", err, "groups", len(r.leases))
		for _, l := range r.leases {
			m.later(l)
		}
	}
}

func (m *matching) later(l *bus.Lease) {
	if err := l.Later(retryPause); err != nil {
		m.logger.Warn("a group could not be given back", "error", err)
	}
}

// add matches all events of a group. A panic is a failure of that group.
func (m *matching) add(ctx context.Context, r *round, lease *bus.Lease) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("matching panicked: %v", p)
		}
	}()
	events, err := collect.Decode(lease.Data, lease.Seq)
	if err != nil {
		return err
	}
	var frozen []*fanfare.Frozen
	for _, posted := range events {
		f, err := m.match(posted)
		if err != nil {
			if err := m.park(ctx, posted, err); err != nil {
				return err
			}
			continue
		}
		f.KeptAt = lease.Kept
		frozen = append(frozen, f)
		r.hits += int(max(f.Matched, f.Messages))
	}
	r.frozen = append(r.frozen, frozen...)
	r.leases = append(r.leases, lease)
	return nil
}

// match finds who wants one event. The index has seen every change up to the
// event's change sequence: on one node a change is in the index before its
// number is given out.
func (m *matching) match(posted *fanfare.Posted) (*fanfare.Frozen, error) {
	if posted.Direct != nil {
		return m.name(posted)
	}
	topic, ok := m.registry.Topic(posted.Service, posted.Topic)
	if !ok {
		return nil, fmt.Errorf("topic %s/%s is gone", posted.Service, posted.Topic)
	}
	var err error
	m.hits, err = m.index.Match(match.Key{Service: posted.Service, Topic: posted.Topic}, posted.Event.Data, m.hits[:0])
	if err != nil {
		return nil, err
	}
	f := &fanfare.Frozen{Posted: posted, Matched: int64(len(m.hits)), MatchedAt: m.clock.Now()}
	f.Manifests = generate.Manifests(posted.Seq, m.hits, m.pins(topic))
	for i := range f.Manifests {
		f.Messages += int64(f.Manifests[i].Members())
	}
	if cap(m.hits) > maxRoundHits {
		m.hits = nil
	}
	return f, nil
}

// name takes the audience of a direct send in place of a match.
func (m *matching) name(posted *fanfare.Posted) (*fanfare.Frozen, error) {
	if _, ok := m.registry.Channel(posted.Direct.Channel); !ok {
		return nil, fmt.Errorf("channel %d is gone", posted.Direct.Channel)
	}
	return &fanfare.Frozen{
		Posted: posted, Messages: int64(len(posted.Direct.Recipients)), MatchedAt: m.clock.Now(),
		Manifests: generate.Audience(posted.Seq, posted.Direct),
	}, nil
}

// pins are the template versions of this moment.
func (m *matching) pins(topic *registry.Topic) *generate.Pins {
	pins := &generate.Pins{Rules: make([]uint32, len(topic.Rules))}
	pins.Topic, _ = m.registry.TemplateVersion(topic.Service, topic.Template)
	for i, rule := range topic.Rules {
		if rule.Template != "" {
			pins.Rules[i], _ = m.registry.TemplateVersion(topic.Service, rule.Template)
		}
	}
	return pins
}

// park puts one event aside that cannot be matched: its topic was deleted
// after it was accepted. The rest of its group goes on.
func (m *matching) park(ctx context.Context, posted *fanfare.Posted, cause error) error {
	m.logger.Error("an event cannot be matched and is parked", "event", posted.Ref().String(), "error", cause)
	group, err := collect.Encode(posted)
	if err != nil {
		return err
	}
	return m.store.Park(ctx, posted.Ref().Day, posted.Seq, fanfare.Parked{
		Kind: parkedEvents, Reason: cause.Error(), Failures: 1, At: m.clock.Now(),
	}, group)
}

// finish freezes the round, publishes its batches and takes its groups off.
func (m *matching) finish(ctx context.Context, r *round) error {
	if len(r.leases) == 0 {
		return nil
	}
	var cutter generate.Cutter
	for day, frozen := range byDay(r.frozen) {
		if err := m.freeze(ctx, day, frozen, &cutter); err != nil {
			return err
		}
	}
	kit.Step("before-publish")
	if err := publish(ctx, m.bus, cutter.Batches()); err != nil {
		return err
	}
	kit.Step("after-publish")
	for _, l := range r.leases {
		if err := l.Done(); err != nil {
			m.logger.Warn("a group could not be taken off, it comes again", "error", err)
		}
	}
	kit.Step("after-event-ack")
	return nil
}

func byDay(frozen []*fanfare.Frozen) map[fanfare.Day][]*fanfare.Frozen {
	days := map[fanfare.Day][]*fanfare.Frozen{}
	for _, f := range frozen {
		day := fanfare.DayOf(f.Posted.ReceivedAt)
		days[day] = append(days[day], f)
	}
	return days
}

// freeze commits the events of one day. For one that was frozen by an earlier
// run, the manifests of that run count.
func (m *matching) freeze(ctx context.Context, day fanfare.Day, frozen []*fanfare.Frozen, cutter *generate.Cutter) error {
	kit.Step("before-manifest")
	fresh, err := m.store.Freeze(ctx, frozen, m.clock.Now())
	if err != nil {
		return err
	}
	kit.Step("after-manifest")
	for i, f := range frozen {
		if fresh[i] && f.Messages > 0 {
			m.recorder.Begin(f.Posted.Ref(), f.Messages, fanfare.Progress{})
		}
	}
	for i, f := range frozen {
		manifests := f.Manifests
		if !fresh[i] {
			if manifests, err = m.store.Manifests(ctx, f.Posted.Ref()); err != nil {
				return err
			}
		}
		for j := range manifests {
			cutter.Add(day, f.Posted.Lane, &manifests[j])
		}
	}
	return nil
}

// publish hands batches to the bus.
func publish(ctx context.Context, b *bus.Bus, batches []fanfare.Batch) error {
	if len(batches) == 0 {
		return nil
	}
	messages := make([]bus.Batch, len(batches))
	for i := range batches {
		data, err := json.Marshal(&batches[i])
		if err != nil {
			return err
		}
		messages[i] = bus.Batch{Channel: batches[i].Channel, Lane: batches[i].Lane, Data: data}
	}
	return b.PublishBatches(ctx, messages)
}

// fail gives a group back, or parks it when it has failed too often.
func (m *matching) fail(ctx context.Context, lease *bus.Lease, cause error) {
	m.logger.Error("events could not be matched", "error", cause, "failures", lease.Deliveries)
	if lease.Deliveries < maxFailures {
		m.later(lease)
		return
	}
	day := fanfare.DayOf(lease.Kept)
	err := m.store.Park(ctx, day, fanfare.NewEventSeq(lease.Seq, 0), fanfare.Parked{
		Kind: parkedEvents, Reason: cause.Error(), Failures: lease.Deliveries, At: m.clock.Now(),
	}, lease.Data)
	if err == nil {
		err = lease.Done()
	}
	if err != nil {
		m.logger.Error("events could not be parked, they come again", "error", err)
		m.later(lease)
	}
}
