package server

import (
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/registry"
)

// status is how a quota of a day is used, nil where there is none.
func (q *quotas) status(name string, daily registry.DailyQuota) *wire.QuotaStatus {
	quota := q.of(name, daily)
	if quota == nil {
		return nil
	}
	left, day, ends := quota.Left(q.clock.Now())
	used := max(0, q.registry.ReservedQuota(name, day)-left)
	return &wire.QuotaStatus{Messages: daily.Messages, Zone: daily.Zone, Used: used, Ends: ends.UTC()}
}

// Spent tells until when nothing leaves by a channel of a service since its quota of
// the day, or that of the service, is spent; the zero time: it is not.
func (q *quotas) Spent(service, channel string) (until time.Time) {
	if q.registry.ServiceLimits(service).DailyQuota.Messages > 0 {
		until = q.spent(service)
	}
	if c, ok := q.registry.ChannelNamed(service, channel); ok && c.DailyQuota.Messages > 0 {
		if at := q.spent(service + "/" + channel); at.After(until) {
			until = at
		}
	}
	return until
}

// AnySpent reports whether some quota of a service or of its channels is spent.
func (q *quotas) AnySpent(service string) bool {
	if !q.Spent(service, "").IsZero() {
		return true
	}
	for _, c := range q.registry.Channels() {
		if c.Service == service && !q.Spent(service, c.Name).IsZero() {
			return true
		}
	}
	return false
}

func (q *quotas) spent(name string) time.Time {
	q.mu.Lock()
	quota := q.all[name]
	q.mu.Unlock()
	if quota == nil {
		return time.Time{}
	}
	return quota.Spent(q.clock.Now())
}
