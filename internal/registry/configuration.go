package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

// Configuration returns what is configured now.
func (r *Registry) Configuration() catalog.Configuration {
	return catalog.Configuration{Snapshot: r.config.Load()}
}
