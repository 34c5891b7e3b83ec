package server

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/registry"
)

// conditions are subscriptions and the index, as explanations see them.
type conditions struct {
	*registry.Registry
	known
	people   *audiences
	verifier *verify.Verifier
	asking   ctxlock.Lock // of the index: one at a time
}

// FoundBy says what of an event leads the index to a subscription.
func (c conditions) FoundBy(s *registry.Subscription) (string, error) {
	params := s.Params
	if s.Rule != "" && params == nil {
		params = json.RawMessage("{}")
	}
	return c.index.IndexedBy(condition.Key{Service: s.Service, Topic: s.Topic}, s.Filter, s.Rule, params)
}

// InAudience reports whether a subscription is in the audience of a sender.
func (c conditions) InAudience(ctx context.Context, s *registry.Subscription, filter string) (bool, error) {
	posted := &fanfare.AcceptedEvent{Audience: &fanfare.AudienceFilter{Filter: filter}}
	in, err := c.people.narrow(ctx, posted, []fanfare.Hit{{Place: s.Place, Subscriber: s.Owner}})
	return len(in) > 0, err
}

// Explain evaluates the condition of a subscription part by part, for an event after
// one with the data was.
func (c conditions) Explain(s *registry.Subscription, event *fanfare.Event, was json.RawMessage) (fanfare.Part, error) {
	params := s.Params
	if s.Rule != "" && params == nil {
		params = json.RawMessage("{}")
	}
	of := condition.EventOf(event)
	of.Previous = was
	return c.index.Explain(condition.Key{Service: s.Service, Topic: s.Topic}, condition.Entry{Filter: s.Filter, Rule: s.Rule, Params: params}, of)
}
