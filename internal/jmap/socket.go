package jmap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/push"
)

// socketCapability is the capability of RFC 8887.
const socketCapability = "urn:ietf:params:jmap:websocket"

// Times of WebSockets.
const (
	socketPing  = 60 * time.Second // between pings
	socketWrite = 20 * time.Second // in which a client must read a message
)

// socket serves method calls and changes over a WebSocket (RFC 8887).
func (s *Server) socket(w http.ResponseWriter, r *http.Request, c *call) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return &fanfare.Error{Code: fanfare.UpgradeRequired, Message: "this endpoint is a WebSocket", Hint: "use a WebSocket client with the subprotocol jmap"}
	}
	if !slices.ContainsFunc(r.Header["Sec-Websocket-Protocol"], func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(one string) bool { return strings.TrimSpace(one) == "jmap" })
	}) {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the request does not offer the subprotocol jmap", Hint: "send the header Sec-WebSocket-Protocol: jmap"}
	}
	free, ok := s.acquire(c.account.ID, streams, maxStreams)
	if !ok {
		return &fanfare.Error{Code: fanfare.RateLimited, Message: fmt.Sprintf("the account has %d streams, which is the maximum", maxStreams), Hint: "close one first"}
	}
	defer free()
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{"jmap"}, CompressionMode: websocket.CompressionDisabled,
		InsecureSkipVerify: true, // login has checked the origin
	})
	if err != nil {
		s.o.Logger.Debug("a JMAP connection did not become a WebSocket", "err", err)
		return nil // the response is written
	}
	c.release()
	ws.SetReadLimit(maxRequestBytes)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if !c.until.IsZero() {
		timer := time.AfterFunc(c.until.Sub(s.o.Clock.Now()), func() {
			_ = ws.Close(websocket.StatusPolicyViolation, "the token has expired") // the client may be gone
		})
		defer timer.Stop()
	}
	k := &socket{server: s, ws: ws, call: c, enable: make(chan *pushRequest, 1)}
	var running sync.WaitGroup
	running.Go(func() { k.push(ctx) })
	running.Go(func() { k.ping(ctx, cancel) })
	k.read(ctx, &running)
	cancel()
	_ = ws.CloseNow() // the handshake is over, or has failed
	running.Wait()
	return nil
}

// A socket is one connection.
type socket struct {
	server *Server
	ws     *websocket.Conn
	call   *call
	enable chan *pushRequest // nil in it: no pushes

	mu sync.Mutex // held while a push request replaces another one
}

// A pushRequest says which types are pushed.
type pushRequest struct {
	types []string // nil: all
	known string
}

// write sends a message.
func (k *socket) write(ctx context.Context, message any) {
	text, err := json.Marshal(message)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, socketWrite)
	defer cancel()
	_ = k.ws.Write(ctx, websocket.MessageText, text) // a failed write closes the connection, and read ends
}

// ping finds connections whose client is gone, and ends all when the server stops.
func (k *socket) ping(ctx context.Context, cancel func()) {
	ticker := time.NewTicker(socketPing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.server.stopping:
			_ = k.ws.Close(websocket.StatusGoingAway, "the server stops") // the client may be gone
			cancel()
			return
		case <-ticker.C:
			wait, done := context.WithTimeout(ctx, socketWrite)
			err := k.ws.Ping(wait)
			done()
			if err != nil {
				cancel()
				return
			}
		}
	}
}

