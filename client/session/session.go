package session

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The kinds of sessions.
const (
	Interactive = "interactive" // held in memory, and ends with its broker
	Durable     = "durable"     // requests and responses are stored in the database
)

// Options describe a session when it is opened.
type Options struct {
	Worker       string        // required
	Kind         string        // Interactive, the default, or Durable
	Name         string        // unique among the open sessions of the service: the same name and options return the same session
	MinInstances int           // that agents keep ready
	MaxInstances int           // that work for the session at the same time; 0: no limit
	Priority     int           // 1 to 100: the weight of its share of the instances; 0: 50
	Resends      int           // how often a request is sent again after a retry or a timeout; 0: 3
	AtMostOnce   bool          // a request is never sent again; Resends must be 0
	IdleTimeout  time.Duration // without clients and work; 0: the default of the kind
	TotalTimeout time.Duration // since it was opened; 0: the default
}

// Info describes a session.
type Info = wire.Session

// ClientInfo describes the stream of a client in a session.
type ClientInfo = wire.SessionClient

// A Session is a session on the server. It is safe for concurrent use.
type Session struct {
	api  *client.Client
	id   string
	info Info // when it was opened

	mu      sync.Mutex
	clients []*Client
}

// Open opens a session.
func Open(ctx context.Context, c *client.Client, o Options) (*Session, error) {
	in := wire.SessionRequest{Worker: o.Worker, Kind: o.Kind, Name: o.Name, MinInstances: o.MinInstances, MaxInstances: o.MaxInstances, Priority: o.Priority}
	if o.Resends != 0 || o.AtMostOnce {
		if o.AtMostOnce && o.Resends != 0 {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "Resends and AtMostOnce cannot be combined", Hint: "set one of them"}
		}
		in.Resends = &o.Resends
	}
	if o.IdleTimeout != 0 {
		in.IdleTimeout = o.IdleTimeout.String()
	}
	if o.TotalTimeout != 0 {
		in.TotalTimeout = o.TotalTimeout.String()
	}
	s := &Session{api: c}
	if _, err := c.Call(ctx, http.MethodPost, "/v1/sessions", nil, in, &s.info); err != nil {
		return nil, err
	}
	s.id = s.info.ID
	return s, nil
}

// Attach returns the session with an id, which another process may have opened.
func Attach(ctx context.Context, c *client.Client, id string) (*Session, error) {
	s := &Session{api: c, id: id}
	var err error
	s.info, err = s.Info(ctx)
	if err != nil {
		return nil, err
	}
	s.id = s.info.ID
	return s, nil
}

// ID returns the id of the session: ses- and a number.
func (s *Session) ID() string { return s.id }

func (s *Session) path() string { return "/v1/sessions/" + url.PathEscape(s.id) }

// Info returns the current state and counters of the session.
func (s *Session) Info(ctx context.Context) (Info, error) {
	var info Info
	_, err := s.api.Call(ctx, http.MethodGet, s.path(), nil, nil, &info)
	return info, err
}

// Close ends the session. With purge, its requests and responses are removed; else those of a durable session can be read
// until the retention removes them. The clients of s that are still connected confirm what they have read, and are closed.
func (s *Session) Close(ctx context.Context, purge bool) error {
	s.mu.Lock()
	clients := s.clients
	s.clients = nil
	s.mu.Unlock()
	for _, cl := range clients {
		if err := cl.Close(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	query := url.Values{}
	if purge {
		query.Set("purge", strconv.FormatBool(purge))
	}
	_, err := s.api.Call(ctx, http.MethodDelete, s.path(), query, nil, nil)
	return err
}

// A Page is a part of the responses to a client.
type Page = wire.ResponsePage

// Page reads up to limit responses to a client from number from, without a stream. It also works after the end of a durable
// session.
func (s *Session) Page(ctx context.Context, name string, from uint64, limit int) (Page, error) {
	var page Page
	query := url.Values{"from": {strconv.FormatUint(from, 10)}, "limit": {strconv.Itoa(limit)}}
	_, err := s.api.Call(ctx, http.MethodGet, s.path()+"/clients/"+url.PathEscape(name)+"/responses", query, nil, &page)
	return page, err
}

// A Trace describes what happened to a request.
type Trace = wire.RequestTrace

// Trace returns the trace of a request of a client.
func (s *Session) Trace(ctx context.Context, name string, request uint64) (Trace, error) {
	var trace Trace
	_, err := s.api.Call(ctx, http.MethodGet, s.path()+"/clients/"+url.PathEscape(name)+"/requests/"+strconv.FormatUint(request, 10), nil, nil, &trace)
	return trace, err
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("the client of the session was closed")
