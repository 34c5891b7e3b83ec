package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// Capability is the capability of the core (RFC 8620, section 2).
const Capability = "urn:ietf:params:jmap:core"

// Limits are the limits of the core capability.
type Limits struct {
	MaxSizeUpload         int64    `json:"maxSizeUpload"`
	MaxConcurrentUpload   int      `json:"maxConcurrentUpload"`
	MaxSizeRequest        int64    `json:"maxSizeRequest"`
	MaxConcurrentRequests int      `json:"maxConcurrentRequests"`
	MaxCallsInRequest     int      `json:"maxCallsInRequest"`
	MaxObjectsInGet       int      `json:"maxObjectsInGet"`
	MaxObjectsInSet       int      `json:"maxObjectsInSet"`
	Collations            []string `json:"collationAlgorithms"`
}

// MaxResponse bounds the results of all calls of a request, in bytes. A call whose result exceeds it fails with requestTooLarge.
const MaxResponse = 64 << 20

// A Method is a method of a capability.
type Method struct {
	Capability string
	run        func(ctx context.Context, c *Call, arguments Object) (any, error)
}

// A Call is a call of a method.
type Call struct {
	Account ID // that the user may use
	Name    string
	Limits  *Limits

	server  *Server
	request *Request
	done    []Invocation // responses to this call and those before it
	size    int
	created map[string]ID
}

// Left is how many bytes the result of this call may have.
func (c *Call) Left() int { return max(0, MaxResponse-c.size) }

// Login returns what the request was authenticated with.
func (c *Call) Login() Login { return c.request.Login }

// Created stores the id of a record that the request created.
func (c *Call) Created(creation string, id ID) { c.created[creation] = id }

// Resolve returns the id that an argument names: itself, or for "#" and a creation id the id of the record. It returns false if
// no record was created so.
func (c *Call) Resolve(id ID) (ID, bool) {
	if len(id) > 0 && id[0] == '#' {
		id, ok := c.created[string(id[1:])]
		return id, ok
	}
	return id, true
}

// Then calls another method after this one, as some methods do implicitly (RFC 8620, section 5.4). Its response follows
// the response of this call, which is result.
func (c *Call) Then(ctx context.Context, result any, name string, arguments any) (any, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	c.respond(ctx, c.Name, result)
	return &implicit{Invocation{name, text, ""}}, nil
}

// implicit is the result of a method that responded already and has another call to make.
type implicit struct{ call Invocation }

// A Server calls methods.
type Server struct {
	Methods      map[string]Method
	Capabilities []string // all that a request may use, also those without methods
	Limits       Limits
	Logger       *slog.Logger

	// Observe is called after each call of a known method, with the type of its error or "". It may be nil.
	Observe func(method, failure string, took time.Duration)
}

// Run calls the methods of a request for an account.
func (s *Server) Run(ctx context.Context, account ID, r *Request, sessionState string) (*Response, *RequestError) {
	for _, capability := range r.Using {
		if !slices.Contains(s.Capabilities, capability) {
			return nil, &RequestError{Type: UnknownCapability, Status: http.StatusBadRequest, Detail: fmt.Sprintf("the server does not support the capability %.200q; the session lists those that it supports", capability)}
		}
	}
	if len(r.Calls) > s.Limits.MaxCallsInRequest {
		return nil, &RequestError{Type: LimitExceeded, Status: http.StatusBadRequest, Limit: "maxCallsInRequest", Detail: fmt.Sprintf("the request has %d method calls; at most %d are permitted", len(r.Calls), s.Limits.MaxCallsInRequest)}
	}
	created := map[string]ID{}
	for creation, id := range r.CreatedIDs {
		created[creation] = id
	}
	c := &Call{Account: account, Limits: &s.Limits, server: s, request: r, created: created}
	for _, call := range r.Calls {
		if ctx.Err() != nil {
			break // nobody waits for the responses
		}
		c.run(ctx, call)
	}
	response := &Response{Responses: c.done, SessionState: sessionState}
	if response.Responses == nil {
		response.Responses = []Invocation{}
	}
	if r.CreatedIDs != nil {
		response.CreatedIDs = created
	}
	return response, nil
}

