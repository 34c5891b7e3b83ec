package registry

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
)

// OfReserved reports whether a subscription is one to a topic that Fanfare publishes
// to: what becomes of its messages is told to nobody.
func (r *Registry) OfReserved(s *people.SubscriptionRow) bool {
	t := r.Snapshot().Topics[s.Topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
