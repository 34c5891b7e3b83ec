package server

import (
	"math"
	"sync"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
	"fanfare.dev/fanfare/internal/registry"
)

// budgets are what outlets spend beside their own rates: quotas of a day, and the
// rates of services.
type budgets struct {
	quotas quotas
	clock  clock.Clock

	mu    sync.Mutex
	rates map[string]*limit.Shared // by service
}

// of returns the budgets of a channel; share is its part of the service's rate.
// The rate comes last: it alone has an order in which its shares take turns.
func (b *budgets) of(c *registry.Channel, together registry.ServiceLimits, share *limit.Share) (all []deliver.Budget) {
	if quota := b.quotas.of(c.Service+"/"+c.Name, c.DailyQuota); quota != nil {
		all = append(all, quota)
	}
	if quota := b.quotas.of(c.Service, together.DailyQuota); quota != nil {
		all = append(all, quota)
	}
	if together.Rate.PerSecond() > 0 {
		all = append(all, share)
	}
	return all
}

// rate returns the rate of a service.
func (b *budgets) rate(service string) *limit.Shared {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate := b.rates[service]
	if rate == nil {
		if b.rates == nil {
			b.rates = map[string]*limit.Shared{}
		}
		rate = &limit.Shared{}
		b.rates[service] = rate
	}
	return rate
}

// set puts the rate of a service in force.
func (b *budgets) set(service string, rate registry.Rate) {
	perSecond := rate.PerSecond()
	if perSecond == 0 {
		perSecond = math.Inf(1)
	}
	b.rate(service).Set(perSecond, b.clock.Now())
}
