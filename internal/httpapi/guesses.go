package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
)

// How many wrong keys an address may try.
const (
	guessInterval = time.Second
	guessBurst    = 30
	// maxGuessers bounds the addresses that are told apart; beyond, those that
	// come new share one bucket.
	maxGuessers = 10_000
)

// guesses slows down who tries keys: an address that has sent too many wrong
// ones gets no other answer until a second has passed for each. A right key is
// taken from everywhere: with 256 random bits it is not guessed, and a program
// with an old key must not lock out those that share its address.
type guesses struct {
	proxies []netip.Prefix // whose X-Forwarded-For is believed
	mu      sync.Mutex
	byFrom  map[netip.Addr]*gauge
}

// wrong counts a wrong key, and refuses an address that has sent too many.
func (g *guesses) wrong(r *http.Request, now time.Time) error {
	from := g.from(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	tried := g.byFrom[from]
	if tried == nil {
		if len(g.byFrom) >= maxGuessers {
			g.forget(now)
		}
		if len(g.byFrom) >= maxGuessers {
			from = netip.Addr{}
		}
		if tried = g.byFrom[from]; tried == nil {
			if g.byFrom == nil {
				g.byFrom = map[netip.Addr]*gauge{}
			}
			tried = new(gauge)
			g.byFrom[from] = tried
		}
	}
	over := time.Duration(tried.full.Load()-now.UnixNano()) - (guessBurst-1)*guessInterval
	if over > 0 {
		return &fanfare.Error{Code: fanfare.RateLimited, Message: "too many wrong keys came from this address", Hint: "wait as long as Retry-After says, and check the key", RetryAfter: over}
	}
	tried.take(now.UnixNano(), int64(guessInterval), guessBurst)
	return nil
}

// forget drops the addresses that have waited long enough.
func (g *guesses) forget(now time.Time) {
	for from, tried := range g.byFrom {
		if tried.full.Load() <= now.UnixNano() {
			delete(g.byFrom, from)
		}
	}
}

// from is whom a wrong key is put down to: the address of the connection, or
// the nearest one in X-Forwarded-For that is no proxy of ours. Of IPv6 it is
// the network of 64 bits, which is what one customer has.
func (g *guesses) from(r *http.Request) netip.Addr {
	at := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && slices.ContainsFunc(g.proxies, func(p netip.Prefix) bool { return p.Contains(at) }); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = hop.Unmap()
	}
	if at.Is6() {
		if network, err := at.WithZone("").Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return at
}

// peer is the address at the other end of the connection.
func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return at.Unmap()
}
