package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// A responseWriter holds one request and the state of its response.
type responseWriter struct {
	http.ResponseWriter
	request *http.Request
	id      string
	status  int  // 0 until the response has begun
	own     bool // we wrote the response: further output of the mux is dropped
	api     *API

	began    time.Time
	key      string           // id of the key of the request, "" if unknown
	signIn   string           // id of the sign-in of the person who sent the request with a cookie, "" if there is none
	keyLimit *limits.KeyLimit // the limit that counts the request, or nil
	released bool             // the request is not counted any more

	wantsCSV bool // of a list
}

// Unwrap returns the writer of the connection, for http.ResponseController.
func (x *responseWriter) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader begins the response. A problem document replaces the text that the mux
// writes for an unknown path or method.
func (x *responseWriter) WriteHeader(status int) {
	if x.status == 0 && x.request.Pattern == "" && status >= 400 {
		x.refuseRoute(status)
		return
	}
	if x.own {
		return
	}
	if status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (x *responseWriter) Write(b []byte) (int, error) {
	if x.own {
		return len(b), nil
	}
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

func (x *responseWriter) refuseRoute(status int) {
	err := &fanfare.Error{Code: fanfare.NotFound, Message: x.request.Method + " " + x.request.URL.Path + " does not exist", Hint: "see /docs or /openapi.json for the endpoints"}
	if status == http.StatusMethodNotAllowed {
		err = &fanfare.Error{Code: fanfare.MethodNotAllowed, Message: x.request.URL.Path + " does not support the method " + x.request.Method, Hint: "use one of the methods in the header Allow"}
	}
	x.refuse(err)
}

// refuse responds with err instead of a handler.
func (x *responseWriter) refuse(err error) {
	p := problem.Of(err, x.id)
	x.status, x.own = p.Status, true
	p.Write(x.ResponseWriter)
}

// ServeHTTP handles one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &responseWriter{ResponseWriter: w, request: r, id: httpio.RequestID(r), api: a, began: a.now()}
	w.Header().Set("X-Request-Id", x.id)
	defer a.changes.enter(r)()
	running := a.running.Add(1)
	defer a.release(x)
	defer func() {
		if reason := recover(); reason != nil {
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason)
			}
			logPanic(a.log, x, reason, debug.Stack())
			a.fail(x, fmt.Errorf("panic: %v", reason))
		}
		a.access.answered(x, a.now())
	}()
	if !a.isJMAP(r) && a.origins.Share(w.Header(), r) {
		x.WriteHeader(http.StatusNoContent)
		return
	}
	if most := a.deps.Limits.MaxRequests(r); most > 0 && running > int64(most) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		x.refuse(&fanfare.Error{Code: fanfare.Unavailable, Message: "the server is processing too many requests", Hint: "send the request again shortly"})
		return
	}
	a.mux.ServeHTTP(x, r)
}

// release stops counting a request. It may be called twice.
func (a *API) release(x *responseWriter) {
	if x.released {
		return
	}
	x.released = true
	a.running.Add(-1)
	x.keyLimit.Release()
}

// admitted authenticates the request, checks the scope of its key and applies the limits
// of the key.
func (a *API) admitted(x *responseWriter, who access) (caller, error) {
	if who == anybody {
		return caller{}, nil
	}
	r := x.request
	c, err := a.allowed(r, who)
	x.key, x.signIn = c.principal.KeyID, c.signIn
	if sender := c.principal.ID(); sender != "" {
		var over error
		if x.keyLimit, over = a.keyLimits.Acquire(x.Header(), sender, x.began); over != nil {
			return caller{}, over
		}
	} else if fanfare.CodeOf(err) == fanfare.Unauthenticated && r.Header.Get("Authorization") != "" {
		if tooMany := a.wrongKeys.Count(r, x.began); tooMany != nil {
			err = tooMany
		}
	}
	return c, err
}

// statusClientGone is logged, never sent.
const statusClientGone = 499

// fail responds with err, or aborts a response that has already begun.
func (a *API) fail(x *responseWriter, err error) {
	if errors.Is(err, context.Canceled) && x.request.Context().Err() != nil {
		x.status = statusClientGone // the client has disconnected
		return
	}
	p := problem.Of(err, x.id)
	if p.Status == http.StatusInternalServerError {
		a.log.Log(x.request.Context(), a.failureLevel(), "request failed", "request_id", x.id, "method", x.request.Method, "route", x.request.Pattern, "err", err)
	}
	if x.status != 0 {
		panic(http.ErrAbortHandler) // abort the response, so that the client does not consider it complete
	}
	p.Write(x)
}

// logPanic logs a panic; the client gets only the request id.
func logPanic(log *slog.Logger, x *responseWriter, reason any, stack []byte) {
	log.Error("handler panicked", "request_id", x.id, "method", x.request.Method, "route", x.request.Pattern, "panic", reason, "stack", string(stack))
}

// Started reports whether the response has begun.
func (x *responseWriter) Started() bool { return x.status != 0 }

// run reads the lines of a bulk body and responds to each of them.
func run[T any](a *API, x *responseWriter, r *http.Request, w ndjson.Endpoint[T]) error {
	return ndjson.Serve(&ndjson.BodyLimit{Stopping: a.stopping, Slots: a.bulk}, x, r, w, func(err error) { a.fail(x, err) })
}
