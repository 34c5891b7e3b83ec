package registry

import (
	"fanfare.dev/fanfare"
)

// OfReserved reports whether a subscription is one to a topic that Fanfare publishes
// to: what becomes of its messages is told to nobody.
func (r *Registry) OfReserved(s *SubscriptionRow) bool {
	t := r.Snapshot().Topics[s.topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
