package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// matching takes the event groups of one lane off EVENTS, matches them, freezes
// the manifests and publishes the batches. Only then is a group done.
type matching struct {
	lane     fanfare.Lane
	queue    *bus.Queue
	bus      *bus.Bus
	index    *condition.Index
	verifier *verify.Verifier
	registry *registry.Registry
	store    *deliveries.Store
	recorder *record.Recorder
	switches *control.Switches
	samples  *samples
	people   *audiences
	states   *topicstate.States
	clock    clock.Clock
	logger   *slog.Logger

	gathering *digest.Gathering

	groups *groups
	hits   []fanfare.Hit // reused
}

const (
	// maxRound bounds the events that are frozen in one transaction.
	maxRound = 1024
	// maxRoundHits ends a round early, so that the manifests of many large
	// results are not in memory at once.
	maxRoundHits = 200_000
)

// run works until ctx ends or the bus closes.
func (m *matching) run(ctx context.Context) {
	m.groups = m.newGroups(func(l *bus.Lease, err error) { m.fail(ctx, l, err) })
	defer m.groups.giveBack()
	for m.groups.await(ctx) == nil {
		if p := m.round(ctx); p.single {
			m.single(ctx, p)
		}
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
		case <-time.After(retry.Pause):
		}
	}
}

// round is the pieces of groups that are processed together.
type round struct {
	pieces []piece
	frozen []*fanfare.MatchResult
	states *topicstate.Round
	hits   int

	gathered *digest.Round
}

// begin begins a round; its gathered part is ended by whoever began it.
func (m *matching) begin() *round {
	return &round{states: m.states.Round(), gathered: m.gathering.Begin()}
}

// round processes what is next, as much as fits. A piece that is single ends it, and is
// returned.
func (m *matching) round(ctx context.Context) (p piece) {
	r := m.begin()
	defer r.gathered.End()
	for len(r.frozen) < maxRound && r.hits < maxRoundHits {
		var ok bool
		if p, ok = m.groups.next(ctx); !ok || p.single {
			break
		}
		if err := m.add(ctx, r, p); err != nil {
			m.fail(ctx, p.lease, err)
			m.groups.end(p.group)
			break // the round has looked at states of events that are not in it
		}
	}
	if err := m.finish(ctx, r); err != nil {
		m.notFrozen(ctx, err, r.pieces...)
	}
	return p
}

func (m *matching) notFrozen(ctx context.Context, cause error, pieces ...piece) {
	m.logger.Log(ctx, bus.FailureLevel(ctx, cause), "events could not be frozen, they come again", "error", cause, "groups", len(pieces))
	for _, p := range pieces {
		m.groups.later(p)
	}
}

func (m *matching) later(l *bus.Lease) {
	if err := l.Later(retry.Pause); err != nil {
		m.logger.Warn("a group could not be given back", "error", err)
	}
}

// add matches the events of a piece.
func (m *matching) add(ctx context.Context, r *round, p piece) error {
	events, err := ingest.DecodeOf(&p.Share, p.lease.Data, p.lease.Seq)
	if err != nil {
		return err
	}
	if err := m.matchAll(ctx, r, p, events); err != nil {
		return err
	}
	r.pieces = append(r.pieces, p)
	return nil
}

// matchAll matches events of a piece. A panic is a failure of its group.
func (m *matching) matchAll(ctx context.Context, r *round, p piece, events []*fanfare.AcceptedEvent) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("matching panicked: %v", reason)
		}
	}()
	var frozen []*fanfare.MatchResult
	hits := 0
	for _, posted := range events {
		f, err := m.match(ctx, r, posted)
		if errors.Is(err, errUnread) || err != nil && bus.IsStop(ctx, err) {
			return err // the group comes again
		}
		if err != nil {
			if err := m.park(ctx, posted, err); err != nil {
				return err
			}
			continue
		}
		f.KeptAt = p.lease.Kept
		frozen = append(frozen, f)
		hits += int(max(f.Matched, f.Messages))
	}
	r.frozen, r.hits = append(r.frozen, frozen...), r.hits+hits
	m.groups.charge(p.Service, hits)
	return nil
}

