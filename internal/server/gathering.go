package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// newGathering puts together what holds back what is not due.
func newGathering(store *deliveries.Store, people *registry.Registry, now *cases, hops *bus.Bus, clock clock.Clock, logger *slog.Logger) *digest.Gathering {
	return digest.New(digest.Options{
		Store: store, Slots: slots{people}, Clock: clock, Live: people.Live, State: now.visit, Logger: logger,
		Topic: func(service, name string) (digest.Topic, bool) { return toldTogether(people, service, name) },
		Publish: func(ctx context.Context, run *fanfare.AcceptedEvent) error {
			group, err := ingest.Encode(run)
			if err == nil {
				_, err = hops.AppendEvents(ctx, run.Lane, group)
			}
			return err
		},
	})
}

// slots is the registry as what gathers sees it.
type slots struct{ *registry.Registry }

// Slot returns the slot of a number.
func (s slots) Slot(number uint16) (digest.Slot, bool) {
	slot, known := s.Registry.Slot(number)
	return digest.Slot(slot), known
}

// Slots lists those that active subscriptions have.
func (s slots) Slots() (list []digest.Slot) {
	for _, slot := range s.Registry.Slots() {
		list = append(list, digest.Slot(slot))
	}
	return list
}

// Moves lists subscriptions that have got another slot.
func (s slots) Moves() (list []digest.Move) {
	for _, m := range s.Registry.Moves() {
		list = append(list, digest.Move(m))
	}
	return list
}

// Carried notes that what waited for them has been carried over.
func (s slots) Carried(ctx context.Context, moves []digest.Move) error {
	list := make([]registry.Move, len(moves))
	for i, m := range moves {
		list[i] = registry.Move(m)
	}
	return s.Registry.Carried(ctx, list)
}

// toldTogether says how events of a topic are told together.
func toldTogether(people *registry.Registry, service, name string) (told digest.Topic, ok bool) {
	topic, ok := people.Topic(service, name)
	if !ok {
		return told, false
	}
	digest := topic.LatestDigest()
	told.Max = digest.Max
	if digest.Key != "" {
		told.Key = digest.KeyOf
	}
	told.Template, ok = people.DigestTemplate(topic)
	return told, ok
}

// cases are what is the case: the last events of the keys of topics, matched anew.
type cases struct {
	verifier *verify.Verifier
	registry *registry.Registry
	states   *topicstate.States
	store    *deliveries.Store
}

// visit matches the last event of each key of a service's topics, and visits those
// that a slot wants. Nothing is crossed by what has not moved.
func (c *cases) visit(ctx context.Context, of digest.Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error {
	for _, topic := range c.registry.Topics(of.Service) {
		if topic.Key == "" {
			continue
		}
		size := c.states.Size(topic.Number, topic.Series)
		for _, last := range c.states.List(topic.Number, topic.Series, "", size.Keys+1) {
			hits, err := c.hits(ctx, topic, &last, of.Number)
			if err != nil {
				return err
			}
			if len(hits) == 0 {
				continue
			}
			posted, err := c.event(ctx, topic, &last)
			if err == nil {
				err = visit(posted, hits)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cases) hits(ctx context.Context, topic *catalog.Topic, last *fanfare.Last, slot uint16) ([]fanfare.Hit, error) {
	event := condition.EventOf(&fanfare.Event{Data: last.Data})
	event.Previous = last.Data
	hits, err := c.verifier.Match(ctx, verifiedTopic(topic), last.Event.String(), event, nil)
	return slices.DeleteFunc(hits, func(h fanfare.Hit) bool { return h.Slot != slot }), err
}

// event is the last event of a key; of one whose day is over only the data are known.
func (c *cases) event(ctx context.Context, topic *catalog.Topic, last *fanfare.Last) (*fanfare.AcceptedEvent, error) {
	posted, err := c.store.Posted(ctx, last.Event)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return &fanfare.AcceptedEvent{
			Service: topic.Service, Topic: topic.Name, ReceivedAt: last.At, Seq: last.Event.Seq,
			Event: fanfare.Event{ID: last.Event.String(), Type: topic.Name, Time: last.At, Data: last.Data},
		}, nil
	}
	return posted, err
}

// later takes who is to be told later out of the hits of an event.
func (r *round) later(f *fanfare.MatchResult, hits []fanfare.Hit) (now []fanfare.Hit) {
	now, f.Gathered = plan.Gather(f.Posted.Seq, hits, r.gathered.Due)
	return now
}

// merge takes what was gathered for a run in place of a match.
func (m *matching) merge(ctx context.Context, r *round, run *fanfare.AcceptedEvent) (f *fanfare.MatchResult, err error) {
	err = retry.WhileAway(ctx, func() (err error) {
		f, err = m.gathering.Merge(ctx, r.gathered, run)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	f.Hold = m.registry.Hold(run, f.Messages)
	return f, nil
}
