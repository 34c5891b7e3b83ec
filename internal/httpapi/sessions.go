package httpapi

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// Sessions is the broker of sessions.
type Sessions interface {
	// Open opens a session. If an open session of the service has the same name, it is returned
	// if its options are the same, and otherwise the error is a Conflict.
	Open(ctx context.Context, service string, o session.Options) (session.Info, error)
	Session(service, id string) (session.Info, error)
	Sessions(service string) []session.Info
	// End closes a session. With purge, its data are removed, also if it was closed before.
	End(ctx context.Context, service, id string, purge bool, reason string) error
	Trace(ctx context.Context, service, id, client string, request uint64) (session.Trace, error)
	Page(ctx context.Context, service, id, client string, from uint64, most int) (session.Page, error)
	Workers(service string) []session.WorkerInfo
	Demand() []session.Demand

	// ServeClient and ServeInstance serve a connection until it ends, and close it.
	ServeClient(ctx context.Context, conn session.Conn, service, id, client string, at session.Position) error
	ServeInstance(ctx context.Context, conn session.Conn, service, worker, instance string, capacity int) error
}

// maxResponsePage bounds the bodies on a page of responses, because base64 and text need memory.
const maxResponsePage = 8 << 20

// peerName is the form of the names of sessions, clients, instances and agents.
var peerName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func checkPeerName(what, name string) error {
	if peerName.MatchString(name) {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the name %.80q of the %s is not valid", name, what), Hint: "use 1 to 64 letters, digits and - _ ."}
}

// OneRequest identifies a request of a client. It is exported because huma reads only exported fields.
type OneRequest struct {
	Named
	Session string `path:"session" doc:"id of the session (ses-...)"`
	Client  string `path:"client" doc:"name of the client"`
	Request uint64 `path:"request" minimum:"1" doc:"number of the request in the stream of the client, from 1"`
}

// ResponsesOf selects a page of responses.
type ResponsesOf struct {
	Named
	Session string `path:"session" doc:"id of the session (ses-...)"`
	Client  string `path:"client" doc:"name of the client"`
	From    uint64 `query:"from" minimum:"1" default:"1" doc:"number of the first response"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of responses; a page also ends at 8 MiB"`
}

// OneSession identifies a session.
type OneSession struct {
	Named
	Session string `path:"session" doc:"id of the session (ses-...)"`
}

// SessionsBy selects sessions.
type SessionsBy struct {
	Page
	State  string `query:"state" enum:"open,closed,lost,purged" doc:"only sessions in this state"`
	Worker string `query:"worker" doc:"only sessions of this worker"`
}

func (a *API) sessionRoutes() {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"sessions"}, Summary: summary}
	}
	open := op("open-session", http.MethodPost, "/v1/sessions", "Open a session")
	open.Description = "The session passes the requests of its clients to the instances of a worker. If an open session has the same name, the same options return it with 200, and other options are a conflict."
	open.Parameters = []*huma.Param{service()}
	open.RequestBody = body[wire.SessionRequest](a, "The session", "application/json")
	replies[wire.Session](a, &open, http.StatusCreated, "The new session", "application/json")
	replies[wire.Session](a, &open, http.StatusOK, "The open session with this name", "application/json")
	a.handle(open, mayUseSessions, a.openSession)

	list := op("list-sessions", http.MethodGet, "/v1/sessions", "List the sessions of a service, the latest first")
	list.Description = "Sessions that ended are listed until `session_retention` has passed."
	read(a, list, mayFollowSessions, a.listSessions)
	read(a, op("get-session", http.MethodGet, "/v1/sessions/{session}", "Get a session with its clients and counters"), mayFollowSessions,
		func(_ context.Context, c caller, in *OneSession) (wire.Session, error) {
			service, err := a.oneService(c)
			if err != nil {
				return wire.Session{}, err
			}
			info, err := a.deps.Sessions.Session(service, in.Session)
			if err != nil {
				return wire.Session{}, err
			}
			out := sessionOf(&info)
			if info.State == session.Open {
				out.Problem = a.startProblem(service, info.Options.Worker)
			}
			return out, nil
		})

	end := op("close-session", http.MethodDelete, "/v1/sessions/{session}", "Close a session")
	end.Description = "Its clients are disconnected and its tasks are cancelled. The responses of a durable session can still be read, unless they are purged. Closing it again is not an error."
	end.Parameters = []*huma.Param{param("session", "id of the session (ses-...)"), flag("purge", "also remove its requests and responses; default: false"), service()}
	replies[any](a, &end, http.StatusNoContent, "Closed, and purged if requested")
	a.handle(end, mayUseSessions, a.closeSession)

	responses := op("list-responses", http.MethodGet, "/v1/sessions/{session}/clients/{client}/responses", "List the responses to a client, by number")
	responses.Description = "A durable session stores all responses until it is purged. An interactive session stores those that the client has not confirmed."
	read(a, responses, mayFollowSessions, a.listResponses)
	read(a, op("trace-request", http.MethodGet, "/v1/sessions/{session}/clients/{client}/requests/{request}", "Get the dispatch trace of a request"), mayFollowSessions, a.traceRequest)
}