// match finds who wants one event. The index has seen every change up to the
// event's change sequence: on one node a change is in the index before its
// number is given out.
func (m *matching) match(ctx context.Context, r *round, posted *fanfare.AcceptedEvent) (*fanfare.MatchResult, error) {
	if posted.Direct != nil {
		return m.name(posted)
	}
	if posted.Run != nil {
		return m.merge(ctx, r, posted)
	}
	topic, ok := m.registry.Topic(posted.Service, posted.Topic)
	if !ok {
		return nil, fmt.Errorf("topic %s/%s is gone", posted.Service, posted.Topic)
	}
	f := &fanfare.MatchResult{Posted: posted}
	event := condition.EventOf(&posted.Event)
	var err error
	if event.Previous, err = m.before(r, topic, f); err != nil {
		return nil, err
	}
	m.hits, err = m.verifier.Match(ctx, verifiedTopic(topic), posted.Ref().String(), event, m.hits)
	if err != nil {
		return nil, unlessUndecided(err)
	}
	if posted.Audience != nil {
		if m.hits, err = m.people.narrow(ctx, posted, m.hits); err != nil {
			return nil, err
		}
	}
	m.samples.note(condition.Key{Service: posted.Service, Topic: posted.Topic}, &posted.Event)
	if f.Key != nil {
		r.states.Advance(last(f))
	}
	f.Matched, f.MatchedAt = int64(len(m.hits)), m.clock.Now()
	f.Manifests = plan.Manifests(posted.Seq, r.later(f, m.hits), pinsOf(m.registry, topic))
	for i := range f.Manifests {
		f.Messages += int64(f.Manifests[i].Members())
	}
	f.Hold = m.registry.Hold(posted, f.Messages)
	if cap(m.hits) > maxRoundHits {
		m.hits = nil
	}
	return f, nil
}

// unlessUndecided makes an error that passes, as while the database is away, one after
// which the event comes again. An event that cannot be decided is parked.
func unlessUndecided(err error) error {
	if errors.Is(err, verify.ErrUndecided) || fanfare.CodeOf(err) == fanfare.Invalid || fanfare.CodeOf(err) == fanfare.NotFound {
		return err
	}
	return fmt.Errorf("%w: %w", errUnread, err)
}

// name takes the audience of a direct send in place of a match.
func (m *matching) name(posted *fanfare.AcceptedEvent) (*fanfare.MatchResult, error) {
	if _, ok := m.registry.Channel(posted.Direct.Channel); !ok {
		return nil, fmt.Errorf("channel %d is gone", posted.Direct.Channel)
	}
	messages := int64(len(posted.Direct.Recipients))
	return &fanfare.MatchResult{
		Posted: posted, Messages: messages, MatchedAt: m.clock.Now(), Hold: m.registry.Hold(posted, messages),
		Manifests: plan.Audience(posted.Seq, posted.Direct),
	}, nil
}

// pinsOf are the template versions of this moment.
func pinsOf(r *registry.Registry, topic *catalog.Topic) *plan.Pins {
	pins := &plan.Pins{Rules: make([]uint32, len(topic.Rules))}
	pins.Topic, _ = r.TemplateVersion(topic.Service, topic.Template)
	for i, rule := range topic.Rules {
		if rule.Template != "" {
			pins.Rules[i], _ = r.TemplateVersion(topic.Service, rule.Template)
		}
	}
	return pins
}

// park puts one event aside that cannot be matched: its topic was deleted
// after it was accepted. The rest of its group goes on.
func (m *matching) park(ctx context.Context, posted *fanfare.AcceptedEvent, cause error) error {
	m.logger.Error("an event cannot be matched and is parked", "event", posted.Ref().String(), "error", cause)
	group, err := ingest.Encode(posted)
	if err != nil {
		return err
	}
	return retry.WhileAway(ctx, func() error {
		return m.store.Park(ctx, posted.Ref().Day, posted.Seq, fanfare.Parked{
			Kind: fanfare.ParkedEvents, Reason: cause.Error(), Failures: 1, At: m.clock.Now(),
		}, group)
	})
}

