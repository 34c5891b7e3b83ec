package notify

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// maxBurst is the maximum number of requests that can be saved up.
const maxBurst = 1000

// limits count the requests of services. The zero value has counted nothing.
type limits struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
	days    map[dayKey]int
	today   fanfare.Day
}

type bucketKey struct{ service, key string }

// A bucket limits the requests with one type of key.
type bucket struct {
	of      catalog.Rate
	limiter *rate.Limiter
}

type dayKey struct {
	service string
	sms     bool
}

// checkRate counts a request that sends, or refuses it.
func (a *API) checkRate(c *caller) error {
	of, now := c.service.Notify.RateLimit(), a.options.Clock.Now()
	perSecond := of.PerSecond()
	if perSecond <= 0 {
		return nil // unlimited
	}
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	key := bucketKey{c.service.Name, c.key.Type}
	b := a.limits.buckets[key]
	if b == nil || b.of != of {
		burst := min(int(perSecond*60)/3+1, maxBurst)
		b = &bucket{of, rate.NewLimiter(rate.Limit(perSecond), burst)}
		if a.limits.buckets == nil {
			a.limits.buckets = map[bucketKey]*bucket{}
		}
		a.limits.buckets[key] = b
	}
	if b.limiter.AllowN(now, 1) {
		return nil
	}
	e := refuse(http.StatusTooManyRequests, nameRate, fmt.Sprintf("Exceeded rate limit for key type %s of %d requests per %d seconds", strings.ToUpper(c.key.Type), of.Count, int(math.Round(of.Per.Seconds()))))
	e.retryAfter = time.Duration(float64(time.Second) / perSecond)
	return e
}

// checkDay refuses a message if the service has sent its messages of the day. Test keys are not counted.
func (a *API) checkDay(ctx context.Context, c *caller, sms bool) error {
	if c.key.Type == state.NotifyTest {
		return nil
	}
	now := a.options.Clock.Now()
	sent, err := a.sentToday(ctx, c.service.Name, sms, fanfare.DayOf(now))
	if err != nil {
		return err
	}
	limit := c.service.Notify.DailyLimit(sms)
	if sent < limit {
		return nil
	}
	kind := "email"
	if sms {
		kind = "sms"
	}
	e := refuse(http.StatusTooManyRequests, nameTooMany, fmt.Sprintf("Exceeded send limits (%s: %d) for today", kind, limit))
	e.retryAfter = (fanfare.DayOf(now) + 1).Time().Sub(now)
	return e
}

// countDay counts a message that was accepted.
func (a *API) countDay(c *caller, sms bool) {
	if c.key.Type == state.NotifyTest {
		return
	}
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if a.limits.today == fanfare.DayOf(a.options.Clock.Now()) {
		a.limits.days[dayKey{c.service.Name, sms}]++
	}
}

// sentToday returns the number of messages of a service on a day. It reads the first number from the store.
func (a *API) sentToday(ctx context.Context, service string, sms bool, today fanfare.Day) (int, error) {
	key := dayKey{service, sms}
	a.limits.mu.Lock()
	if a.limits.today != today {
		a.limits.today, a.limits.days = today, map[dayKey]int{}
	}
	sent, known := a.limits.days[key]
	a.limits.mu.Unlock()
	if known {
		return sent, nil
	}
	sent, err := a.options.Store.CountNotify(ctx, today, service, []string{deliveries.NotifyLabel(state.NotifyLive, sms), deliveries.NotifyLabel(state.NotifyTeam, sms)})
	if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
		return 0, err
	}
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if a.limits.today == today {
		if counted, known := a.limits.days[key]; known {
			return counted, nil
		}
		a.limits.days[key] = sent
	}
	return sent, nil
}
