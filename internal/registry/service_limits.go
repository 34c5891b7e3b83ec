package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

// ServiceLimits returns those of a service, the zero ones where there is no such.
func (r *Registry) ServiceLimits(service string) catalog.ServiceLimits {
	if svc := r.config.Load().Services[service]; svc != nil {
		return svc.Limits
	}
	return catalog.ServiceLimits{}
}
