package httpapi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"time"

	"fanfare.dev/fanfare"
)

// An exchange is one request and the state of its response.
type exchange struct {
	http.ResponseWriter
	request *http.Request
	id      string
	status  int  // 0 until the response has begun
	own     bool // we wrote the response: further output of the mux is dropped
	api     *API

	began time.Time
	key   string // id of the key of the request, "" if unknown
	gauge *gauge // the gauge that counts the request, or nil
}

// Unwrap returns the writer of the connection, for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader begins the response. A problem document replaces the text that the mux
// writes for an unknown path or method.
func (x *exchange) WriteHeader(status int) {
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
func (x *exchange) Write(b []byte) (int, error) {
	if x.own {
		return len(b), nil
	}
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

func (x *exchange) refuseRoute(status int) {
	err := &fanfare.Error{Code: fanfare.NotFound, Message: x.request.Method + " " + x.request.URL.Path + " does not exist", Hint: "/docs shows every endpoint, /openapi.json lists them"}
	if status == http.StatusMethodNotAllowed {
		err = &fanfare.Error{Code: fanfare.MethodNotAllowed, Message: x.request.URL.Path + " does not know the method " + x.request.Method, Hint: "the header Allow lists those that it knows"}
	}
	x.refuse(err)
}

// refuse answers with err in place of a handler.
func (x *exchange) refuse(err error) {
	p := problemOf(err, x.id)
	x.status, x.own = p.Status, true
	p.write(x.ResponseWriter)
}

// ServeHTTP answers one request of the API.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, request: r, id: requestID(r), api: a, began: a.now()}
	w.Header().Set("X-Request-Id", x.id)
	defer a.changes.enter(r)()
	running := a.running.Add(1)
	defer func() {
		a.running.Add(-1)
		x.gauge.leave()
	}()
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
	if a.origins.share(w.Header(), r) {
		x.WriteHeader(http.StatusNoContent)
		return
	}
	if most := a.parts.Limits.requestsOf(r); most > 0 && running > int64(most) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		x.refuse(&fanfare.Error{Code: fanfare.Unavailable, Message: "the server has too many requests under way", Hint: "send this one again in a moment"})
		return
	}
	a.mux.ServeHTTP(x, r)
}

// admitted authenticates the request, checks the scope of its key and applies the limits
// of the key.
func (a *API) admitted(x *exchange, who access) (caller, error) {
	if who == anybody {
		return caller{}, nil
	}
	r := x.request
	c, err := a.allowed(r, who)
	if x.key = c.principal.KeyID; x.key != "" {
		var over error
		if x.gauge, over = a.gauges.enter(x.Header(), x.key, x.began); over != nil {
			return caller{}, over
		}
	} else if fanfare.CodeOf(err) == fanfare.Unauthenticated && r.Header.Get("Authorization") != "" {
		if tooMany := a.guesses.wrong(r, x.began); tooMany != nil {
			err = tooMany
		}
	}
	return c, err
}

// requestID returns the id that the client sent if a log may contain it, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 64 && harmless(id) {
		return id
	}
	var b [8]byte
	n := rand.Uint64()
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return hex.EncodeToString(b[:])
}

func harmless(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// maxBodyBytes limits the bodies that are read into memory.
const maxBodyBytes = 1 << 20

// readBody reads the whole body, up to maxBodyBytes.
func readBody(x *exchange, r *http.Request) ([]byte, error) { return readLong(x, r, maxBodyBytes) }

// readLong reads the whole body, up to most bytes. It allocates memory beyond
// maxBodyBytes only as the data arrives.
func readLong(x *exchange, r *http.Request, most int64) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "a body in Content-Encoding " + enc + " cannot be read", Hint: "send it plain"}
	}
	if r.ContentLength > most {
		x.Header().Set("Connection", "close")
		return nil, tooLargeBody(most)
	}
	if r.ContentLength >= 0 && r.ContentLength <= maxBodyBytes {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, bodyError(err, most)
		}
		return body, nil
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(http.MaxBytesReader(x.ResponseWriter, r.Body, most)); err != nil {
		return nil, bodyError(err, most)
	}
	return body.Bytes(), nil
}
