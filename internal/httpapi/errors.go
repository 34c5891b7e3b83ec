package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Retry-After for errors that do not set their own.
const (
	retryUnavailable = 2 * time.Second
	retryDiskFull    = 60 * time.Second
)

// problemOf returns the problem document for err.
func problemOf(err error, requestID string) *problem {
	member := wire.MemberOf(err)
	status := statusOf(member.Code)
	p := &problem{Problem: wire.Problem{Type: typeOf(member.Code), Title: http.StatusText(status), Status: status, RequestID: requestID, Member: member}}
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		p.retryAfter = e.RetryAfter
	}
	return p
}

// problem is a wire.Problem that huma can write.
type problem struct {
	wire.Problem
	retryAfter time.Duration // of the error, or 0
}

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// fail answers with err, or aborts a response that has already begun.
func (a *API) fail(x *exchange, err error) {
	if errors.Is(err, context.Canceled) && x.request.Context().Err() != nil {
		x.status = statusClientGone // the client has disconnected
		return
	}
	p := problemOf(err, x.id)
	if p.Status == http.StatusInternalServerError {
		a.log.Log(x.request.Context(), a.failureLevel(), "request failed", "request_id", x.id, "method", x.request.Method, "route", x.request.Pattern, "err", err)
	}
	if x.status != 0 {
		panic(http.ErrAbortHandler) // abort the response, so that the client does not take it for complete
	}
	p.write(x)
}

// write writes p as the response.
func (p *problem) write(w http.ResponseWriter) {
	p.headers(w.Header())
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)  // people read it in a terminal, and browsers never as HTML
	_ = e.Encode(p.Problem) // plain fields only: cannot fail
	writeAll(w, p.Status, body.Bytes())
}

func (p *problem) headers(h http.Header) {
	h.Set("Content-Type", problemType)
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
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(wait), 10)) // whole seconds, RFC 9110 section 10.2.3
	}
}

// statusClientGone is logged, never sent.
const statusClientGone = 499

func writeAll(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:gosec // G705: JSON, or a page that html/template has escaped; a client that is gone is no concern of the handler
}

// bodyError converts an error of reading a request body.
func bodyError(err error, limitBytes int64) *fanfare.Error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLargeBody(limitBytes)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the body came too slowly"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the body ended early", Hint: "the connection broke; send it again"}
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the body could not be read"}
}

func tooLargeBody(limitBytes int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.TooLarge, Message: "the body is larger than " + strconv.FormatInt(limitBytes, 10) + " bytes",
		Hint: "many events or subscriptions go as NDJSON (application/x-ndjson), which is streamed"}
}

func notFound(what, name string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: what + " " + strconv.Quote(name) + " does not exist"}
}

// logPanic logs a panic; the client gets only the request id.
func logPanic(log *slog.Logger, x *exchange, reason any, stack []byte) {
	log.Error("handler panicked", "request_id", x.id, "method", x.request.Method, "route", x.request.Pattern, "panic", reason, "stack", string(stack))
}