// run makes one call and those that follow from it.
func (c *Call) run(ctx context.Context, call Invocation) {
	id := call.CallID
	for {
		c.Name = call.Name
		began := time.Now()
		result, err := c.result(ctx, call)
		c.server.observe(call.Name, err, time.Since(began))
		next, more := result.(*implicit)
		if err == nil && more {
			call = next.call
			c.identify(id)
			continue
		}
		if err != nil {
			c.fail(ctx, err)
		} else {
			c.respond(ctx, c.Name, result)
		}
		c.identify(id)
		return
	}
}

// observe reports a call.
func (s *Server) observe(method string, err error, took time.Duration) {
	if _, known := s.Methods[method]; !known || s.Observe == nil {
		return
	}
	failure := ""
	if err != nil {
		failure = ServerFail
	}
	if failed, ok := errors.AsType[*MethodError](err); ok {
		failure = failed.Type
	}
	s.Observe(method, failure, took)
}

// identify gives the last response the id of its call.
func (c *Call) identify(id string) { c.done[len(c.done)-1].CallID = id }

func (c *Call) result(ctx context.Context, call Invocation) (any, error) {
	method, ok := c.server.Methods[call.Name]
	if !ok {
		return nil, Fail(UnknownMethod, "")
	}
	if !slices.Contains(c.request.Using, method.Capability) {
		return nil, Fail(UnknownMethod, "the method belongs to the capability "+method.Capability+", which is not in using")
	}
	arguments, err := ParseObject(call.Arguments)
	if err != nil {
		return nil, Fail(InvalidArguments, "the arguments cannot be read")
	}
	arguments, failed := c.resolve(arguments)
	if failed != nil {
		return nil, failed
	}
	return method.run(ctx, c, arguments)
}

func (c *Call) respond(ctx context.Context, name string, result any) {
	text, err := json.Marshal(result)
	if err == nil && len(text) > c.Left() {
		err = Fail(RequestTooLarge, fmt.Sprintf("the results of the request have more than %d bytes; ask for fewer records or properties at a time", MaxResponse))
	}
	if err != nil {
		c.fail(ctx, err)
		return
	}
	c.size += len(text)
	c.done = append(c.done, Invocation{Name: name, Arguments: text})
}

// fail responds with an error.
func (c *Call) fail(ctx context.Context, err error) {
	failed, is := errors.AsType[*MethodError](err)
	if !is {
		failed = c.server.failure(ctx, c.Name, err)
	}
	text, err := json.Marshal(failed)
	if err != nil {
		text = []byte(`{"type":"serverFail"}`)
	}
	c.size += len(text)
	c.done = append(c.done, Invocation{Name: "error", Arguments: text})
}

// failure returns the error of a method that failed for a reason that is not the client's, and logs it.
func (s *Server) failure(ctx context.Context, method string, err error) *MethodError {
	if known, ok := errors.AsType[*fanfare.Error](err); ok {
		switch known.Code {
		case fanfare.Unavailable, fanfare.DiskFull, fanfare.RateLimited:
			return Fail(ServerUnavailable, known.Error())
		case fanfare.Internal:
		case fanfare.Forbidden:
			return Fail(Forbidden, known.Error())
		default:
			return Fail(InvalidArguments, known.Error())
		}
	}
	if ctx.Err() == nil {
		s.Logger.Error("a JMAP method failed", "method", method, "err", err)
	}
	return Fail(ServerFail, "an error of the server; its log has the details")
}

// Echo is the method Core/echo (RFC 8620, section 4).
func Echo() Method {
	return Method{Capability, func(_ context.Context, _ *Call, arguments Object) (any, error) { return arguments, nil }}
}
