package app

import (
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/registry"
)

// conditions are subscriptions and the index, as explanations see them.
type conditions struct {
	*registry.Registry
	index *match.Index
}

// Explain evaluates the condition of a subscription part by part.
func (c conditions) Explain(s *registry.Subscription, data json.RawMessage) (fanfare.Part, error) {
	params := s.Params
	if s.Rule != "" && params == nil {
		params = json.RawMessage("{}")
	}
	return c.index.Explain(match.Key{Service: s.Service, Topic: s.Topic}, match.Entry{Filter: s.Filter, Rule: s.Rule, Params: params}, data)
}