// read handles the messages of the client until the connection ends.
func (k *socket) read(ctx context.Context, running *sync.WaitGroup) {
	for {
		kind, text, err := k.ws.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			_ = k.ws.Close(websocket.StatusUnsupportedData, "messages must be text") // the client may be gone
			return
		}
		var head struct {
			Type  string    `json:"@type"`
			ID    *string   `json:"id"`
			Types *[]string `json:"dataTypes"`
			State string    `json:"pushState"`
		}
		if err := core.CheckText(text); err != nil {
			k.refuse(ctx, nil, err)
			continue
		}
		if err := json.Unmarshal(text, &head); err != nil {
			k.refuse(ctx, head.ID, &core.RequestError{Type: core.NotRequest, Status: http.StatusBadRequest, Detail: "the message is not an object with the properties of RFC 8887"})
			continue
		}
		switch head.Type {
		case "Request":
			release, ok := k.server.acquire(k.call.account.ID, requests, maxRequests)
			if !ok {
				k.refuse(ctx, head.ID, limitExceeded(http.StatusTooManyRequests, "maxConcurrentRequests", fmt.Sprintf("the account has %d requests running, which is the maximum", maxRequests)))
				continue
			}
			running.Go(func() {
				defer release()
				k.request(ctx, head.ID, text)
			})
		case "WebSocketPushEnable":
			p := &pushRequest{known: head.State}
			if head.Types != nil {
				p.types = *head.Types
				if p.types == nil {
					p.types = []string{}
				}
			}
			k.setPush(p)
		case "WebSocketPushDisable":
			k.setPush(nil)
		default:
			k.refuse(ctx, head.ID, &core.RequestError{Type: core.NotRequest, Status: http.StatusBadRequest, Detail: fmt.Sprintf("the @type %.80q is not known: use Request, WebSocketPushEnable or WebSocketPushDisable", head.Type)})
		}
	}
}

// refuse sends a RequestError object (RFC 8887, section 4.3.4).
func (k *socket) refuse(ctx context.Context, id *string, err *core.RequestError) {
	k.write(ctx, struct {
		Type      string  `json:"@type"`
		RequestID *string `json:"requestId"`
		Kind      string  `json:"type"`
		Status    int     `json:"status"`
		Detail    string  `json:"detail"`
		Limit     string  `json:"limit,omitempty"`
	}{"RequestError", id, core.URN + err.Type, err.Status, err.Detail, err.Limit})
}

// request makes the calls of a Request object (section 4.3.2).
func (k *socket) request(ctx context.Context, id *string, text []byte) {
	defer func() { // as for other requests: the client gets an error, and the process continues
		if reason := recover(); reason != nil {
			k.server.o.Logger.Error("a JMAP request panicked", "panic", reason, "stack", string(debug.Stack()))
			_ = k.ws.Close(websocket.StatusInternalError, "an error of the server; its log has the details") // the client may be gone
		}
	}()
	of, err := k.server.o.Store.Account(ctx, k.call.account.ID)
	if err != nil || of.Disabled {
		_ = k.ws.Close(websocket.StatusPolicyViolation, "the account does not exist or is disabled") // the client may be gone
		return
	}
	request, refused := core.ParseRequest(text)
	if refused == nil {
		var response *core.Response
		request.Login = core.Login{Credential: k.call.credential, Until: k.call.until}
		if response, refused = k.server.core.Run(ctx, k.call.id, request, sessionState(k.call)); refused == nil {
			response.Type = "Response"
			if id != nil {
				response.RequestID = *id
			}
			k.write(ctx, response)
			return
		}
	}
	k.refuse(ctx, id, refused)
}

// setPush replaces the request for pushes.
func (k *socket) setPush(p *pushRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.enable:
	default:
	}
	k.enable <- p
}

// push sends changes while the client wants them (section 4.3.5).
func (k *socket) push(ctx context.Context) {
	var watcher *push.Watcher
	var changed <-chan struct{}
	end := func() {
		if watcher != nil {
			watcher.Stop()
		}
		watcher, changed = nil, nil
	}
	defer end()
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-k.enable:
			end()
			if p == nil {
				continue
			}
			var err error
			if watcher, err = push.Watch(ctx, k.server.o.Store, k.call.account.ID, p.types, stateIn(p.known)); err != nil {
				watcher = nil
				k.failed(err)
				return
			}
			changed = watcher.Changed()
		case <-changed:
			change, err := watcher.Next(ctx)
			if err != nil {
				k.failed(err)
				return
			}
			if change != nil {
				k.write(ctx, change)
			}
		}
	}
}

// failed ends a connection whose changes cannot be read.
func (k *socket) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if errors.Is(err, push.ErrEnded) {
		_ = k.ws.Close(websocket.StatusPolicyViolation, err.Error()) // the client may be gone
		return
	}
	k.server.o.Logger.Warn("a JMAP connection ended, because the changes of its account could not be read", "err", err)
	_ = k.ws.Close(websocket.StatusInternalError, "the changes of the account could not be read") // the client may be gone
}
