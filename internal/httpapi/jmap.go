package httpapi

import (
	"net/http"
	"strings"
)

// JMAP serves mailboxes to programs that log in with app passwords and tokens of their own, instead of API keys.
type JMAP interface {
	// Serve answers a request. It calls release when the request becomes a stream.
	Serve(w http.ResponseWriter, r *http.Request, release func())
	// Stop ends the streams.
	Stop()
}

const (
	jmapDiscovery = "/.well-known/jmap"
	jmapPrefix    = "/jmap/"
)

// isJMAP reports whether JMAP answers a request. It has its own rules for pages of other origins.
func (a *API) isJMAP(r *http.Request) bool {
	return a.deps.JMAP != nil && (r.URL.Path == jmapDiscovery || strings.HasPrefix(r.URL.Path, jmapPrefix))
}

// jmapRoutes serves JMAP. docs/reference/jmap.md describes it.
func (a *API) jmapRoutes() {
	if a.deps.JMAP == nil {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		x := w.(*responseWriter)
		a.deps.JMAP.Serve(x, r, func() { a.release(x) })
		if x.status == 0 {
			x.status = http.StatusSwitchingProtocols
		}
	}
	a.mux.HandleFunc(jmapDiscovery, serve)
	a.mux.HandleFunc(jmapPrefix, serve)
}
