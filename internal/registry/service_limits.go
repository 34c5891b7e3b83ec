package registry

import (
	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/catalog/audit"
)

// ServiceLimits returns those of a service, the zero ones where there is no such.
func (r *Registry) ServiceLimits(service string) catalog.ServiceLimits {
	if svc := r.config.Load().Services[service]; svc != nil {
		return svc.Limits
	}
	return catalog.ServiceLimits{}
}

// setLimits takes over what the document says about them.
func (pl *plan) setLimits() []audit.FieldChange {
	was := pl.svc.Limits
	if rate := pl.doc.Rate; rate != nil {
		pl.svc.Limits.Rate = *rate
	}
	if quota := pl.doc.DailyQuota; quota != nil {
		pl.svc.Limits.DailyQuota = *quota
	}
	if bounces := pl.doc.Bounces; bounces != nil {
		pl.svc.Limits.Bounces = *bounces
	}
	return catalog.FieldChanges(was, pl.svc.Limits)
}