func (a *API) openSession(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.SessionRequest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	o, err := sessionOptions(&in)
	if err != nil {
		return err
	}
	o.OpenedBy = c.name()
	began := a.now().Truncate(time.Millisecond)
	info, err := a.deps.Sessions.Open(r.Context(), service, o)
	if err != nil {
		return err
	}
	if in.Name != "" && info.OpenedAt.Before(began) {
		return httpio.WriteJSON(x, http.StatusOK, "application/json", sessionOf(&info))
	}
	a.note(r.Context(), audit.Operation{Service: service, Action: "open", Kind: "session", Name: info.ID}, nil)
	x.Header().Set("Location", "/v1/sessions/"+info.ID)
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", sessionOf(&info))
}

// sessionOptions reads the options of a request. The broker checks their bounds.
func sessionOptions(in *wire.SessionRequest) (o session.Options, err error) {
	o = session.Options{Worker: in.Worker, Kind: session.Kind(in.Kind), Name: in.Name, MinInstances: in.MinInstances, MaxInstances: in.MaxInstances, Priority: in.Priority, Resends: -1}
	if in.Resends != nil {
		if o.Resends = *in.Resends; o.Resends < 0 {
			return o, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/resends", Message: "must not be negative", Hint: "use 0 for requests that run at most once"}
		}
	}
	if in.Worker == "" {
		return o, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/worker", Message: "worker is missing", Hint: "set it to the name of a worker of the service; `fanfare worker list` lists the workers"}
	}
	if in.Name != "" {
		if err := checkPeerName("session", in.Name); err != nil {
			return o, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/name", Message: "the name is not valid", Hint: "use 1 to 64 letters, digits and - _ ."}
		}
	}
	for _, d := range []struct {
		pointer, text string
		to            *time.Duration
	}{{"/idle_timeout", in.IdleTimeout, &o.IdleTimeout}, {"/total_timeout", in.TotalTimeout, &o.TotalTimeout}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil || *d.to <= 0 {
			return o, &fanfare.Error{Code: fanfare.Invalid, Pointer: d.pointer, Message: fmt.Sprintf("%.80q is not a duration", d.text), Hint: "use a duration such as 30s, 10m or 24h"}
		}
	}
	return o, nil
}

func sessionOf(i *session.Info) wire.Session {
	s := wire.Session{ID: i.ID, Service: i.Service, Worker: i.Options.Worker, Kind: string(i.Options.Kind), Name: i.Options.Name, State: string(i.State), Reason: i.Reason,
		OpenedAt: i.OpenedAt.UTC(), OpenedBy: i.Options.OpenedBy, MinInstances: i.Options.MinInstances, MaxInstances: i.Options.MaxInstances, Priority: i.Options.Priority,
		Resends: i.Options.Resends, IdleTimeout: catalog.Duration(i.Options.IdleTimeout).String(), TotalTimeout: catalog.Duration(i.Options.TotalTimeout).String(),
		Clients: make([]wire.SessionClient, len(i.Clients)), Instances: i.Instances, Queued: i.Queued, Running: i.Running, Requests: i.Requests, Responses: i.Responses,
		Faults: i.Faults, Resent: i.Resends, LateResults: i.LateResults}
	if !i.ClosedAt.IsZero() {
		s.ClosedAt = i.ClosedAt.UTC()
	}
	for n := range i.Clients {
		c := &i.Clients[n]
		s.Clients[n] = wire.SessionClient{Name: c.Name, Connected: c.Connected, Requests: c.Requests, Accepted: c.Accepted, Responses: c.Responses, Received: c.Received, Queued: c.Queued, Ended: c.Ended}
	}
	return s
}

