// Package stream connects the libraries of clients and workers to the broker, and decides which errors a new connection can
// resolve.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// Dial opens a WebSocket on the server of c and reads the welcome, whose JSON it decodes into welcome.
func Dial(ctx context.Context, c *client.Client, path string, query url.Values, subprotocol string, welcome any) (*websocket.Conn, error) {
	base, header, h := c.Connection()
	conn, err := websocket.Dial(ctx, base+path+"?"+query.Encode(), header, subprotocol, h)
	if refusal, ok := errors.AsType[*websocket.Refusal](err); ok {
		err = refused(refusal)
		if fanfare.CodeOf(err) == fanfare.Internal {
			err = &client.Unreachable{Server: base, Err: err} // such as a node that loses its connection to the broker
		}
		return nil, err
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &client.Unreachable{Server: base, Err: err}
	}
	first, err := conn.Read(ctx)
	if err != nil {
		_ = conn.Close(1000, "") // it is of no use
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, Closed(err, nil)
	}
	kind, payload, err := frame.Parse(first)
	switch {
	case err != nil:
	case kind.Type == frame.Problem || kind.Type == frame.Closed:
		err = Problem(payload)
	case kind.Type != frame.Welcome:
		err = violation(fmt.Errorf("the first frame has type %d instead of %d", kind.Type, frame.Welcome))
	default:
		err = json.Unmarshal(payload, welcome)
	}
	if err != nil {
		_ = conn.Close(1000, "") // the error is more precise
		return nil, err
	}
	return conn, nil
}

func refused(r *websocket.Refusal) error {
	var p wire.Problem
	if json.Unmarshal(r.Body, &p) == nil && p.Code != "" {
		return p.Err()
	}
	code := fanfare.Unavailable
	if r.Status/100 == 4 && r.Status != http.StatusTooManyRequests {
		code = fanfare.Invalid
	}
	return &fanfare.Error{Code: code, Message: fmt.Sprintf("the server returned %d %s in an unknown format instead of a WebSocket", r.Status, http.StatusText(r.Status)),
		Hint: "check the URL; a proxy must support WebSocket connections"}
}

// Problem returns the error in the payload of a frame.
func Problem(payload []byte) *fanfare.Error {
	var p wire.Problem
	if err := json.Unmarshal(payload, &p); err != nil || p.Code == "" {
		return &fanfare.Error{Code: fanfare.Internal, Message: "the server returned an error in an unknown format: " + strings.ToValidUTF8(string(payload[:min(len(payload), 200)]), "?")}
	}
	return p.Err()
}

// Break ends a connection whose server violated the protocol, and returns the error for it.
func Break(conn *websocket.Conn, err error) error {
	_ = conn.Close(4000, err.Error()) // the error matters more
	return violation(err)
}

func violation(err error) error {
	return &fanfare.Error{Code: fanfare.Internal, Message: "the server violated the session protocol: " + err.Error(), Hint: "use the library of the same version as the server"}
}

// Closed returns the error of a connection that ended. problem is the last one that the server sent, or nil.
func Closed(err error, problem *fanfare.Error) error {
	end, ok := errors.AsType[*websocket.End](err)
	if !ok || end.Local {
		return err
	}
	if problem != nil && end.Code != 1001 {
		return problem
	}
	reason := end.Reason
	switch end.Code {
	case 4000:
		return violation(end)
	case 4001:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "a newer connection has the same name", Hint: "use another name, or end the other process"}
	case 4002:
		if reason == "" {
			reason = "the session has ended"
		}
		return &fanfare.Error{Code: fanfare.Conflict, Message: reason, Hint: "open another session"}
	}
	return err
}

// Permanent reports that a new connection would fail in the same way.
func Permanent(err error) bool {
	if _, ok := errors.AsType[*client.Unreachable](err); ok {
		return false
	}
	e, ok := errors.AsType[*fanfare.Error](err)
	return ok && e.Code != fanfare.Unavailable && e.Code != fanfare.RateLimited
}

// A Backoff is the time between two attempts to connect: it doubles from First to Max, and has jitter.
type Backoff struct {
	First, Max time.Duration
	next       time.Duration
}

// Reset is called after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits, and reports whether ctx still runs.
func (b *Backoff) Wait(ctx context.Context) bool {
	if b.next == 0 {
		b.next = b.First
	}
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer timer.Stop()
	b.next = min(2*b.next, b.Max)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
