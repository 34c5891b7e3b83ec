package httpio

import (
	"net/http"
	"slices"
)

// Methods and headers that scripts of other origins may use. The star means every header
// except Authorization, which must be named (Fetch, section 3.3.5); the CloudEvents binary
// mode has headers of any name. The star is valid only because credentials are never
// allowed: the script sets the key in a header, and the browser does not store it.
const (
	corsMethods       = "GET, POST, PUT, PATCH, DELETE"
	corsHeaders       = "*, Authorization"
	corsExposed       = "ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
	corsMaxAgeSeconds = "600"
)

// Origins are the origins whose scripts may read responses; "*" means all.
type Origins []string

// Share sets the headers that allow a script to read the response. It reports true if the
// request is a preflight, which it has then answered completely.
func (o Origins) Share(h http.Header, r *http.Request) (done bool) {
	if len(o) == 0 {
		return false
	}
	everybody := slices.Contains(o, "*")
	if !everybody {
		h.Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	switch {
	case everybody:
		h.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(o, origin):
		h.Set("Access-Control-Allow-Origin", origin)
	default:
		return preflight // without permission, the browser hides the response
	}
	if !preflight {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAgeSeconds)
	return true
}
