package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

//go:embed unsubscribe.html
var unsubscribeHTML string

// pages are what a recipient sees behind the link in a message.
type pages struct {
	template *template.Template
	policy   string // Content-Security-Policy: no scripts, only the one style
}

func newPages() *pages {
	return &pages{
		template: template.Must(template.New("unsubscribe").Parse(unsubscribeHTML)),
		policy:   "default-src 'none'; style-src " + styleHash(unsubscribeHTML) + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

// styleHash is what a policy has to name so that the one style of a page counts.
func styleHash(page string) string {
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page fills unsubscribe.html.
type page struct {
	Title, Text string
	Confirm     bool // with a button that posts to the page's own address
}

// unsubscribeRoutes serves the links of List-Unsubscribe. GET changes nothing,
// because mail scanners follow links; POST acts, from the page's button or as
// the one click of RFC 8058, without any key: the token is signed.
func (a *API) unsubscribeRoutes() {
	if a.parts.Unsubscribe == nil {
		return
	}
	op := func(id, method, summary string) huma.Operation {
		o := huma.Operation{OperationID: id, Method: method, Path: "/u/{token}", Tags: []string{"recipients"}, Summary: summary,
			Parameters: []*huma.Param{param("token", "from the link in a message")}}
		replies[any](a, &o, http.StatusOK, "A page for people", "text/html")
		return o
	}
	a.handle(op("show-unsubscribe", http.MethodGet, "Ask a recipient whether to unsubscribe; changes nothing"), anybody, func(x *exchange, _ *http.Request, _ caller) error {
		return a.show(x, http.StatusOK, page{"Unsubscribe?", "You will get no more of these messages.", true})
	})
	post := op("unsubscribe", http.MethodPost, "Unsubscribe (RFC 8058 one-click); no key is needed")
	replies[any](a, &post, http.StatusNotFound, "A page that says that the link does not work", "text/html")
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusInsufficientStorage} {
		replies[any](a, &post, status, "A page that says to try again", "text/html")
	}
	a.handle(post, anybody, func(x *exchange, r *http.Request, _ caller) error {
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(x.ResponseWriter, r.Body, maxBodyBytes)) // its content does not matter
		patient(x)
		err := a.parts.Unsubscribe(registry.As(r.Context(), registry.Actor{KeyName: "recipient", Request: x.id}), r.PathValue("token"))
		switch code := fanfare.CodeOf(err); {
		case err == nil:
			return a.show(x, http.StatusOK, page{"You are unsubscribed", "You will get no more of these messages. You can close this page.", false})
		case code == fanfare.NotFound || code == fanfare.Invalid:
			return a.show(x, http.StatusNotFound, page{"This link does not work", "It may have been cut off. Please open it again from the message.", false})
		default:
			if code == fanfare.Internal {
				a.log.Error("request failed", "request_id", x.id, "route", r.Pattern, "err", err)
			}
			return a.show(x, statusOf(code), page{"That did not work", "You are not unsubscribed yet. Please try again in a minute.", true})
		}
	})
}

func (a *API) show(x *exchange, status int, p page) error {
	var body bytes.Buffer
	if err := a.page.template.Execute(&body, p); err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", a.page.policy)
	h.Set("Referrer-Policy", "no-referrer") // the address is a secret of the recipient
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	writeAll(x, status, body.Bytes())
	return nil
}