// finish freezes the round, publishes its batches and takes its groups off.
func (m *matching) finish(ctx context.Context, r *round) error {
	if len(r.pieces) == 0 && len(r.frozen) == 0 {
		return nil
	}
	var cutter plan.Cutter
	err := m.settle(ctx, r, func() error {
		days := byDay(r.frozen)
		for _, day := range slices.Sorted(maps.Keys(days)) { // a state of a day rests on those before it
			if err := m.freeze(ctx, r, day, days[day], &cutter); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	failpoint.Hit("before-publish")
	if err := m.bus.Publish(ctx, cutter.Batches()); err != nil {
		return err
	}
	failpoint.Hit("after-publish")
	for _, p := range r.pieces {
		if err := m.groups.frozen(p); err != nil {
			m.logger.Warn("a group could not be taken off, it comes again", "error", err)
		}
	}
	failpoint.Hit("after-event-ack")
	return nil
}

func byDay(frozen []*fanfare.MatchResult) map[fanfare.Day][]*fanfare.MatchResult {
	days := map[fanfare.Day][]*fanfare.MatchResult{}
	for _, f := range frozen {
		day := fanfare.DayOf(f.Posted.ReceivedAt)
		days[day] = append(days[day], f)
	}
	return days
}

// freeze commits the events of one day. For one that was frozen by an earlier
// run, the manifests of that run count.
func (m *matching) freeze(ctx context.Context, r *round, day fanfare.Day, frozen []*fanfare.MatchResult, cutter *plan.Cutter) error {
	failpoint.Hit("before-manifest")
	var fresh []bool
	err := retry.WhileAway(ctx, func() (err error) {
		fresh, err = m.store.Freeze(ctx, frozen, m.clock.Now())
		return err
	})
	if err != nil {
		m.doubt(r, day, frozen)
		return err
	}
	failpoint.Hit("after-manifest")
	m.advance(frozen, fresh)
	if err := retry.WhileAway(ctx, func() error { return m.gathering.Kept(ctx, frozen, fresh) }); err != nil {
		return err
	}
	if err := m.hold(ctx, day, frozen, fresh); err != nil {
		return err
	}
	for i, f := range frozen {
		if fresh[i] && f.Messages > 0 {
			m.recorder.Begin(f.Posted.Ref(), f.Messages, fanfare.Progress{})
		}
	}
	for i, f := range frozen {
		manifests := f.Manifests
		if !fresh[i] {
			err := retry.WhileAway(ctx, func() (err error) {
				manifests, err = m.store.Manifests(ctx, f.Posted.Ref())
				return err
			})
			if err != nil {
				return err
			}
		}
		for j := range manifests {
			cutter.Add(day, f.Posted.Lane, &manifests[j])
		}
	}
	return nil
}

// fail gives a group back, or parks it when it has failed too often.
func (m *matching) fail(ctx context.Context, lease *bus.Lease, cause error) {
	m.logger.Log(ctx, bus.FailureLevel(ctx, cause), "events could not be matched", "error", cause, "failures", lease.Deliveries)
	if lease.Deliveries < fanfare.MaxFailures || bus.IsStop(ctx, cause) {
		m.later(lease)
		return
	}
	day := fanfare.DayOf(lease.Kept)
	err := m.store.Park(ctx, day, fanfare.NewEventSeq(lease.Seq, 0), fanfare.Parked{
		Kind: fanfare.ParkedEvents, Reason: cause.Error(), Failures: lease.Deliveries, At: m.clock.Now(),
	}, parkable(lease))
	if err == nil {
		err = lease.Done()
	}
	if err != nil {
		m.logger.Log(ctx, bus.FailureLevel(ctx, err), "events could not be parked, they come again", "error", err)
		m.later(lease)
	}
}

// parkable is the group of a lease as it is parked: its events keep their sequences,
// so that two tries of one are one broadcast, and so that it is late, and no key's
// last event, where others have come since. A damaged group stays as it is.
func parkable(lease *bus.Lease) []byte {
	events, err := ingest.Decode(lease.Data, lease.Seq)
	if err != nil {
		return lease.Data
	}
	group, err := ingest.Encode(events...)
	if err != nil {
		return lease.Data
	}
	return group
}
