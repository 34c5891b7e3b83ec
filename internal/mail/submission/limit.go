package submission

import (
	"fmt"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/mailbox"
)

// maxBurst is how many recipients an account can have at once.
const maxBurst = 200

// A Limiter limits how many recipients the messages of an account have: after a burst, one each interval. It is safe for concurrent use.
type Limiter struct {
	interval time.Duration
	burst    int

	mu   sync.Mutex
	full map[mailbox.AccountID]time.Time // when an account has its whole burst again
}

// DefaultHourly is the usual number of recipients in an hour.
const DefaultHourly = 720

// NewLimiter returns a limiter for a number of recipients in an hour; 0 stands for DefaultHourly.
func NewLimiter(hourly int) *Limiter {
	if hourly == 0 {
		hourly = DefaultHourly
	}
	return &Limiter{interval: time.Hour / time.Duration(hourly), burst: min(hourly, maxBurst), full: map[mailbox.AccountID]time.Time{}}
}

// Take counts n recipients, or returns a *Refusal and counts none.
func (l *Limiter) Take(now time.Time, id mailbox.AccountID, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.full[id]
	if full.Before(now) {
		full = now
	}
	full = full.Add(time.Duration(n) * l.interval)
	if wait := full.Sub(now) - time.Duration(l.burst)*l.interval; wait > 0 {
		return &Refusal{450, "4.7.1", fmt.Sprintf("the account has sent too many messages; try again in %d seconds", int64(wait/time.Second)+1), TooMuch}
	}
	if len(l.full) > 10_000 {
		for other, at := range l.full {
			if !at.After(now) {
				delete(l.full, other)
			}
		}
	}
	l.full[id] = full
	return nil
}
