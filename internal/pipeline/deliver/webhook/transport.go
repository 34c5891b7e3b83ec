package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// The maximum sizes that are accepted from a receiver.
const (
	maxHeaderBytes = 64 << 10 // of a response header, including informational responses before it
	maxBodyBytes   = 64 << 10 // of a response body; the connection is closed if there is more
	maxFrameBytes  = 64 << 10 // of an HTTP/2 frame
	maxIdle        = 1024     // idle connections to all receivers
)

// newTransport creates the transport that all connections of a driver share.
func newTransport(c *Config) *http.Transport {
	dialer := net.Dialer{Timeout: c.ConnectTimeout, Control: (&addressGuard{c.AllowNetworks}).control}
	base := c.TLS
	if base == nil {
		base = &tls.Config{}
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        base.Clone(),
		TLSHandshakeTimeout:    c.TLSTimeout,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		IdleConnTimeout:        c.IdleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    c.Connections,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the body is discarded
		WriteBufferSize:        16 << 10,
		Protocols:              protocols,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize:          maxFrameBytes,
			MaxReceiveBufferPerStream: maxBodyBytes,
			SendPingTimeout:           c.IdleTimeout / 2, // to find connections that broke silently
			PingTimeout:               c.ConnectTimeout,
			WriteByteTimeout:          c.SendTimeout,
		},
	}
}

// PublicTransport returns a transport for URLs that people have entered. It connects to addresses of the public Internet only, and to the networks that are
// allowed in addition.
func PublicTransport(allowed []netip.Prefix) *http.Transport {
	return newTransport(&Config{AllowNetworks: allowed, ConnectTimeout: publicTimeout, TLSTimeout: publicTimeout, FirstByteTimeout: publicTimeout, IdleTimeout: publicIdle, SendTimeout: publicTimeout, Connections: publicConnections})
}

// The settings of PublicTransport.
const (
	publicTimeout     = 20 * time.Second
	publicIdle        = 90 * time.Second
	publicConnections = 4 // idle ones of one receiver
)

// An addressGuard decides which addresses may be reached.
type addressGuard struct {
	allowed []netip.Prefix
}

// net.Dialer calls control with the resolved address before it opens a connection.
func (g *addressGuard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !g.permits(to.Addr()) {
		return &refusedError{to.Addr()}
	}
	return nil
}

// permits reports whether an address belongs to the public Internet, or is allowed by the
// operator. An address that embeds an IPv4 address is checked as that address.
func (g *addressGuard) permits(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return true
	}
	if inner, ok := embedded(a); ok {
		return g.permits(inner)
	}
	return public(a)
}

// A refusedError is the error for an address that must not be contacted.
type refusedError struct{ address netip.Addr }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is not a public IP address; to permit it, add it to allow_networks", e.address)
}

// The IPv6 prefixes that embed IPv4 addresses, right after the prefix (RFC 6052, section
// 2.1; RFC 3056, section 2).
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

func embedded(a netip.Addr) (netip.Addr, bool) {
	at := 0
	switch {
	case nat64.Contains(a):
		at = 12
	case sixTo4.Contains(a):
		at = 2
	default:
		return a, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}

// Public addresses are global unicast addresses without the blocks that the IANA registries
// of special-purpose addresses (RFC 6890) mark as not globally reachable, and without the
// address of Azure's host.
var (
	global6        = netip.MustParsePrefix("2000::/3")
	specialPurpose = prefixes(
		"0.0.0.0/8",         // this network (RFC 791)
		"10.0.0.0/8",        // private (RFC 1918)
		"100.64.0.0/10",     // behind a carrier's NAT (RFC 6598)
		"127.0.0.0/8",       // this machine (RFC 1122)
		"168.63.129.16/32",  // host of a virtual machine in Azure
		"169.254.0.0/16",    // link-local (RFC 3927), which includes the metadata services of clouds
		"172.16.0.0/12",     // private (RFC 1918)
		"192.0.0.0/24",      // IETF protocols (RFC 6890)
		"192.0.2.0/24",      // documentation (RFC 5737)
		"192.31.196.0/24",   // AS112 (RFC 7535)
		"192.52.193.0/24",   // AMT (RFC 7450)
		"192.88.99.0/24",    // 6to4 relays (RFC 7526)
		"192.168.0.0/16",    // private (RFC 1918)
		"192.175.48.0/24",   // AS112 (RFC 7534)
		"198.18.0.0/15",     // benchmarking (RFC 2544)
		"198.51.100.0/24",   // documentation (RFC 5737)
		"203.0.113.0/24",    // documentation (RFC 5737)
		"224.0.0.0/4",       // multicast (RFC 5771)
		"240.0.0.0/4",       // reserved (RFC 1112), includes the broadcast address
		"2001::/23",         // IETF protocols, including Teredo (RFC 2928, RFC 4380)
		"2001:db8::/32",     // documentation (RFC 3849)
		"2620:4f:8000::/48", // AS112 (RFC 7534)
		"3fff::/20",         // documentation (RFC 9637)
	)
)

// public reports whether a is an address of the public Internet.
func public(a netip.Addr) bool {
	if a.Is6() && !global6.Contains(a) {
		return false
	}
	return a.IsValid() && !slices.ContainsFunc(specialPurpose, func(p netip.Prefix) bool { return p.Contains(a) })
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}
