package httpapi

import (
	"io/fs"
	"net/http"
	"path"
	"strings"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/web/console"
)

// consolePolicy permits the console only what it has itself. Svelte creates its templates with the policy svelte-trusted-html.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// nothingPolicy permits nothing. It is for responses that are not pages.
const nothingPolicy = "default-src 'none'; frame-ancestors 'none'"

// protect sets the headers of all responses of the console: no page of another origin may show them in a frame or keep a reference to their window, no
// address leaves in Referer, and nothing is kept.
func protect(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// consoleTypes are the media types of the files of the console.
var consoleTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".json": "application/json",
}

// consoleRoot is the address of the first page of the console.
const consoleRoot = "/console/"

// consoleRoutes serves the web console, which is compiled in. Its pages have addresses below /console/; all of them are the same document.
func (a *API) consoleRoutes() {
	a.signInRoutes()
	a.oidcRoutes()
	a.mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header(), nothingPolicy)
		http.Redirect(w, r, consoleRoot, http.StatusPermanentRedirect)
	})
	a.mux.HandleFunc("GET "+consoleRoot, func(w http.ResponseWriter, r *http.Request) {
		x := w.(*responseWriter)
		if err := a.showConsole(x, strings.TrimPrefix(r.URL.Path, consoleRoot)); err != nil {
			a.fail(x, err)
		}
	})
}

// showConsole responds with a file of the console. A build has every file compressed, except for the page that is shown without a build.
func (a *API) showConsole(x *responseWriter, name string) error {
	h := x.Header()
	protect(h, consolePolicy)
	kind := consoleTypes[path.Ext(name)]
	if kind == "" || !fs.ValidPath(name) {
		name, kind = "index.html", consoleTypes[".html"]
	}
	packed, err := fs.ReadFile(console.Files, "dist/"+name+".gz")
	if err != nil && name != "index.html" {
		x.refuseRoute(http.StatusNotFound)
		return nil
	}
	h.Set("Content-Type", kind)
	if err != nil {
		body, err := fs.ReadFile(console.Files, "dist/missing.html")
		if err == nil {
			httpio.WriteAll(x, http.StatusOK, body)
		}
		return err
	}
	if strings.HasPrefix(name, "assets/") { // their names change with their content
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return x.writePacked(packed)
}
