// Package call passes single requests of the server itself to workers: those of formatters, filters and delivery protocols.
// It is a client of the broker, over a connection inside the process. Package server creates the Caller, and the stages call it
// through an interface of their own.
//
// State. One interactive session for each service, worker and purpose, opened at the first call and again after the broker has
// closed it; and one for each worker whose instance agents keep ready.
//
// Failure. A *Fault is the answer of the worker. Any other error means that the request may or may not have run, and that the
// caller should try again later.
package call

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A Broker opens sessions and serves their clients.
type Broker interface {
	Open(ctx context.Context, service string, o session.Options) (session.Info, error)
	ServeClient(ctx context.Context, conn session.Conn, service, id, client string, at session.Position) error
	EndWithoutInstance(ctx context.Context, service, id, reason string) (ended bool, err error)
}

// A Target is the worker that answers a request, and the purpose for which it is asked. Targets do not wait for each other.
type Target struct{ Service, Worker, Purpose string }

// A Fault is the answer of a worker that could not do its work.
type Fault struct {
	frame.FaultBody
	Worker string
}

// Error says which worker failed and why.
func (f *Fault) Error() string { return fmt.Sprintf("worker %s: %s", f.Worker, f.Message) }

// errClosed is the cause if the connection to the broker ended before the response.
var errClosed = &fanfare.Error{Code: fanfare.Unavailable, Message: "the session with the worker ended before its response", RetryAfter: time.Second}

// clientName is the name of the only client of each session.
const clientName = "fanfare"

// A Caller makes calls. It is safe for concurrent use.
type Caller struct {
	broker Broker

	mu      sync.Mutex
	streams map[Target]*stream
}

// New returns a Caller.
func New(broker Broker) *Caller { return &Caller{broker: broker, streams: map[Target]*stream{}} }

// Call sends a request and returns the body of its response. It waits for an instance of the worker until ctx ends. Timeout
// limits the task; 0 is that of the worker.
func (c *Caller) Call(ctx context.Context, to Target, action string, body []byte, timeout time.Duration) ([]byte, error) {
	s := c.stream(ctx, to)
	select {
	case <-s.opened:
		if s.openErr != nil {
			return nil, s.openErr
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.call(ctx, &frame.Request{Action: []byte(action), Body: body, Timeout: uint32(timeout.Milliseconds())})
}

// KeepInstance lets agents keep an instance of a worker ready from now on. It does not wait.
func (c *Caller) KeepInstance(service, worker string) {
	c.stream(context.Background(), Target{service, worker, keepInstance})
}

// keepInstance is the purpose of the sessions of KeepInstance.
const keepInstance = "keep an instance"

// EndWithoutInstance ends the session of a target if its worker has no instance, and reports whether it has ended: no instance
// gets the requests that wait, and their calls return an error.
func (c *Caller) EndWithoutInstance(ctx context.Context, to Target) (ended bool) {
	c.mu.Lock()
	s := c.streams[to]
	c.mu.Unlock()
	if s == nil {
		return true
	}
	select {
	case <-s.opened:
	default:
		return true // no request has been sent
	}
	if s.openErr != nil {
		return true
	}
	ended, err := c.broker.EndWithoutInstance(context.WithoutCancel(ctx), to.Service, s.session, "no instance is connected")
	if err == nil && !ended {
		return false
	}
	c.forget(to, s) // the next call opens another session
	return true
}

// forget removes the stream of a target, unless the target has another one by now.
func (c *Caller) forget(to Target, s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[to] == s {
		delete(c.streams, to)
	}
}

// stream returns the stream of a target, and begins to open it if there is none.
func (c *Caller) stream(ctx context.Context, to Target) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[to]
	if s == nil {
		s = &stream{worker: to.Worker, opened: make(chan struct{}), done: make(chan struct{}), waiting: map[uint64]chan<- answer{}, rise: make(chan struct{}, 1)}
		c.streams[to] = s
		go c.open(context.WithoutCancel(ctx), s, to)
	}
	return s
}

// open opens a session and serves its client until it ends.
func (c *Caller) open(ctx context.Context, s *stream, to Target) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	near, far := pipe()
	o := session.Options{Worker: to.Worker, Kind: session.Interactive, Priority: session.MaxPriority, Resends: -1, OpenedBy: "server, " + to.Purpose}
	if to.Purpose == keepInstance {
		o.MinInstances = 1
	}
	info, err := c.broker.Open(ctx, to.Service, o)
	if err == nil {
		s.session = info.ID
		go func() {
			_ = c.broker.ServeClient(ctx, far, to.Service, info.ID, clientName, session.Position{}) // its end ends the stream
			_ = far.Close(session.CloseNormal, "")                                                  // it never fails
		}()
		err = s.welcome(ctx, near)
	}
	if err == nil {
		close(s.opened)
		s.receive(ctx)
	}
	c.forget(to, s)
	if err != nil {
		s.openErr = err
		close(s.opened)
	}
	_ = near.Close(session.CloseNormal, "") // it never fails
	s.end()
}

