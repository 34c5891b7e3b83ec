package registry

import (
	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// OfState reports whether its messages tell what is the case when they are due.
func (s *Subscription) OfState() bool {
	c, err := cadence.Parse(s.Cadence)
	return err == nil && c.OfState()
}

// checkCadence refuses a cadence that the topic's subscriptions cannot have.
func (pl *plan) checkCadence(at string, t *catalog.Topic) {
	if err := t.CheckCadence(t.Cadence); err != nil {
		pl.fail(at, err)
	}
}
