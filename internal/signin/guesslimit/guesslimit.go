// Package guesslimit limits wrong logins with passwords, from a remote address and to an account.
//
// # State and failure
//
// A [Limit] is in memory only: a restart forgives all wrong logins. It is bounded: beyond 10,000 addresses or accounts, further ones share
// a limit. An address from which somebody has logged in to an account is exempt from the limit of that account for a day, so that others
// cannot lock its owner out. The logins of mailboxes and those of the NotifyBC API use it.
package guesslimit

import (
	"net/netip"
	"sync"
	"time"

	"fanfare.dev/fanfare"
)

// Limits of wrong logins. After a burst, one wrong login is permitted each interval.
const (
	remoteInterval  = time.Second
	remoteBurst     = 30
	accountInterval = 10 * time.Second
	accountBurst    = 100
	// maxTracked limits the number of remote addresses, of accounts, and of pairs of both; further ones share a limit.
	maxTracked = 10_000
	// trustFor is how long an address from which somebody has logged in to an account is exempt from the limit of that account. Otherwise
	// others could lock its owner out.
	trustFor = 24 * time.Hour
)

// A Limit limits wrong logins from a remote address and to an account. It is safe for concurrent use.
type Limit struct {
	mu       sync.Mutex
	remotes  buckets[netip.Addr]
	accounts buckets[string]
	trusted  map[trust]time.Time // until when
}

type trust struct {
	from netip.Addr
	user string
}

// New returns a Limit without wrong logins.
func New() *Limit {
	return &Limit{
		remotes:  buckets[netip.Addr]{interval: remoteInterval, burst: remoteBurst, full: map[netip.Addr]time.Time{}},
		accounts: buckets[string]{interval: accountInterval, burst: accountBurst, full: map[string]time.Time{}},
		trusted:  map[trust]time.Time{},
	}
}

// network returns the /64 of an IPv6 address, which is what one customer usually has.
func network(from netip.Addr) netip.Addr {
	from = from.Unmap().WithZone("")
	if from.Is6() {
		if prefix, err := from.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return from
}

// Permit refuses a login if there were too many wrong ones.
func (g *Limit) Permit(now time.Time, from netip.Addr, user string) error {
	from = network(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.remotes.wait(now, from)
	if !g.trusted[trust{from, user}].After(now) {
		wait = max(wait, g.accounts.wait(now, user))
	}
	if wait <= 0 {
		return nil
	}
	return &fanfare.Error{Code: fanfare.RateLimited, Message: "there were too many wrong logins from this address or to this account", Hint: "check the password, and try again later", RetryAfter: wait}
}

// Wrong counts a wrong login.
func (g *Limit) Wrong(now time.Time, from netip.Addr, user string) {
	from = network(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remotes.take(now, from)
	if !g.trusted[trust{from, user}].After(now) {
		g.accounts.take(now, user)
	}
}

// Right remembers that somebody has logged in from an address.
func (g *Limit) Right(now time.Time, from netip.Addr, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.trusted) >= maxTracked {
		for t, until := range g.trusted {
			if !until.After(now) {
				delete(g.trusted, t)
			}
		}
	}
	if t := (trust{network(from), user}); len(g.trusted) < maxTracked || !g.trusted[t].IsZero() {
		g.trusted[t] = now.Add(trustFor)
	}
}

// buckets are limits by key. Each stores the time at which it has its whole burst again.
type buckets[K comparable] struct {
	interval time.Duration
	burst    int
	full     map[K]time.Time
}

// key returns k, or the zero key if there are too many.
func (b *buckets[K]) key(now time.Time, k K) K {
	if _, ok := b.full[k]; ok || len(b.full) < maxTracked {
		return k
	}
	for other, full := range b.full {
		if !full.After(now) {
			delete(b.full, other)
		}
	}
	if len(b.full) < maxTracked {
		return k
	}
	var shared K
	return shared
}

// wait returns how long to wait until the next one is permitted.
func (b *buckets[K]) wait(now time.Time, k K) time.Duration {
	full, ok := b.full[b.key(now, k)]
	if !ok {
		return 0
	}
	return full.Sub(now) - time.Duration(b.burst-1)*b.interval
}

func (b *buckets[K]) take(now time.Time, k K) {
	k = b.key(now, k)
	full := b.full[k]
	if full.Before(now) {
		full = now
	}
	b.full[k] = full.Add(b.interval)
}
