package limits

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

// Limits of wrong keys from one address.
const (
	WrongKeyInterval = time.Second
	WrongKeyBurst    = 30
	// maxAddresses limits the number of addresses with their own bucket; further addresses
	// share one bucket.
	maxAddresses = 10_000
)

// WrongKeys limits the wrong keys from one address: after WrongKeyBurst wrong keys the address
// may send one each WrongKeyInterval. A valid key is accepted from every address: it has 256
// random bits and cannot be guessed, and a program with an old key must not lock out the
// others behind the same address.
type WrongKeys struct {
	Proxies   []netip.Prefix // trusted for X-Forwarded-For
	mu        sync.Mutex
	byAddress map[netip.Addr]*KeyLimit
}

// Count counts a wrong key and returns an error if the address has sent too many.
func (g *WrongKeys) Count(r *http.Request, now time.Time) error {
	from := g.ClientAddress(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	tried := g.byAddress[from]
	if tried == nil {
		if len(g.byAddress) >= maxAddresses {
			g.forget(now)
		}
		if len(g.byAddress) >= maxAddresses {
			from = netip.Addr{}
		}
		if tried = g.byAddress[from]; tried == nil {
			if g.byAddress == nil {
				g.byAddress = map[netip.Addr]*KeyLimit{}
			}
			tried = new(KeyLimit)
			g.byAddress[from] = tried
		}
	}
	over := time.Duration(tried.full.Load()-now.UnixNano()) - (WrongKeyBurst-1)*WrongKeyInterval
	if over > 0 {
		return &fanfare.Error{Code: fanfare.RateLimited, Message: "this address has sent too many invalid keys", Hint: "check the key, and wait as long as Retry-After specifies", RetryAfter: over}
	}
	tried.take(now.UnixNano(), int64(WrongKeyInterval), WrongKeyBurst)
	return nil
}

// forget removes the addresses whose bucket is full again.
func (g *WrongKeys) forget(now time.Time) {
	for from, tried := range g.byAddress {
		if tried.full.Load() <= now.UnixNano() {
			delete(g.byAddress, from)
		}
	}
}

// ClientAddress returns the address of the client: that of the connection, or the last one in
// X-Forwarded-For that is not a trusted proxy. For IPv6 it returns the /64 network, which
// is what one customer usually has.
func (g *WrongKeys) ClientAddress(r *http.Request) netip.Addr {
	at := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && g.trusts(at); i-- {
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

// IsProxied reports whether a request comes from a trusted proxy.
func (g *WrongKeys) IsProxied(r *http.Request) bool { return g.trusts(peer(r)) }

func (g *WrongKeys) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(g.Proxies, func(p netip.Prefix) bool { return p.Contains(at) })
}

// peer returns the remote address of the connection.
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
