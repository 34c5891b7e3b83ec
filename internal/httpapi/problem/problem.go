// Package problem turns errors into problem documents (RFC 9457).
package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Retry-After for errors that do not set their own.
const (
	retryUnavailable = 2 * time.Second
	retryDiskFull    = 60 * time.Second
)

// Of returns the problem document for err.
func Of(err error, requestID string) *Document {
	member := wire.MemberOf(err)
	status := StatusOf(member.Code)
	p := &Document{Problem: wire.Problem{Type: TypeOf(member.Code), Title: http.StatusText(status), Status: status, RequestID: requestID, Member: member}}
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		p.retryAfter = e.RetryAfter
	}
	return p
}

// Document is a wire.Problem that huma can write.
type Document struct {
	wire.Problem
	retryAfter time.Duration // of the error, or 0
}

func (p *Document) Error() string             { return p.Detail }
func (p *Document) GetStatus() int            { return p.Status }
func (p *Document) ContentType(string) string { return MediaType }

const MediaType = "application/problem+json"

// Write writes p as the response.
func (p *Document) Write(w http.ResponseWriter) {
	p.Headers(w.Header())
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)  // people read it in a terminal; browsers never render it as HTML
	_ = e.Encode(p.Problem) // plain fields only: cannot fail
	httpio.WriteAll(w, p.Status, body.Bytes())
}

func (p *Document) Headers(h http.Header) {
	h.Set("Content-Type", MediaType)
	wait := p.retryAfter
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="fanfare"`)
	case http.StatusServiceUnavailable:
		wait = max(wait, retryUnavailable)
	case http.StatusInsufficientStorage:
		wait = max(wait, retryDiskFull)
	case http.StatusTooManyRequests:
		wait = max(wait, time.Second)
	}
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(httpio.WholeSeconds(wait), 10)) // whole seconds, RFC 9110 section 10.2.3
	}
}

func NotFound(what, name string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: what + " " + strconv.Quote(name) + " does not exist"}
}
