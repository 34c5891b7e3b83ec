package httpio

import (
	"net/http"
	"slices"
)

// What scripts of other origins may send and read. A star stands for every
// header but Authorization, which has to be named (Fetch, section 3.3.5); the
// CloudEvents binary mode has headers of any name. Both stars count only
// because credentials are never allowed: keys come in a header that the script
// sets, not from the browser's store.
const (
	corsMethods       = "GET, POST, PUT, PATCH, DELETE"
	corsHeaders       = "*, Authorization"
	corsExposed       = "ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
	corsMaxAgeSeconds = "600"
)

// Origins are those whose scripts may read answers: "*" is all of them.
type Origins []string

// Share tells the browser whether a script may read the answer, and answers a
// preflight as a whole: it then reports true.
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
		return preflight // without leave, the browser keeps the answer to itself
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
