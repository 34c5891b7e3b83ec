package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

// Drained reports whether an operator lets nothing leave by a relay of a channel.
func (r *Registry) Drained(c *catalog.Channel, relay string) bool {
	is, _ := r.switches.get(catalog.RelayScope(c, relay))
	return is.Paused
}
