package match

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// Options are the parts that a Matcher works with.
type Options struct {
	Bus       *bus.Bus
	Index     *condition.Index
	Verifier  *verify.Verifier
	Registry  *registry.Registry
	Store     *deliveries.Store
	States    *topicstate.States
	Samples   *Samples
	Audiences *Audiences
	Digests   Digests
	Recorder  Recorder
	Nodes     func() []Node // the other nodes that match now; nil: this server is alone
	// Repeats reports whether an event has the id of an earlier one; nil: the log contains no such events.
	Repeats func(*fanfare.AcceptedEvent) bool
	// Held makes broadcasts wait for approval. It returns before the first of their batches is
	// published.
	Held   func([]*fanfare.MatchResult)
	Clock  clock.Clock
	Logger *slog.Logger
}

// A Recorder counts the outcomes of broadcasts.
type Recorder interface {
	// Begin makes a broadcast known before its batches are published.
	Begin(ref fanfare.EventRef, messages int64, progress fanfare.Progress)
}

// Digests hold back the recipients who are notified later.
type Digests interface {
	// Begin begins a round of matching.
	Begin() DigestRound
	// Kept notes results that were committed. fresh says which of them were committed now.
	Committed(ctx context.Context, results []*fanfare.MatchResult, fresh []bool) error
}

// A DigestRound is a round of matching as digests see it.
type DigestRound interface {
	// Due returns when the next run of a slot is; false if the slot has none.
	Due(slot uint16) (time.Time, bool)
	// Merge returns the result of a run: all recipients and events that waited for it.
	Merge(ctx context.Context, run *fanfare.AcceptedEvent) (*fanfare.MatchResult, error)
	// End ends the round.
	End()
}

const (
	// maxRoundEvents bounds the events that are frozen in one transaction.
	maxRoundEvents = 1024
	// maxRoundHits ends a round early, so that the manifests of many large results are not
	// in memory at once.
	maxRoundHits = 200_000
)

// errUnread means that data that determines the recipients of an event could not be read. The
// event is delivered again.
var errUnread = errors.New("cannot read the recipients of an event")

// A Matcher matches the events of one lane. Run belongs to one goroutine.
type Matcher struct {
	Options
	lane   fanfare.Lane
	groups *groupQueue
	hits   []fanfare.Hit // reused
	costs  costs
	sample int // events that could be evaluated ahead
}

// New returns the Matcher of a lane.
func New(ctx context.Context, lane fanfare.Lane, o Options) (*Matcher, error) {
	queue, err := o.Bus.Events(ctx, lane)
	if err != nil {
		return nil, err
	}
	return &Matcher{Options: o, lane: lane, groups: newGroupQueue(queue, lane, o)}, nil
}

// Run matches events until ctx ends or the bus closes.
func (m *Matcher) Run(ctx context.Context) {
	m.groups.unreadable = func(l *bus.Lease, err error) { m.fail(ctx, l, err) }
	defer m.groups.returnAll()
	for m.groups.await(ctx) == nil {
		if p := m.round(ctx); p.single {
			m.single(ctx, p)
		}
	}
}

// A round is the pieces of groups that are frozen together.
type round struct {
	pieces  []piece
	results []*fanfare.MatchResult
	states  *topicstate.Round
	digests DigestRound
	hits    int
}

// begin begins a round. The caller ends its digests.
func (m *Matcher) begin() *round { return &round{states: m.States.Round(), digests: m.Digests.Begin()} }

// round matches and freezes the next pieces, as many as fit. A piece whose events are frozen
// one by one ends the round and is returned.
func (m *Matcher) round(ctx context.Context) (p piece) {
	r := m.begin()
	defer r.digests.End()
	for len(r.results) < maxRoundEvents && r.hits < maxRoundHits {
		var ok bool
		if p, ok = m.groups.next(ctx); !ok || p.single {
			break
		}
		if err := m.add(ctx, r, p); err != nil {
			m.fail(ctx, p.lease, err)
			m.groups.finish(p.group)
			break // the round has read states that include events which are not in it
		}
	}
	if err := m.freeze(ctx, r); err != nil {
		m.retryLater(ctx, err, r.pieces...)
	}
	return p
}

// single matches and freezes the events of a piece one by one, each in its own round.
func (m *Matcher) single(ctx context.Context, p piece) {
	events, err := eventgroup.DecodeShare(&p.Share, p.lease.Data, p.lease.Seq)
	for i := 0; err == nil && i < len(events); i++ {
		var frozen bool
		if frozen, err = m.singleEvent(ctx, p, events[i:i+1]); err == nil && !frozen {
			return
		}
	}
	if err != nil {
		m.fail(ctx, p.lease, err)
		m.groups.finish(p.group)
		return
	}
	m.frozen(p)
}

