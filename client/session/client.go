package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/internal/stream"
	"fanfare.dev/fanfare/internal/session/frame"
)

const (
	batchSize   = 64 << 10 // bytes of a frame of requests, unless one request is larger
	maxRetained = 32 << 20 // bytes of requests that are not confirmed yet; Send waits above this
	maxRefused  = 100      // errors that Flush and End return
)

// A Request is one request. Its fields are copied by SendRequest.
type Request struct {
	ID       string // chosen by the application, at most 64 bytes, or "": a repeated id with the same content runs once, and one with other content is refused
	Action   string // of the worker, or ""
	UserData []byte // at most 1 KiB; comes back with the response
	Body     []byte // at most the message limit of the worker
	Timeout  time.Duration
}

// An Exception is a request that gets no response, because its id was sent before.
type Exception struct {
	Request uint64
	Err     error // nil: the same content was sent before, and runs once; else the request was refused
}

// A ClientOption changes a client.
type ClientOption func(*Client)

// From makes the client receive the responses from number k on, instead of from the first unconfirmed one. An interactive
// session stores responses only until they are confirmed.
func From(k uint64) ClientOption { return func(cl *Client) { cl.from = k } }

// OnException calls fn for each request that gets no response, on the goroutine that reads the connection.
func OnException(fn func(Exception)) ClientOption {
	return func(cl *Client) { cl.onException = fn }
}

// A Client is a named stream of requests and one of responses. Its methods are safe for concurrent use; one loop at a time
// reads the responses.
type Client struct {
	session     *Session
	name        string
	from        uint64
	onException func(Exception)
	cancel      context.CancelFunc
	wake        chan struct{} // the writer
	dead        chan struct{} // is closed when err is set
	stopped     chan struct{} // is closed when the client uses no connection any more
	limit       int           // bytes of a body
	told        atomic.Uint64 // number of the last request whose exceptions have arrived

	mu        sync.Mutex
	err       error
	last      uint64   // number of the last request
	window    uint64   // number of the last request that may be sent
	kept      uint64   // number of the last request that is confirmed
	open      *batch   // is being filled
	batches   []*batch // full or sent, not confirmed
	unsent    int      // index of the first one that this connection has not sent
	writing   *batch   // the writer uses its memory
	retained  int      // bytes in open and batches
	connected bool
	idle      bool // the writer waits for wake
	closing   bool // the writer closes the connection when everything is sent
	purge     bool // and removes the data of the client
	waiting   bool // somebody waits for changed
	changed   chan struct{}
	barriers  []*barrier
	token     uint64
	ending    *ending
	ended     bool
	accepted  uint64 // when it ended
	refused   []error
	repeated  uint64

	in incoming

	confirmed  uint64        // number of the last response in a frame Received
	processed  atomic.Uint64 // number of the last response that the application has processed
	pending    int           // bytes of frames that were processed since the last frame Received
	confirmNow bool
}

// A batch is a frame of requests.
type batch struct {
	first uint64
	count uint32
	data  []byte
}

func (b *batch) last() uint64 { return b.first + uint64(b.count) - 1 }

func (b *batch) seal() []byte {
	frame.SetHeader(b.data, frame.Header{Type: frame.Requests, Count: b.count, First: b.first})
	return b.data
}

// split returns the records up to number n, and the others.
func (b *batch) split(n uint64) (head, tail *batch) {
	rest := b.data[frame.HeaderSize:]
	var r frame.Request
	for i := b.first; i <= n; i++ {
		rest, _ = frame.NextRequest(rest, &r) // the client encoded it
	}
	cut := len(b.data) - len(rest)
	head = &batch{first: b.first, count: uint32(n - b.first + 1), data: b.data[:cut:cut]}
	tail = &batch{first: n + 1, count: b.count - head.count, data: append(make([]byte, frame.HeaderSize, frame.HeaderSize+len(rest)), rest...)}
	return head, tail
}

// A barrier is a Flush that waits.
type barrier struct {
	token uint64
	after uint64 // all requests up to here are sent before the frame
	sent  bool
	done  chan struct{}
}

// An ending is an End that waits.
type ending struct {
	expected uint64
	sent     bool
	done     chan struct{}
	err      error
}

// Client connects the client with a name of 1 to 64 letters, digits, '-', '_' and '.'. A client that existed before
// continues: its next request has the number after the last one that the broker has stored. A name belongs to one process at a
// time: the newest one replaces the others.
func (s *Session) Client(ctx context.Context, name string, options ...ClientOption) (*Client, error) {
	cl := &Client{session: s, name: name, wake: make(chan struct{}, 1), dead: make(chan struct{}), stopped: make(chan struct{}), changed: make(chan struct{})}
	cl.in.ready = make(chan struct{}, 1)
	for _, o := range options {
		o(cl)
	}
	conn, welcome, err := cl.dialFirst(ctx)
	if err != nil {
		return nil, err
	}
	cl.last, cl.kept, cl.limit = welcome.Requests, welcome.Requests, welcome.MessageLimit
	cl.told.Store(welcome.Requests)
	cl.in.received, cl.in.position = welcome.From-1, welcome.From-1
	cl.processed.Store(cl.in.received)
	cl.confirmed = cl.in.received
	cl.resume(welcome)
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cl.cancel = cancel
	s.mu.Lock()
	s.clients = append(s.clients, cl)
	s.mu.Unlock()
	go cl.run(own, conn)
	return cl, nil
}

