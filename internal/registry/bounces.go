package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

// Bounces returns the rules of a service, complete; the defaults where there is no
// such service.
func (r *Registry) Bounces(service string) catalog.BounceSettings {
	set := r.ServiceLimits(service).Bounces
	for i, rule := range set.Rules() {
		if *rule == (catalog.BounceRule{}) {
			*rule = *catalog.DefaultBounces.Rules()[i]
		}
	}
	return set
}
