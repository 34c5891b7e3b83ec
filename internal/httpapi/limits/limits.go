// Package limits limits the requests of a key and the invalid keys from an address.
package limits

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Limits limit the load of the API. Zero means no limit.
type Limits struct {
	Requests       int // concurrent requests
	RequestsPerKey int // concurrent requests of one key
	RatePerSecond  int // requests of one key
	Burst          int // requests that an idle key may send in a burst; 0: RatePerSecond
}

// UrgentShare is the fraction (1/n) of Requests that is reserved for urgent events.
const UrgentShare = 8

// MaxRequests returns how many requests may run at the same time when r arrives.
func (l *Limits) MaxRequests(r *http.Request) int {
	urgent := fanfare.Urgent.String()
	if r.Method == http.MethodPost && (r.Header.Get("X-Fanfare-Lane") == urgent || strings.Contains(r.URL.RawQuery, "lane="+urgent)) {
		return l.Requests
	}
	return l.Requests - l.Requests/UrgentShare
}

// A KeyLimit limits one key with a bucket that fills by one request every interval. It
// stores the time at which the bucket is full (the generic cell rate algorithm), so that
// a request costs one atomic exchange.
type KeyLimit struct {
	running atomic.Int64
	full    atomic.Int64 // unix nanoseconds
}

// KeyLimits holds one limit for each key that was used since the start.
type KeyLimits struct {
	limits   Limits
	interval int64 // nanoseconds; 0: no rate
	burst    int64
	policy   []string // the value of RateLimit-Policy
	byKey    sync.Map // key id -> *KeyLimit
}

func NewKeyLimits(l Limits) *KeyLimits {
	g := &KeyLimits{limits: l}
	if l.RatePerSecond > 0 {
		g.interval = int64(time.Second) / int64(l.RatePerSecond)
		g.burst = int64(l.Burst)
		if g.burst == 0 {
			g.burst = int64(l.RatePerSecond)
		}
		window := (g.burst*g.interval + int64(time.Second) - 1) / int64(time.Second) // after which an empty bucket is full
		g.policy = []string{`"key";q=` + strconv.FormatInt(g.burst, 10) + ";w=" + strconv.FormatInt(window, 10)}
	}
	return g
}

// Acquire counts a request of a key or rejects it. The caller calls Release at the end of
// the request. RateLimit and RateLimit-Policy are the headers of
// draft-ietf-httpapi-ratelimit-headers-11: r is the rest of the burst, t the seconds until
// the burst is full again, or after a rejection until the next try.
func (g *KeyLimits) Acquire(h http.Header, key string, now time.Time) (*KeyLimit, error) {
	if g.interval == 0 && g.limits.RequestsPerKey == 0 {
		return nil, nil
	}
	found, ok := g.byKey.Load(key)
	if !ok {
		found, _ = g.byKey.LoadOrStore(key, new(KeyLimit))
	}
	mine := found.(*KeyLimit)
	if g.interval > 0 {
		left, full, wait := mine.take(now.UnixNano(), g.interval, g.burst)
		t := full
		if wait > 0 {
			t = wait
		}
		h["Ratelimit-Policy"] = g.policy
		h["Ratelimit"] = []string{`"key";r=` + strconv.FormatInt(left, 10) + ";t=" + strconv.FormatInt(httpio.WholeSeconds(t), 10)}
		if wait > 0 {
			return nil, &fanfare.Error{Code: fanfare.RateLimited, Message: "this key has exceeded its rate limit of " + strconv.Itoa(g.limits.RatePerSecond) + " requests per second",
				Hint: "wait as long as Retry-After specifies; send many events or subscriptions in one NDJSON request", RetryAfter: wait}
		}
	}
	if most := int64(g.limits.RequestsPerKey); most > 0 && mine.running.Add(1) > most {
		mine.running.Add(-1)
		return nil, &fanfare.Error{Code: fanfare.RateLimited, Message: "this key has reached its limit of " + strconv.FormatInt(most, 10) + " concurrent requests",
			Hint: "send the request again when another one has finished"}
	}
	return mine, nil
}

// take removes one request from the bucket. left is the rest, full the time until the bucket
// is full, and wait the time until the next request if the bucket is empty.
func (g *KeyLimit) take(now, interval, burst int64) (left int64, full, wait time.Duration) {
	for {
		before := g.full.Load()
		then := max(before, now) + interval
		if over := then - now - burst*interval; over > 0 {
			return 0, time.Duration(before - now), time.Duration(over)
		}
		if g.full.CompareAndSwap(before, then) {
			return burst - (then-now+interval-1)/interval, time.Duration(then - now), 0
		}
	}
}

// Release stops counting a request.
func (g *KeyLimit) Release() {
	if g != nil {
		g.running.Add(-1)
	}
}
