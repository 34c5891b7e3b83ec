package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"html/template"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

//go:embed errors.html
var errorsHTML string

// errorRoutes serves the page that the type of every problem links to.
func (a *API) errorRoutes() {
	var body bytes.Buffer
	page := template.Must(template.New("errors").Funcs(template.FuncMap{"code": inlineCode}).Parse(errorsHTML))
	if err := page.Execute(&body, problem.Codes()); err != nil {
		panic(err) // the page and its rows are both compiled in
	}
	policy := "default-src 'none'; style-src " + styleHash(errorsHTML) + "; base-uri 'none'; frame-ancestors 'none'"
	op := huma.Operation{OperationID: "show-errors", Method: http.MethodGet, Path: "/errors", Tags: []string{"reference"},
		Summary: "List all error codes with their remedies", Description: "The type of a problem document links to its code on this page."}
	replies[any](a, &op, http.StatusOK, "An HTML page", "text/html")
	a.handle(op, anybody, func(x *responseWriter, _ *http.Request, _ caller) error {
		h := x.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		httpio.WriteAll(x, http.StatusOK, body.Bytes())
		return nil
	})
}

// styleHash returns the hash that a Content-Security-Policy needs to allow the only style of a page.
func styleHash(page string) string {
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var backticks = regexp.MustCompile("`([^`]+)`")

// inlineCode returns text as HTML, with `code` as code elements.
func inlineCode(text string) template.HTML {
	return template.HTML(backticks.ReplaceAllString(html.EscapeString(text), "<code>$1</code>")) //nolint:gosec // G203: escaped right here
}