// Name returns the name of the client.
func (cl *Client) Name() string { return cl.name }

// Last returns the number of the last request that was passed to Send, or that the broker had when the client connected.
func (cl *Client) Last() uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.last
}

// Repeated returns how many requests were repetitions of one with the same id and content.
func (cl *Client) Repeated() uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.repeated
}

// Send sends a request and returns its number. The request is buffered: an error of the connection does not reach the caller.
// Send waits while the broker accepts no more requests; Flush waits until the broker has stored them.
func (cl *Client) Send(ctx context.Context, body []byte) (uint64, error) {
	return cl.send(ctx, &frame.Request{Body: body})
}

// SendRequest sends a request with further fields, and otherwise does the same as Send.
func (cl *Client) SendRequest(ctx context.Context, r Request) (uint64, error) {
	q := frame.Request{UserData: r.UserData, Body: r.Body}
	switch {
	case len(r.ID) > frame.MaxID:
		return 0, tooLong("/id", len(r.ID), frame.MaxID)
	case len(r.Action) > frame.MaxAction:
		return 0, tooLong("/action", len(r.Action), frame.MaxAction)
	case len(r.UserData) > frame.MaxUserData:
		return 0, tooLong("/user_data", len(r.UserData), frame.MaxUserData)
	case r.Timeout < 0 || r.Timeout > math.MaxUint32*time.Millisecond:
		return 0, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/timeout", Message: "the timeout " + r.Timeout.String() + " is not between 0 and 1193h"}
	}
	if r.ID != "" {
		q.ID = []byte(r.ID)
	}
	if r.Action != "" {
		q.Action = []byte(r.Action)
	}
	if r.Timeout > 0 {
		q.Timeout = uint32(max(1, r.Timeout.Milliseconds()))
	}
	return cl.send(ctx, &q)
}

func tooLong(pointer string, size, limit int) error {
	return &fanfare.Error{Code: fanfare.TooLarge, Pointer: pointer, Message: fmt.Sprintf("the field has %d bytes; at most %d are allowed", size, limit)}
}

func (cl *Client) send(ctx context.Context, r *frame.Request) (uint64, error) {
	if len(r.Body) > cl.limit {
		return 0, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/body", Message: fmt.Sprintf("the request has %d bytes; the limit of the worker is %d", len(r.Body), cl.limit),
			Hint: "raise the message_limit of the worker (1 MiB at most), or send a reference to the data"}
	}
	size := frame.RequestSize + len(r.ID) + len(r.Action) + len(r.UserData) + len(r.Body)
	cl.mu.Lock()
	for cl.err != nil || cl.closing || cl.ending != nil || cl.ended || cl.last >= cl.window || cl.retained > 0 && cl.retained+size > maxRetained {
		if err := cl.refusal(); err != nil {
			cl.mu.Unlock()
			return 0, err
		}
		if err := cl.waitChange(ctx); err != nil {
			cl.mu.Unlock()
			return 0, err
		}
	}
	b := cl.open
	if b == nil || len(b.data)+size > batchSize+frame.HeaderSize || b.count == frame.MaxRecords {
		if b != nil {
			cl.batches = append(cl.batches, b)
		}
		b = newBatch(size)
		b.first = cl.last + 1
		cl.open = b
	}
	b.data = frame.AppendRequest(b.data, r)
	b.count++
	cl.last++
	cl.retained += size
	number := cl.last
	cl.rouse()
	cl.mu.Unlock()
	return number, nil
}

// refusal returns why the client takes no request.
func (cl *Client) refusal() error {
	switch {
	case cl.err != nil:
		return cl.err
	case cl.closing:
		return errClosed
	case cl.ending != nil || cl.ended:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the client " + cl.name + " has ended its requests", Hint: "send all requests before End, or use another client name"}
	}
	return nil
}

func newBatch(size int) *batch {
	return &batch{data: frame.Buffer(frame.HeaderSize + max(size, batchSize))[:frame.HeaderSize]}
}

