package server

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
	"fanfare.dev/fanfare/internal/registry"
)

// quotas are those of a day, by service or service/channel. Their blocks are reserved in the store,
// each beside the connections that wait for it.
type quotas struct {
	registry *registry.Registry
	clock    clock.Clock
	logger   *slog.Logger

	// mu is never held while a quota is asked: a quota that is asked asks for it.
	mu      sync.Mutex
	all     map[string]*limit.Quota
	asking  sync.WaitGroup
	stopped bool
}

// of returns the quota of a service, or of one service/channel, nil if it is none.
func (q *quotas) of(name string, daily registry.DailyQuota) *limit.Quota {
	if daily.Messages == 0 {
		return nil
	}
	zone, err := time.LoadLocation(daily.Zone)
	if err != nil {
		zone = time.UTC // the document was refused that names one which is not known
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
			q.asking.Go(func() { q.reserve(quota, name, day, block) })
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

func (q *quotas) reserve(quota *limit.Quota, name, day string, block int64) {
	granted, err := q.registry.ReserveQuota(context.Background(), name, day, quota.Most(), block)
	if err != nil {
		q.logger.Warn("messages of a day's quota could not be reserved, it is tried again", "of", name, "error", err)
		quota.Fail(day, q.clock.Now())
		return
	}
	quota.Grant(day, block, granted)
}

// stop gives back what was reserved and not used. Nothing is sent any more.
func (q *quotas) stop(ctx context.Context) {
	q.mu.Lock()
	q.stopped = true
	all := maps.Clone(q.all)
	q.mu.Unlock()
	q.asking.Wait()
	for name, quota := range all {
		if day, left := quota.Rest(); left > 0 {
			if _, err := q.registry.ReserveQuota(ctx, name, day, quota.Most(), -left); err != nil {
				q.logger.Warn("what is left of a block of a day's quota is lost", "of", name, "messages", left, "error", err)
			}
		}
	}
}