// singleEvent is a round of one event. If the event could not be frozen, its group was returned
// to the bus. An error is an error of matching.
func (m *Matcher) singleEvent(ctx context.Context, p piece, event []*fanfare.AcceptedEvent) (frozen bool, err error) {
	r := m.begin()
	defer r.digests.End()
	if err := m.matchAll(ctx, r, p, event); err != nil {
		return false, err
	}
	if err := m.freeze(ctx, r); err != nil {
		m.retryLater(ctx, err, p)
		return false, nil
	}
	return true, nil
}

// add matches the events of a piece.
func (m *Matcher) add(ctx context.Context, r *round, p piece) error {
	events, err := eventgroup.DecodeShare(&p.Share, p.lease.Data, p.lease.Seq)
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
func (m *Matcher) matchAll(ctx context.Context, r *round, p piece, events []*fanfare.AcceptedEvent) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("matching panicked: %v", reason)
		}
	}()
	var results []*fanfare.MatchResult
	hits := 0
	ahead := m.ahead(ctx, r, events)
	for i, event := range events {
		var known *answer
		if ahead != nil {
			known = ahead[i]
		}
		f, err := m.match(ctx, r, event, known)
		if errors.Is(err, errUnread) || err != nil && bus.IsStop(ctx, err) {
			return err // the group is delivered again
		}
		if err != nil {
			if err := m.park(ctx, event, err); err != nil {
				return err
			}
			continue
		}
		f.KeptAt = p.lease.Kept
		results = append(results, f)
		hits += int(max(f.Matched, f.Messages))
	}
	r.results, r.hits = append(r.results, results...), r.hits+hits
	m.groups.charge(p.Service, hits)
	return nil
}

// match finds the recipients of one event. known has its hits if the event was evaluated ahead. The index includes every change up to the change
// sequence of the event: on one node, a change is in the index before its number is published.
func (m *Matcher) match(ctx context.Context, r *round, event *fanfare.AcceptedEvent, known *answer) (*fanfare.MatchResult, error) {
	if event.Run != nil {
		return m.run(ctx, r, event)
	}
	if m.Repeats != nil && m.Repeats(event) {
		return &fanfare.MatchResult{Posted: event, MatchedAt: m.Clock.Now()}, nil // it matches nobody, and is not the state of its key
	}
	if event.Direct != nil {
		return m.direct(event)
	}
	topic, ok := m.Registry.Topic(event.Service, event.Topic)
	if !ok {
		return nil, fmt.Errorf("topic %s/%s is deleted", event.Service, event.Topic)
	}
	event.Filter = topic.Filter
	f := &fanfare.MatchResult{Posted: event}
	data := condition.EventOf(&event.Event)
	var err error
	if data.Previous, err = m.previous(r, topic, f); err != nil {
		return nil, err
	}
	if m.usable(known, data.Previous) {
		m.hits = known.hits
	} else if err := m.evaluate(ctx, topic, event, data); err != nil {
		return nil, asUnread(err)
	}
	if c := event.Content; c != nil && c.Channel != 0 {
		m.hits = slices.DeleteFunc(m.hits, func(h fanfare.Hit) bool { return h.Channel != c.Channel })
	}
	if event.Audience != nil {
		if m.hits, err = m.Audiences.Narrow(ctx, event, m.hits); err != nil {
			return nil, err
		}
	}
	m.Samples.Add(condition.Key{Service: event.Service, Topic: event.Topic}, &event.Event)
	if f.Key != nil {
		r.states.Advance(stateOf(f))
	}
	f.Matched, f.MatchedAt = int64(len(m.hits)), m.Clock.Now()
	var immediate []fanfare.Hit
	immediate, f.Gathered = plan.SplitDigests(event.Seq, m.hits, r.digests.Due)
	f.Manifests = plan.Manifests(event.Seq, immediate, Pins(m.Registry, topic))
	for i := range f.Manifests {
		f.Messages += int64(f.Manifests[i].Members())
	}
	f.Hold = m.Registry.Hold(event, f.Messages)
	if cap(m.hits) > maxRoundHits {
		m.hits = nil
	}
	return f, nil
}

// evaluate evaluates the conditions of a topic for an event, and sets the hits.
func (m *Matcher) evaluate(ctx context.Context, topic *catalog.Topic, event *fanfare.AcceptedEvent, data condition.Event) (err error) {
	began := m.Clock.Now()
	m.hits, err = m.Verifier.Match(ctx, VerifyTopic(topic), event.Ref().String(), data, m.hits)
	if m.Nodes != nil {
		m.costs.note(topic.Number, m.Clock.Now().Sub(began))
	}
	return err
}

// direct returns the result of a direct send: its recipients are in the event.
func (m *Matcher) direct(event *fanfare.AcceptedEvent) (*fanfare.MatchResult, error) {
	if _, ok := m.Registry.Channel(event.Direct.Channel); !ok {
		return nil, fmt.Errorf("channel %d is deleted", event.Direct.Channel)
	}
	messages := int64(len(event.Direct.Recipients))
	return &fanfare.MatchResult{
		Posted: event, Messages: messages, MatchedAt: m.Clock.Now(), Hold: m.Registry.Hold(event, messages),
		Manifests: plan.DirectManifests(event.Seq, event.Direct),
	}, nil
}