// waitChange releases mu until the window, the retained requests or the state change.
func (cl *Client) waitChange(ctx context.Context) error {
	cl.waiting = true
	changed := cl.changed
	cl.mu.Unlock()
	defer cl.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (cl *Client) change() {
	if cl.waiting {
		close(cl.changed)
		cl.changed, cl.waiting = make(chan struct{}), false
	}
}

// rouse wakes the writer.
func (cl *Client) rouse() {
	if cl.idle {
		cl.idle = false
		select {
		case cl.wake <- struct{}{}:
		default:
		}
	}
}

// Flush waits until the broker has stored all requests sent so far; in a durable session, they are then in the database.
// Requests that were refused since the last Flush are in its error.
func (cl *Client) Flush(ctx context.Context) error {
	cl.mu.Lock()
	if err := cl.err; err != nil {
		cl.mu.Unlock()
		return err
	}
	cl.token++
	b := &barrier{token: cl.token, after: cl.last, done: make(chan struct{})}
	cl.barriers = append(cl.barriers, b)
	cl.rouse()
	cl.mu.Unlock()
	select {
	case <-b.done:
	case <-cl.dead:
		return cl.err
	case <-ctx.Done():
		return ctx.Err()
	}
	return cl.takeRefused()
}

func (cl *Client) takeRefused() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	err := errors.Join(cl.refused...)
	cl.refused = nil
	return err
}

// End ends the stream of requests, and waits until the broker has stored all of them. The responses end when each accepted
// request has one. Requests that were refused since the last Flush are in its error.
func (cl *Client) End(ctx context.Context) error { return cl.EndCount(ctx, math.MaxUint64) }

// EndCount does the same as End if the broker has accepted exactly n requests of this client (repetitions and refusals do
// not count). Otherwise, it returns an error, and the client can send further requests.
func (cl *Client) EndCount(ctx context.Context, n uint64) error {
	cl.mu.Lock()
	e := cl.ending
	switch {
	case cl.err != nil:
		cl.mu.Unlock()
		return cl.err
	case cl.ended:
		accepted := cl.accepted
		cl.mu.Unlock()
		return checkCount(n, accepted)
	case e != nil && e.expected != n:
		cl.mu.Unlock()
		return &fanfare.Error{Code: fanfare.Conflict, Message: "another call of End is still waiting"}
	case e == nil:
		e = &ending{expected: n, done: make(chan struct{})}
		cl.ending = e
		cl.rouse()
	}
	cl.mu.Unlock()
	select {
	case <-e.done:
	case <-cl.dead:
		return cl.err
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.err != nil {
		return e.err
	}
	return cl.takeRefused()
}

func checkCount(expected, accepted uint64) error {
	if expected == math.MaxUint64 || expected == accepted {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the client has ended with %d accepted requests instead of %d", accepted, expected)}
}

// Close sends what is buffered, confirms the responses that were processed, and closes the connection. The session and the
// stream remain; a client with this name can continue. If there is no connection, it gives up at once.
func (cl *Client) Close(ctx context.Context) error { return cl.close(ctx, false) }

// Purge removes the requests and responses of this client from the broker, and closes the connection.
func (cl *Client) Purge(ctx context.Context) error { return cl.close(ctx, true) }

func (cl *Client) close(ctx context.Context, purge bool) error {
	cl.mu.Lock()
	cl.closing, cl.confirmNow = true, true
	cl.purge = cl.purge || purge
	cl.change()
	cl.rouse()
	if !cl.connected {
		cl.cancel()
	}
	cl.mu.Unlock()
	var err error
	select {
	case <-cl.stopped:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cl.cancel()
	<-cl.stopped
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err == nil && !errors.Is(cl.err, errClosed) {
		err = cl.err
	}
	return err
}

// fail ends the client for good.
func (cl *Client) fail(err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.err != nil {
		return
	}
	cl.err = err
	close(cl.dead)
	cl.change()
}

// keep drops the requests up to number n, which the broker keeps.
func (cl *Client) keep(n uint64) {
	for len(cl.batches) > 0 && cl.batches[0].last() <= n {
		b := cl.batches[0]
		cl.batches[0] = nil
		cl.batches = cl.batches[1:]
		cl.unsent = max(0, cl.unsent-1)
		cl.retained -= len(b.data) - frame.HeaderSize
		if b != cl.writing {
			frame.Recycle(b.data)
			b.data = nil
		}
	}
	cl.kept = max(cl.kept, n)
	cl.change()
}

// except notes a request that gets no response.
func (cl *Client) except(e *frame.Exception) {
	x := Exception{Request: e.Number}
	if e.Refused {
		x.Err = &RefusedError{Request: e.Number, Err: stream.Problem(e.Problem)}
	}
	cl.mu.Lock()
	if !e.Refused {
		cl.repeated++
	} else if len(cl.refused) < maxRefused {
		cl.refused = append(cl.refused, x.Err)
	}
	cl.mu.Unlock()
	if cl.onException != nil {
		cl.onException(x)
	}
}

// A RefusedError is a request that the broker refused.
type RefusedError struct {
	Request uint64
	Err     *fanfare.Error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("request %d: %v", e.Request, e.Err) }

// Unwrap returns the error of the broker.
func (e *RefusedError) Unwrap() error { return e.Err }
