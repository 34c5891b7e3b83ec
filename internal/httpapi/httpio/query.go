package httpio

import (
	"encoding/hex"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// Boolean reads a boolean query parameter.
func Boolean(r *http.Request, name string) (bool, error) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + name + " must be true or false"}
	}
	return on, nil
}

// WantsSummary reports whether the client asks for a short response (quiet, or
// return=minimal of RFC 7240, section 4.2).
func WantsSummary(r *http.Request) (bool, error) {
	for _, v := range r.Header["Prefer"] {
		if strings.Contains(strings.ToLower(v), "return=minimal") {
			return true, nil
		}
	}
	return Boolean(r, "quiet")
}

// RequestID returns the id that the client sent if a log may contain it, or a new one.
func RequestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 64 && harmless(id) {
		return id
	}
	var b [8]byte
	n := rand.Uint64()
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return hex.EncodeToString(b[:])
}

func harmless(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// IsLocal reports whether a request comes from this machine. A request that a proxy on
// this machine forwards is not local.
func IsLocal(r *http.Request) bool {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
