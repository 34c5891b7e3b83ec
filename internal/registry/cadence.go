package registry

import (
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// OfState reports whether its messages tell what is the case when they are due.
func (s *Subscription) OfState() bool {
	c, err := cadence.Parse(s.Cadence)
	return err == nil && c.OfState()
}
