package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A Client talks to one server with one key.
type Client struct {
	base    string
	key     string
	service string
	http    *http.Client
	waits   *waits // nil if waits are not reported
}

// New returns a client of the server at baseURL (http://127.0.0.1:8085). It
// does not connect yet.
func New(baseURL, key string) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: strconv.Quote(baseURL) + " is not the URL of a server", Hint: "use a URL such as http://127.0.0.1:8085"}
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), key: key, http: &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 2 * time.Second,
		WriteBufferSize:       64 << 10,
	}}}, nil
}

// ForService returns a client for the named service. An admin key needs it if the server has
// several services. The new client shares the connections of c.
func (c *Client) ForService(name string) *Client {
	other := *c
	other.service = name
	return &other
}

// Server returns the URL of the server.
func (c *Client) Server() string { return c.base }

// Unreachable is the error if the server did not respond.
type Unreachable struct {
	Server string
	Err    error
}

func (e *Unreachable) Error() string { return "cannot reach " + e.Server + ": " + reason(e.Err) }

// Unwrap returns the cause.
func (e *Unreachable) Unwrap() error { return e.Err }

// reason removes the parts of err that the message already has.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err.Error()
}

// request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	contentType  string
	body         []byte    // of a call that can be repeated
	stream       io.Reader // of a call that cannot be repeated
	repeatable   bool
	header       http.Header
	status       *int    // if not nil, receives the status of the answer
	tag          *string // if not nil, receives the ETag of the answer
}

func (c *Client) once(ctx context.Context, r request) (*http.Response, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	var from *source
	if r.stream != nil {
		from = newSource(r.stream)
		body = from
	} else if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
	}
	for name, values := range r.header {
		request.Header[name] = values
	}
	if r.contentType != "" {
		request.Header.Set("Content-Type", r.contentType)
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.service != "" {
		request.Header.Set("X-Fanfare-Service", c.service)
	}
	if r.stream != nil {
		request.Header.Set("Expect", "100-continue") // the server can refuse the request before the body is sent
	}
	answered := c.watch(ctx, &r)
	response, err := c.http.Do(request)
	answered()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if own := from.failure(); own != nil {
			return nil, own
		}
		return nil, &Unreachable{c.base, err}
	}
	if r.status != nil {
		*r.status = response.StatusCode
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, refusal(response)
}

// refusal reads the problem document of a response.
func refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // use whatever was read
	var p wire.Problem
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("the server returned %s in an unknown format", response.Status),
			Hint: "check the URL; it may belong to a proxy or another program"}
	}
	e := p.Err()
	if e.Code == fanfare.Internal && p.RequestID != "" {
		e.Hint = "search the server log for request id " + p.RequestID
	}
	if e.Code == fanfare.Unavailable || e.Code == fanfare.RateLimited {
		return busyAnswer(e, response.Header)
	}
	return e
}

// call sends in as JSON and decodes the response into out; both can be nil.
func (c *Client) call(ctx context.Context, r request, in, out any) error {
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "cannot be encoded as JSON: " + err.Error()}
		}
		r.body, r.contentType = text, "application/json"
	}
	response, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return &Unreachable{c.base, fmt.Errorf("the response ended early: %w", err)}
	}
	if r.tag != nil {
		*r.tag = response.Header.Get("ETag")
	}
	return nil
}

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query, repeatable: true}
}
