package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/store/control"
)

// What the audit calls people and what they want.
const (
	kindSubscriber   = "subscriber"
	kindSubscription = "subscription"
)

// loadConfig loads a record. Records of services come first.
func (r *Registry) loadConfig(s *catalog.Snapshot, c *control.ConfigRecord) error {
	switch c.Kind {
	case kindFloor:
		return r.loadFloor(c)
	case kindQuarantine:
		return r.loadQuarantine(c)
	case kindSlot:
		return r.loadSlot(s, c)
	}
	return r.Load(s, c)
}