func (a *API) listSessions(_ context.Context, c caller, in *SessionsBy) (page wire.SessionPage, err error) {
	service, err := a.oneService(c)
	if err != nil {
		return page, err
	}
	var all []session.Info
	for _, i := range a.deps.Sessions.Sessions(service) {
		if (in.State == "" || in.State == string(i.State)) && (in.Worker == "" || in.Worker == i.Options.Worker) {
			all = append(all, i)
		}
	}
	latestFirst := func(i *session.Info) string { return fmt.Sprintf("%020d", math.MaxUint64-i.Number) }
	slices.SortFunc(all, func(x, y session.Info) int {
		if x.Number > y.Number {
			return -1
		}
		return 1
	})
	some, next, err := pageOf(listingOf("sessions", service, in.State, in.Worker), &in.Page, all, latestFirst)
	page.Sessions, page.Next = make([]wire.Session, len(some)), next
	for i := range some {
		page.Sessions[i] = sessionOf(&some[i])
	}
	return page, err
}

func (a *API) closeSession(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	purge, err := httpio.Boolean(r, "purge")
	if err != nil {
		return err
	}
	id, action := r.PathValue("session"), "close"
	if purge {
		action = "purge"
	}
	httpio.AllowLongResponse(x)
	if err := a.deps.Sessions.End(r.Context(), service, id, purge, "closed by "+c.name()); err != nil {
		return err
	}
	a.note(r.Context(), audit.Operation{Service: service, Action: action, Kind: "session", Name: id}, nil)
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) listResponses(ctx context.Context, c caller, in *ResponsesOf) (page wire.ResponsePage, err error) {
	service, err := a.oneService(c)
	if err != nil {
		return page, err
	}
	found, err := a.deps.Sessions.Page(ctx, service, in.Session, in.Client, in.From, in.Limit)
	if err != nil {
		return page, err
	}
	page.Responses, page.Next = []wire.SessionResponse{}, found.Next
	size := 0
	for i := range found.Responses {
		r := &found.Responses[i]
		if size += len(r.Body); size > maxResponsePage && i > 0 {
			page.Next = found.First + uint64(i)
			break
		}
		page.Responses = append(page.Responses, responseOf(found.First+uint64(i), r))
	}
	return page, nil
}

func responseOf(number uint64, r *frame.Response) wire.SessionResponse {
	out := wire.SessionResponse{Number: number, Request: r.Request, ID: string(r.ID), Status: "ok", Attempts: int(r.Attempts), Last: r.Last, UserData: r.UserData, Body: r.Body}
	if r.Status == frame.Fault {
		out.Status = "fault"
	}
	if utf8.Valid(r.Body) {
		out.Text = string(r.Body)
	}
	if out.Body == nil {
		out.Body = []byte{}
	}
	return out
}

func (a *API) traceRequest(ctx context.Context, c caller, in *OneRequest) (wire.RequestTrace, error) {
	service, err := a.oneService(c)
	if err != nil {
		return wire.RequestTrace{}, err
	}
	t, err := a.deps.Sessions.Trace(ctx, service, in.Session, in.Client, in.Request)
	if err != nil {
		return wire.RequestTrace{}, err
	}
	out := wire.RequestTrace{Client: t.Client, Request: t.Request, Status: t.Status, QueuedAt: t.QueuedAt, AnsweredAt: t.AnsweredAt, Response: t.Response, Dispatched: make([]wire.RequestDispatch, len(t.Dispatched))}
	for i, d := range t.Dispatched {
		out.Dispatched[i] = wire.RequestDispatch(d)
	}
	return out, nil
}