// run returns the result of a digest's run: its recipients have waited for it.
func (m *Matcher) run(ctx context.Context, r *round, run *fanfare.AcceptedEvent) (f *fanfare.MatchResult, err error) {
	err = retry.WhileAway(ctx, func() (err error) {
		f, err = r.digests.Merge(ctx, run)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	f.Hold = m.Registry.Hold(run, f.Messages)
	return f, nil
}

// asUnread wraps a temporary error, such as an unreachable database, so that the event is
// delivered again. An event that cannot be decided is parked.
func asUnread(err error) error {
	if errors.Is(err, verify.ErrUndecided) || fanfare.CodeOf(err) == fanfare.Invalid || fanfare.CodeOf(err) == fanfare.NotFound {
		return err
	}
	return fmt.Errorf("%w: %w", errUnread, err)
}

// Pins returns the current template versions of a topic.
func Pins(r *registry.Registry, topic *catalog.Topic) *plan.Pins {
	pins := &plan.Pins{Rules: make([]uint32, len(topic.Rules)), PerSubscription: topic.PerSubscription}
	pins.Topic, _ = r.TemplateVersion(topic.Service, topic.Template)
	for i, rule := range topic.Rules {
		if rule.Template != "" {
			pins.Rules[i], _ = r.TemplateVersion(topic.Service, rule.Template)
		}
	}
	return pins
}

// VerifyTopic returns a topic in the form that the verifier uses.
func VerifyTopic(t *catalog.Topic) verify.Topic {
	return verify.Topic{Key: condition.Key{Service: t.Service, Topic: t.Name}, Number: t.Number}
}

// park parks one event that cannot be matched, for example because its topic was deleted
// after it was accepted. The rest of its group is matched.
func (m *Matcher) park(ctx context.Context, event *fanfare.AcceptedEvent, cause error) error {
	m.Logger.Error("cannot match an event; the event is parked", "event", event.Ref().String(), "error", cause)
	group, err := eventgroup.Encode(event)
	if err != nil {
		return err
	}
	return retry.WhileAway(ctx, func() error {
		return m.Store.Park(ctx, event.Ref().Day, event.Seq, fanfare.Parked{
			Kind: fanfare.ParkedEvents, Reason: cause.Error(), Failures: 1, At: m.Clock.Now(),
		}, group)
	})
}

// fail returns a group to the bus, or parks it if it has failed too often.
func (m *Matcher) fail(ctx context.Context, lease *bus.Lease, cause error) {
	m.Logger.Log(ctx, bus.FailureLevel(ctx, cause), "cannot match events", "error", cause, "failures", lease.Deliveries)
	if lease.Deliveries < fanfare.MaxFailures || bus.IsStop(ctx, cause) {
		m.giveBack(lease)
		return
	}
	err := m.Store.Park(ctx, fanfare.DayOf(lease.Kept), fanfare.NewEventSeq(lease.Seq, 0), fanfare.Parked{
		Kind: fanfare.ParkedEvents, Reason: cause.Error(), Failures: lease.Deliveries, At: m.Clock.Now(),
	}, withSequences(lease))
	if err == nil {
		err = lease.Done()
	}
	if err != nil {
		m.Logger.Log(ctx, bus.FailureLevel(ctx, err), "cannot park events; the bus will deliver them again", "error", err)
		m.giveBack(lease)
	}
}

// withSequences returns the group of a lease with the sequences of its events. Parked events
// keep their sequences, so that two tries of an event are one broadcast, and so that it does
// not become the state of its key after later events. A damaged group is returned as it is.
func withSequences(lease *bus.Lease) []byte {
	events, err := eventgroup.Decode(lease.Data, lease.Seq)
	if err != nil {
		return lease.Data
	}
	group, err := eventgroup.Encode(events...)
	if err != nil {
		return lease.Data
	}
	return group
}

// retryLater returns the groups of pieces that could not be frozen.
func (m *Matcher) retryLater(ctx context.Context, cause error, pieces ...piece) {
	m.Logger.Log(ctx, bus.FailureLevel(ctx, cause), "cannot freeze the recipients of events; the bus will deliver the events again", "error", cause, "groups", len(pieces))
	for _, p := range pieces {
		m.groups.retryLater(p)
	}
}

// frozen counts a piece as frozen.
func (m *Matcher) frozen(p piece) {
	if err := m.groups.frozen(p); err != nil {
		m.Logger.Warn("cannot acknowledge a group of events; the bus will deliver it again", "error", err)
	}
}

func (m *Matcher) giveBack(l *bus.Lease) {
	if err := l.Later(retry.Pause); err != nil {
		m.Logger.Warn("cannot return a group of events to the bus", "error", err)
	}
}
