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

// reserveDay counts a message of the day, or refuses it if the service has sent its messages. release takes the message
// back if it is not sent. Test keys are not counted.
func (a *API) reserveDay(ctx context.Context, c *caller, sms bool) (release func(), err error) {
	if c.key.Type == state.NotifyTest {
		return func() {}, nil
	}
	now := a.options.Clock.Now()
	today, key, limit := fanfare.DayOf(now), dayKey{c.service.Name, sms}, c.service.Notify.DailyLimit(sms)
	if err := a.readDay(ctx, key, today); err != nil {
		return nil, err
	}
	add := func(n int) {
		if a.limits.today == today {
			a.limits.days[key] += n
		}
	}
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if a.limits.today == today && a.limits.days[key] >= limit {
		e := refuse(http.StatusTooManyRequests, nameTooMany, fmt.Sprintf("Exceeded send limits (%s: %d) for today", typeName(sms), limit))
		e.retryAfter = (today + 1).Time().Sub(now)
		return nil, e
	}
	add(1)
	return func() {
		a.limits.mu.Lock()
		defer a.limits.mu.Unlock()
		add(-1)
	}, nil
}

// readDay makes sure that the messages of a day are counted. It reads those from before the start from the store.
func (a *API) readDay(ctx context.Context, key dayKey, today fanfare.Day) error {
	a.limits.mu.Lock()
	if a.limits.today < today {
		a.limits.today, a.limits.days = today, map[dayKey]int{}
	}
	_, known := a.limits.days[key]
	a.limits.mu.Unlock()
	if known {
		return nil
	}
	sent, err := a.options.Store.CountNotify(ctx, today, key.service, []string{deliveries.NotifyLabel(state.NotifyLive, key.sms), deliveries.NotifyLabel(state.NotifyTeam, key.sms)})
	if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
		return err
	}
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if _, known := a.limits.days[key]; !known && a.limits.today == today {
		a.limits.days[key] = sent
	}
	return nil
}
