package httpapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	swagger "github.com/swaggest/swgui/v5/static"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

//go:embed viewer
var viewerFiles embed.FS

// viewerPolicy restricts the viewer to this server. The viewer sets styles and draws
// icons itself.
const viewerPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// viewerRoutes serves the OpenAPI document as a page: Swagger UI (Apache License 2.0),
// which is compiled in and needs no internet access.
func (a *API) viewerRoutes() {
	op := huma.Operation{OperationID: "show-documentation", Method: http.MethodGet, Path: "/docs", Tags: []string{"reference"},
		Summary: "Show this document as an interactive page"}
	replies[any](a, &op, http.StatusOK, "An HTML page", "text/html")
	a.handle(op, anybody, func(x *responseWriter, _ *http.Request, _ caller) error { return a.view(x, "index.html") })
	for _, name := range []string{"start.js", "swagger-ui.css", "swagger-ui-bundle.js"} { // parts of the page, not endpoints
		a.mux.HandleFunc("GET /docs/"+name, func(w http.ResponseWriter, _ *http.Request) {
			x := w.(*responseWriter)
			if err := a.view(x, name); err != nil {
				a.fail(x, err)
			}
		})
	}
}

// view responds with a file of the viewer.
func (a *API) view(x *responseWriter, name string) error {
	h := x.Header()
	h.Set("Content-Security-Policy", viewerPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	switch {
	case strings.HasSuffix(name, ".js"):
		h.Set("Content-Type", "text/javascript; charset=utf-8")
	case strings.HasSuffix(name, ".css"):
		h.Set("Content-Type", "text/css; charset=utf-8")
	default:
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	if body, err := viewerFiles.ReadFile("viewer/" + name); err == nil {
		httpio.WriteAll(x, http.StatusOK, body)
		return nil
	}
	packed, err := swagger.FS.ReadFile(name + ".gz")
	if err != nil {
		return err
	}
	h.Set("Cache-Control", "max-age=3600")
	return x.writePacked(packed)
}

// writePacked responds with a body that is stored in the format gzip, which it unpacks for a client that does not accept it.
func (x *responseWriter) writePacked(packed []byte) error {
	x.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(x.request.Header.Get("Accept-Encoding"), "gzip") {
		x.Header().Set("Content-Encoding", "gzip")
		httpio.WriteAll(x, http.StatusOK, packed)
		return nil
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	httpio.WriteAll(x, http.StatusOK, body)
	return nil
}
