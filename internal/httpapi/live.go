package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/statusfeed"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	eventStreamType = "text/event-stream"

	liveComment = 12 * time.Second // maximum time without an event or a comment
	liveCheck   = 15 * time.Second // interval at which the rights of a listener are checked
	liveWrite   = 20 * time.Second // in which a listener must read an event
)

// liveRoutes adds the stream of the status.
func (a *API) liveRoutes() {
	a.feed = statusfeed.New(statusfeed.Options{
		Compute: func(ctx context.Context) (wire.Status, error) {
			s, err := a.deps.Reports.Status(ctx)
			if err != nil && fanfare.CodeOf(err) == fanfare.Internal && ctx.Err() == nil {
				a.log.Log(ctx, a.failureLevel(), "the status cannot be computed", "err", err)
			}
			return s, err
		},
		Status: func(s wire.Status, of statusfeed.View) ([]byte, error) {
			var text bytes.Buffer
			e := json.NewEncoder(&text)
			e.SetEscapeHTML(false)
			err := e.Encode(statusFor(s, of.Service, of.Whole))
			return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
		},
		Problem: func(err error) []byte {
			text, _ := json.Marshal(wire.MemberOf(err)) // plain fields only: cannot fail
			return text
		},
		Started: a.now(),
	})
	op := huma.Operation{OperationID: "follow-status", Method: http.MethodGet, Path: "/v1/live", Tags: []string{"operations"},
		Summary: "Follow the state of the server",
		Description: "Server-sent events (HTML standard, section 9.2). The event status contains the response of GET /v1/status. It is sent at once, and then whenever the status has changed, at most every " + statusfeed.Interval.String() + ". " +
			"The event unavailable means that the status cannot be computed at present, and contains the error. There is a comment line at least every 15 seconds. " +
			"The stream ends when the key loses its rights and when the server stops. A key can have " + strconv.Itoa(statusfeed.MaxPerKey) + " streams, and the server " + strconv.Itoa(statusfeed.MaxListeners) + ".",
		Parameters: []*huma.Param{service(), flag("once", "end the stream after the first event; default: false")}}
	replies[string](a, &op, http.StatusOK, "The events", eventStreamType)
	a.handle(op, mayRead, a.followStatus)
}

// followStatus sends the status until the client disconnects, its rights end or the server stops.
func (a *API) followStatus(x *responseWriter, r *http.Request, c caller) error {
	once, _ := strconv.ParseBool(r.URL.Query().Get("once")) // checked already
	of := statusfeed.View{Service: c.service, Whole: c.principal.Service == ""}
	listener, err := a.feed.Join(c.principal.ID(), of)
	if err != nil {
		return err
	}
	defer listener.Leave()
	a.release(x)
	h := x.Header()
	h.Set("Content-Type", eventStreamType)
	h.Set("Cache-Control", "no-store, no-transform") // a proxy that compresses would hold events back
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := &eventWriter{x: x, control: http.NewResponseController(x)}
	_ = out.control.SetReadDeadline(time.Time{}) // without support, the deadline of the server stays
	if r.Method == http.MethodHead {
		x.WriteHeader(http.StatusOK)
		return nil
	}
	if !out.write([]byte("retry: " + strconv.FormatInt(statusfeed.Retry.Milliseconds(), 10) + "\n\n")) {
		return nil
	}
	comments, checks := time.NewTicker(liveComment), time.NewTicker(liveCheck)
	defer comments.Stop()
	defer checks.Stop()
	for sent := (*statusfeed.Event)(nil); ; {
		event, changed := listener.Latest()
		if event != nil && event != sent {
			if !out.write(event.Text) || once {
				return nil
			}
			sent = event
			comments.Reset(liveComment)
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-a.stopping:
			return nil
		case <-changed:
		case <-comments.C:
			if !out.write([]byte(":\n\n")) {
				return nil
			}
		case <-checks.C:
			if !a.stillAllowed(r, c) {
				return nil
			}
		}
	}
}

// eventWriter writes events, each within a time limit.
type eventWriter struct {
	x       *responseWriter
	control *http.ResponseController
}

// write sends text, and reports whether the client takes it in time.
func (w *eventWriter) write(text []byte) bool {
	_ = w.control.SetWriteDeadline(time.Now().Add(liveWrite)) // without support, the deadline of the server stays
	_, err := w.x.Write(text)
	return err == nil && w.control.Flush() == nil
}

// stillAllowed reports whether the sender of a request may go on reading the status. It is not a use of a sign-in, so a page that is left open does not
// prolong it.
func (a *API) stillAllowed(r *http.Request, c caller) bool {
	now, err := a.callerBy(r, mayRead, a.stillSignedIn)
	return err == nil && now.must(mayRead) == nil && now.service == c.service && now.principal.Service == c.principal.Service
}
