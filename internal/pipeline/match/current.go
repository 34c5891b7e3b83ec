package match

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// CurrentState matches the current states of topics, for digests that report a state instead of
// events.
type CurrentState struct {
	Verifier *verify.Verifier
	Registry *registry.Registry
	States   *topicstate.States
	Store    *deliveries.Store
}

// Visit matches the last event of each key of a service's topics, and visits the events that
// match subscriptions of a slot. Crossings are false: the previous event is the same one.
func (c *CurrentState) Visit(ctx context.Context, service string, slot uint16, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error {
	for _, topic := range c.Registry.Topics(service) {
		if topic.Key == "" {
			continue
		}
		size := c.States.Size(topic.Number, topic.Series)
		for _, last := range c.States.List(topic.Number, topic.Series, "", size.Keys+1) {
			hits, err := c.match(ctx, topic, &last, slot)
			if err != nil {
				return err
			}
			if len(hits) == 0 {
				continue
			}
			event, err := c.event(ctx, topic, &last)
			if err == nil {
				err = visit(event, hits)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *CurrentState) match(ctx context.Context, topic *catalog.Topic, last *fanfare.Last, slot uint16) ([]fanfare.Hit, error) {
	event := condition.EventOf(&fanfare.Event{Data: last.Data})
	event.Previous = last.Data
	hits, err := c.Verifier.Match(ctx, VerifyTopic(topic), last.Event.String(), event, nil)
	return slices.DeleteFunc(hits, func(h fanfare.Hit) bool { return h.Slot != slot }), err
}

// event returns the last event of a key. If its day has been removed, only its data is known.
func (c *CurrentState) event(ctx context.Context, topic *catalog.Topic, last *fanfare.Last) (*fanfare.AcceptedEvent, error) {
	event, err := c.Store.Posted(ctx, last.Event)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return &fanfare.AcceptedEvent{
			Service: topic.Service, Topic: topic.Name, ReceivedAt: last.At, Seq: last.Event.Seq,
			Event: fanfare.Event{ID: last.Event.String(), Type: topic.Name, Time: last.At, Data: last.Data},
		}, nil
	}
	return event, err
}
