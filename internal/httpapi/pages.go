package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/pages"
)

// maxFormBytes is what the form of a page may have.
const maxFormBytes = 64 << 10

// A pageHandler answers with a page for people.
type pageHandler func(ctx context.Context, x *exchange, r *http.Request) (*pages.Page, error)

// pageRoute adds a page. It needs no key: what its link grants is in its token.
func (a *API) pageRoute(op huma.Operation, h pageHandler) {
	replies[any](a, &op, http.StatusOK, "A page for people", "text/html")
	replies[any](a, &op, http.StatusNotFound, "A page that says that the link does not work", "text/html")
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusInsufficientStorage} {
		replies[any](a, &op, status, "A page that says to try again", "text/html")
	}
	a.handle(op, anybody, func(x *exchange, r *http.Request, _ caller) error {
		status := http.StatusOK
		page, err := h(audit.WithActor(r.Context(), audit.Actor{KeyName: "recipient", Request: x.id}), x, r)
		if err != nil {
			status, page = a.faultPage(x, err)
		}
		return a.show(x, status, page)
	})
}

// readForm reads what a form has sent. What cannot be read is an empty form: one
// click counts whatever stands in it.
func readForm(x *exchange, r *http.Request) url.Values {
	r.Body = http.MaxBytesReader(x.ResponseWriter, r.Body, maxFormBytes)
	var err error
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		err = r.ParseMultipartForm(maxFormBytes) //nolint:gosec // the body is bounded above
	} else {
		err = r.ParseForm()
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return url.Values{}
	}
	return r.PostForm
}

func (a *API) show(x *exchange, status int, p *pages.Page) error {
	body, policy, err := a.page.Write(p)
	if err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer") // the address is a secret of the recipient
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	writeAll(x, status, body)
	return nil
}
