package registry

import (
	"encoding/json"

	"fanfare.dev/fanfare/internal/catalog/audit"
)

// ServiceLimits bound what all channels of a service send together, and to whom
// they send no more. The zero ServiceLimits are without bound, and the default
// rules of bounces.
type ServiceLimits struct {
	Rate       Rate           `json:"rate,omitzero"`
	DailyQuota DailyQuota     `json:"daily_quota,omitzero"`
	Bounces    BounceSettings `json:"bounces,omitzero"`
}

// ServiceLimits returns those of a service, the zero ones where there is no such.
func (r *Registry) ServiceLimits(service string) ServiceLimits {
	if svc := r.config.Load().services[service]; svc != nil {
		return svc.limits
	}
	return ServiceLimits{}
}

// setLimits takes over what the document says about them.
func (pl *plan) setLimits() []audit.FieldChange {
	was := pl.svc.limits
	if rate := pl.doc.Rate; rate != nil {
		pl.svc.limits.Rate = *rate
	}
	if quota := pl.doc.DailyQuota; quota != nil {
		pl.svc.limits.DailyQuota = *quota
	}
	if bounces := pl.doc.Bounces; bounces != nil {
		pl.svc.limits.Bounces = *bounces
	}
	return fieldChanges(was, pl.svc.limits)
}

// limitFields reads what is said of the service.
func (d *Document) limitFields(all fields) {
	all["rate"] = func(v node) { rate := v.rate(); d.Rate = &rate }
	all["daily_quota"] = func(v node) { quota := v.dailyQuota(); d.DailyQuota = &quota }
	all["bounces"] = func(v node) { bounces := v.bounces(); d.Bounces = &bounces }
}

// MarshalJSON returns the spelling of documents.
func (q DailyQuota) MarshalJSON() ([]byte, error) {
	if q == (DailyQuota{}) {
		return json.Marshal(unlimited)
	}
	type plain DailyQuota
	return json.Marshal(plain(q))
}
