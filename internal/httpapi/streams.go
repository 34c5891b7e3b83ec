package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// streamRoutes adds the endpoints that become WebSockets. docs/reference/session-protocol.md describes what follows.
func (a *API) streamRoutes() {
	op := func(id, path, summary, subprotocol string, params ...*huma.Param) huma.Operation {
		o := huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"sessions"}, Summary: summary, Parameters: append(params, service()),
			Description: "A WebSocket (RFC 6455) with the subprotocol " + subprotocol + ". The session protocol describes its frames. Errors before the upgrade are problem documents."}
		replies[any](a, &o, http.StatusSwitchingProtocols, "The connection is now a WebSocket")
		return o
	}
	a.handle(op("attach-client", "/v1/sessions/{session}/clients/{client}/stream", "Connect a client of a session", frame.ClientProtocol,
		param("session", "id of the session (ses-...)"), param("client", "name of the client"), count("from", "number of the first response to receive; default: the first one that the client has not confirmed"),
		number("accepted", "for a process that was connected before: the number in the last frame accepted that it has received; exceptions of later requests are sent again")),
		mayUseSessions, a.attachClient)
	a.handle(op("attach-instance", "/v1/workers/{worker}/stream", "Connect an instance of a worker", frame.WorkerProtocol,
		param("worker", "name of the worker"), query("instance", "name of the instance, unique within the worker"), count("capacity", "number of tasks that it runs at the same time, at most 1024; default: the concurrency of the worker")),
		mayWork, a.attachInstance)
	a.handle(op("attach-agent", "/v1/agents/{agent}/stream", "Connect an agent", frame.AgentProtocol, param("agent", "name of the agent")), mayWork, a.attachAgent)
}

// count describes a query parameter that is a positive number.
func count(name, doc string) *huma.Param {
	lowest := 1.0
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: "integer", Minimum: &lowest}}
}

// countIn reads a query parameter that is a positive number; 0 without one.
func countIn(r *http.Request, name string, most uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > most {
		return 0, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("query parameter %s must be a whole number from 1 to %d", name, most), Hint: "omit it to use the default"}
	}
	return n, nil
}

// number describes a query parameter that is a number from 0 on.
func number(name, doc string) *huma.Param {
	p := count(name, doc)
	*p.Schema.Minimum = 0
	return p
}

// positionIn reads where a client continues.
func positionIn(r *http.Request) (at session.Position, err error) {
	if at.From, err = countIn(r, "from", 1<<62); err != nil || !r.URL.Query().Has("accepted") {
		return at, err
	}
	at.Again = true
	if at.Accepted, err = strconv.ParseUint(r.URL.Query().Get("accepted"), 10, 64); err != nil {
		return at, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter accepted must be a whole number", Hint: "set it to the number in the last frame accepted, or omit it"}
	}
	return at, nil
}

func (a *API) attachClient(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	id, client := r.PathValue("session"), r.PathValue("client")
	at, err := positionIn(r)
	if err == nil {
		err = checkPeerName("client", client)
	}
	if err == nil {
		_, err = a.deps.Sessions.Session(service, id)
	}
	if err != nil {
		return err
	}
	return a.upgrade(x, r, frame.ClientProtocol, func(ctx context.Context, conn session.Conn) error {
		return a.deps.Sessions.ServeClient(ctx, conn, service, id, client, at)
	})
}

func (a *API) attachInstance(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	worker, instance := r.PathValue("worker"), r.URL.Query().Get("instance")
	capacity, err := countIn(r, "capacity", session.MaxConcurrency)
	switch {
	case err != nil:
		return err
	case instance == "":
		return &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter instance is missing", Hint: "set it to a name that is unique within the worker, such as the name of the host and the process id"}
	case a.deps.Documents.Configuration().Worker(service, worker) == nil:
		return &fanfare.Error{Code: fanfare.NotFound, Message: "worker " + strconv.Quote(worker) + " does not exist", Hint: "register it in the section workers of the configuration document, and apply it"}
	}
	if err := checkPeerName("instance", instance); err != nil {
		return err
	}
	return a.upgrade(x, r, frame.WorkerProtocol, func(ctx context.Context, conn session.Conn) error {
		return a.deps.Sessions.ServeInstance(ctx, conn, service, worker, instance, int(capacity))
	})
}

func (a *API) attachAgent(x *responseWriter, r *http.Request, c caller) error {
	agent := r.PathValue("agent")
	if err := checkPeerName("agent", agent); err != nil {
		return err
	}
	return a.upgrade(x, r, frame.AgentProtocol, func(ctx context.Context, conn session.Conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // the broker closes its connections itself
			select {
			case <-a.stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
		return a.deps.Agents.ServeAgent(ctx, conn, c.service, agent, a.wrongKeys.ClientAddress(r).String())
	})
}

// upgrade makes a connection a WebSocket and serves it until it ends. From then on, the limits for requests do not apply.
func (a *API) upgrade(x *responseWriter, r *http.Request, subprotocol string, serve func(context.Context, session.Conn) error) error {
	select {
	case <-a.stopping:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "connect again in a moment"}
	default:
	}
	if !hasToken(r.Header["Connection"], "upgrade") || !hasToken(r.Header["Upgrade"], "websocket") {
		x.Header().Set("Upgrade", "websocket")
		x.Header().Set("Connection", "Upgrade")
		return &fanfare.Error{Code: fanfare.UpgradeRequired, Message: "this endpoint is a WebSocket", Hint: "use a library for sessions, or a WebSocket client with the subprotocol " + subprotocol}
	}
	if !hasToken(r.Header["Sec-Websocket-Protocol"], subprotocol) {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the request does not offer the subprotocol " + subprotocol, Hint: "send the header Sec-WebSocket-Protocol: " + subprotocol}
	}
	conn, err := websocket.Accept(x, r, subprotocol)
	if err != nil {
		if x.status == 0 {
			x.status = http.StatusBadRequest
		}
		a.log.Debug("a connection did not become a WebSocket", "request_id", x.id, "route", r.Pattern, "err", err)
		return nil // the response is written
	}
	x.status = http.StatusSwitchingProtocols
	a.release(x)
	if err := serve(context.WithoutCancel(r.Context()), remoteConn{conn, a.wrongKeys.ClientAddress(r).String()}); err != nil {
		a.log.Debug("a connection has ended", "request_id", x.id, "route", r.Pattern, "err", err)
	}
	return nil
}

// remoteConn is a connection with the address of its peer.
type remoteConn struct {
	session.Conn
	remote string
}

// Remote returns the address of the peer.
func (c remoteConn) Remote() string { return c.remote }

// hasToken reports whether a header that is a list has a token (RFC 9110, section 5.6.1).
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(one), token) {
				return true
			}
		}
	}
	return false
}
