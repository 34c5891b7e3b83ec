package channels

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// budgets contains the limits that several senders share: daily quotas and the rates of services.
type budgets struct {
	quotas Quotas
	clock  clock.Clock

	mu    sync.Mutex
	rates map[string]*limit.SharedRate // by service
}

// of returns the budgets of a channel; share is its part of the service's rate. The rate comes
// last because only the rate lets its shares take turns.
func (b *budgets) of(c *catalog.Channel, service catalog.ServiceLimits, share *limit.Share) (all []deliver.Budget) {
	if quota := b.quotas.of(c.Service+"/"+c.Name, c.DailyQuota); quota != nil {
		all = append(all, quota)
	}
	if quota := b.quotas.of(c.Service, service.DailyQuota); quota != nil {
		all = append(all, quota)
	}
	if service.Rate.PerSecond() > 0 {
		all = append(all, share)
	}
	return all
}

// rate returns the rate of a service.
func (b *budgets) rate(service string) *limit.SharedRate {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate := b.rates[service]
	if rate == nil {
		if b.rates == nil {
			b.rates = map[string]*limit.SharedRate{}
		}
		rate = &limit.SharedRate{}
		b.rates[service] = rate
	}
	return rate
}

// set applies the rate of a service.
func (b *budgets) set(service string, rate catalog.Rate) {
	perSecond := rate.PerSecond()
	if perSecond == 0 {
		perSecond = math.Inf(1)
	}
	b.rate(service).Set(perSecond, b.clock.Now())
}

// Quotas contains the daily quotas of services and channels. Separate goroutines reserve messages
// in the registry in blocks, so that connections do not wait for the database.
type Quotas struct {
	registry *registry.Registry
	clock    clock.Clock
	logger   *slog.Logger

	// mu is never held during a call to a quota, because a quota may call reserve.
	mu        sync.Mutex
	all       map[string]*limit.Quota // by service, or service/channel
	reserving sync.WaitGroup
	stopped   bool
}

// of returns the quota of a service, or of a service/channel; nil if it has none.
func (q *Quotas) of(name string, daily catalog.DailyQuota) *limit.Quota {
	if daily.Messages == 0 {
		return nil
	}
	zone, err := time.LoadLocation(daily.Zone)
	if err != nil {
		zone = time.UTC // apply refuses an unknown time zone
	}
	most := daily.Messages
	q.mu.Lock()
	quota := q.all[name]
	q.mu.Unlock()
	if quota != nil {
		quota.Set(most, zone)
		return quota
	}
	quota = limit.NewQuota(most, zone, func(day string, block int64) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if !q.stopped {
			q.reserving.Go(func() { q.reserve(quota, name, day, block) })
		}
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[string]*limit.Quota{}
	}
	q.all[name] = quota
	return quota
}

func (q *Quotas) reserve(quota *limit.Quota, name, day string, block int64) {
	granted, err := q.registry.ReserveQuota(context.Background(), name, day, quota.Most(), block)
	if err != nil {
		q.logger.Warn("cannot reserve messages of a daily quota; retrying", "of", name, "error", err)
		quota.Fail(day, q.clock.Now())
		return
	}
	quota.Grant(day, block, granted)
}

// stop returns unused reservations. No message is sent after this.
func (q *Quotas) stop(ctx context.Context) {
	q.mu.Lock()
	q.stopped = true
	all := maps.Clone(q.all)
	q.mu.Unlock()
	q.reserving.Wait()
	for name, quota := range all {
		if day, left := quota.Release(); left > 0 {
			if _, err := q.registry.ReserveQuota(ctx, name, day, quota.Most(), -left); err != nil {
				q.logger.Warn("cannot release the unused messages of a daily quota; they count as sent", "of", name, "messages", left, "error", err)
			}
		}
	}
}

// Status returns how much of a quota is used, nil if there is none.
func (q *Quotas) Status(name string, daily catalog.DailyQuota) *wire.QuotaStatus {
	quota := q.of(name, daily)
	if quota == nil {
		return nil
	}
	left, day, ends := quota.Left(q.clock.Now())
	used := max(0, q.registry.ReservedQuota(name, day)-left)
	return &wire.QuotaStatus{Messages: daily.Messages, Zone: daily.Zone, Used: used, Ends: ends.UTC()}
}

// Spent returns until when a channel of a service sends nothing because its daily quota or that
// of the service is used up, or the zero time if neither is.
func (q *Quotas) Spent(service, channel string) (until time.Time) {
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

// AnySpent reports whether a quota of a service or of its channels is used up.
func (q *Quotas) AnySpent(service string) bool {
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

func (q *Quotas) spent(name string) time.Time {
	q.mu.Lock()
	quota := q.all[name]
	q.mu.Unlock()
	if quota == nil {
		return time.Time{}
	}
	return quota.ExhaustedUntil(q.clock.Now())
}