// A stream is the client of one session.
type stream struct {
	worker  string
	opened  chan struct{} // closed when the next three are set
	openErr error
	session string
	conn    session.Conn
	done    chan struct{} // closed when the stream has ended

	sending sync.Mutex // serializes requests in the order of their numbers

	mu      sync.Mutex
	sent    uint64 // number of the last request
	window  uint64 // number of the last request that may be sent
	rise    chan struct{}
	ended   bool
	waiting map[uint64]chan<- answer
}

type answer struct {
	body  []byte
	fault bool
}

// welcome reads the first frame.
func (s *stream) welcome(ctx context.Context, conn session.Conn) error {
	b, err := conn.Read(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	header, payload, err := frame.Parse(b)
	if err != nil {
		return err
	}
	var w frame.ClientWelcome
	if header.Type != frame.Welcome || json.Unmarshal(payload, &w) != nil {
		return problemOf(payload)
	}
	s.conn, s.window = conn, w.Window
	return nil
}

// problemOf returns the problem that the broker sent instead of the expected frame.
func problemOf(payload []byte) error {
	var problem struct {
		Detail string `json:"detail"`
		Hint   string `json:"hint"`
	}
	if json.Unmarshal(payload, &problem) != nil || problem.Detail == "" {
		return errClosed
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Message: problem.Detail, Hint: problem.Hint, RetryAfter: time.Second}
}

func (s *stream) call(ctx context.Context, r *frame.Request) ([]byte, error) {
	got := make(chan answer, 1)
	number, err := s.send(ctx, r, got)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-got:
		if a.fault {
			return nil, s.fault(a.body)
		}
		return a.body, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, number)
		s.mu.Unlock()
		return nil, ctx.Err()
	case <-s.done:
		return nil, errClosed
	}
}

func (s *stream) fault(body []byte) error {
	fault := &Fault{Worker: s.worker}
	if json.Unmarshal(body, &fault.FaultBody) != nil || fault.Message == "" {
		fault.Message = "the worker failed without a message"
	}
	return fault
}

// send sends a request when the window of the broker admits it, and returns its number.
func (s *stream) send(ctx context.Context, r *frame.Request, got chan<- answer) (number uint64, err error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	for {
		s.mu.Lock()
		if s.ended {
			s.mu.Unlock()
			return 0, errClosed
		}
		if s.sent < s.window {
			break
		}
		s.mu.Unlock()
		select {
		case <-s.rise:
		case <-s.done:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	s.sent++
	number = s.sent
	s.waiting[number] = got
	s.mu.Unlock()
	b := frame.AppendHeader(make([]byte, 0, frame.HeaderSize+frame.RequestSize+len(r.Action)+len(r.Body)), frame.Header{Type: frame.Requests, Count: 1, First: number})
	if err := s.conn.Write(context.WithoutCancel(ctx), frame.AppendRequest(b, r)); err != nil {
		return 0, fmt.Errorf("%w: %w", errClosed, err)
	}
	return number, nil
}

// receive handles the frames of the broker until the connection ends.
func (s *stream) receive(ctx context.Context) {
	for {
		b, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		header, payload, err := frame.Parse(b)
		if err != nil {
			return
		}
		switch header.Type {
		case frame.Window:
			s.mu.Lock()
			s.window = max(s.window, header.First)
			s.mu.Unlock()
			select {
			case s.rise <- struct{}{}:
			default:
			}
		case frame.Responses:
			if s.deliver(ctx, header, payload) != nil {
				return
			}
		case frame.Accepted:
			if s.refuse(header, payload) != nil {
				return
			}
		case frame.Closed:
			return
		}
	}
}

// deliver passes responses to the calls that wait for them, and confirms them.
func (s *stream) deliver(ctx context.Context, header frame.Header, records []byte) (err error) {
	var r frame.Response
	for range header.Count {
		if records, err = frame.NextResponse(records, &r); err != nil {
			return err
		}
		s.answer(r.Request, answer{r.Body, r.Status != frame.OK})
	}
	return s.conn.Write(ctx, frame.Token(frame.Received, 0, header.First+uint64(header.Count)-1))
}

// refuse ends the calls whose requests were refused.
func (s *stream) refuse(header frame.Header, records []byte) (err error) {
	var e frame.Exception
	for range header.Count {
		if records, err = frame.NextException(records, &e); err != nil {
			return err
		}
		var problem struct {
			Detail string `json:"detail"`
		}
		_ = json.Unmarshal(e.Problem, &problem) // an unreadable problem leaves the message empty
		body, err := json.Marshal(frame.FaultBody{Code: "refused", Message: problem.Detail})
		if err != nil {
			return err
		}
		s.answer(e.Number, answer{body, true})
	}
	return nil
}

func (s *stream) answer(request uint64, a answer) {
	s.mu.Lock()
	got := s.waiting[request]
	delete(s.waiting, request)
	s.mu.Unlock()
	if got != nil {
		got <- a
	}
}

// end ends all calls that wait.
func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	close(s.done)
}
