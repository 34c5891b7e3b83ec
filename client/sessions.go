package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Package client/session sends requests to sessions, and package client/worker runs them. The methods here manage sessions
// and workers.
type (
	// A SessionRequest is a session to open.
	SessionRequest = wire.SessionRequest
	// A Session is a session with its clients and counters.
	Session = wire.Session
	// A SessionClient is the stream of a client in a session.
	SessionClient = wire.SessionClient
	// A SessionResponse is a response to a request of a client.
	SessionResponse = wire.SessionResponse
	// A ResponsePage is a page of responses, by number.
	ResponsePage = wire.ResponsePage
	// A RequestTrace is the history of a request of a session.
	RequestTrace = wire.RequestTrace
	// WorkerSettings register a worker.
	WorkerSettings = wire.WorkerSettings
	// A WorkerAction is a kind of request with its own timeout.
	WorkerAction = wire.WorkerAction
	// A Worker is a registered program with its instances.
	Worker = wire.Worker
	// A WorkerInstance is a connected process of a worker.
	WorkerInstance = wire.WorkerInstance
	// WorkerStatus is the state of a worker in the status of the server.
	WorkerStatus = wire.WorkerStatus
	// An Agent is a connected agent, which starts instances of workers on its machine.
	Agent = wire.Agent
)

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// OpenSession opens a session. If an open session has the same name, the same options return it, and others are a Conflict.
func (c *Client) OpenSession(ctx context.Context, what SessionRequest) (s Session, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: "/v1/sessions"}, what, &s)
	return s, err
}

// Sessions yields the sessions of the service, the latest first. An empty state or worker selects all. It ends at the first
// error, which is its last pair.
func (c *Client) Sessions(ctx context.Context, state, worker string) iter.Seq2[Session, error] {
	query := url.Values{}
	for name, value := range map[string]string{"state": state, "worker": worker} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return List[Session](ctx, c, "/v1/sessions", "sessions", query)
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (s Session, err error) {
	err = c.call(ctx, get(sessionPath(id), nil), nil, &s)
	return s, err
}

// CloseSession closes a session. With purge, its requests and responses are removed.
func (c *Client) CloseSession(ctx context.Context, id string, purge bool) error {
	return c.call(ctx, request{method: http.MethodDelete, path: sessionPath(id), query: url.Values{"purge": {strconv.FormatBool(purge)}}, repeatable: true}, nil, nil)
}

// Responses returns at most limit responses to a client of a session, from a number on. The page after it begins at Next. An
// empty page means that no response with this number exists yet.
func (c *Client) Responses(ctx context.Context, id, name string, from uint64, limit int) (page ResponsePage, err error) {
	query := url.Values{"from": {strconv.FormatUint(from, 10)}, "limit": {strconv.Itoa(limit)}}
	err = c.call(ctx, get(sessionPath(id)+"/clients/"+url.PathEscape(name)+"/responses", query), nil, &page)
	return page, err
}

// TraceRequest returns what happened to a request, by its number in the stream of its client.
func (c *Client) TraceRequest(ctx context.Context, id, name string, number uint64) (t RequestTrace, err error) {
	err = c.call(ctx, get(sessionPath(id)+"/clients/"+url.PathEscape(name)+"/requests/"+strconv.FormatUint(number, 10), nil), nil, &t)
	return t, err
}

// Workers returns the registrations of the workers of the service.
func (c *Client) Workers() Collection[WorkerSettings] {
	return Collection[WorkerSettings]{c, "/v1/workers", "workers"}
}

// Worker returns a worker with its instances.
func (c *Client) Worker(ctx context.Context, name string) (w Worker, err error) {
	err = c.call(ctx, get("/v1/workers/"+url.PathEscape(name), nil), nil, &w)
	return w, err
}

// Agents yields the connected agents, by name. It ends at the first error, which is its last pair.
func (c *Client) Agents(ctx context.Context) iter.Seq2[Agent, error] {
	return List[Agent](ctx, c, "/v1/agents", "agents", nil)
}
