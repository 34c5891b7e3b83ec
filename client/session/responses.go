package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A Response is the answer to one request. ID, UserData and Body share the memory of the frame in which they came, up to a
// few hundred KiB: copy what you keep for long.
type Response struct {
	Number   uint64 // from 1, without gaps, in the order in which the broker stored the responses
	Request  uint64 // number of the request
	ID       []byte // of the request
	UserData []byte // of the request
	Body     []byte // of a fault: JSON; see Err
	Last     bool   // no response follows
	Attempts int    // how often the request was sent to an instance
	fault    bool
}

// Err returns the fault that is the response, as a *Fault, or nil.
func (r *Response) Err() error {
	if !r.fault {
		return nil
	}
	f, err := decode[frame.FaultBody](r.Body)
	if err != nil {
		return &Fault{Code: "fault", Message: "the fault has an unknown format"}
	}
	return &Fault{f.Code, f.Message, f.Detail}
}

// A Fault is a response that is not a result: the function of the worker returned an error, the task timed out, or its
// instance was lost and the request must not run again.
type Fault struct {
	Code    string // fault, timeout, lost, cancelled, panic, or a code that the worker set
	Message string
	Detail  string // such as a stack trace
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// incoming are the responses between the connection and the application.
type incoming struct {
	ready chan struct{} // something has changed; pools share it between clients

	mu       sync.Mutex
	frames   []responses
	received uint64 // number of the last response in frames
	total    uint64 // of all responses, when known
	done     bool

	reading  bool // a loop runs
	position uint64
	rest     []byte // of the frame that is being read
	left     uint32
	size     int
}

// responses are the records of a frame.
type responses struct {
	count uint32
	data  []byte
}

func (in *incoming) next() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.received + 1
}

func (in *incoming) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

var errGap = errors.New("responses are missing between two frames")

// add takes a frame. Responses that a former connection has delivered are dropped.
func (in *incoming) add(h frame.Header, data []byte) error {
	if h.Count == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.First == 0 || h.First > in.received+1 {
		return errGap
	}
	last := h.First + uint64(h.Count) - 1
	if last <= in.received {
		return nil
	}
	count := h.Count
	var r frame.Response
	for n := h.First; n <= in.received; n++ {
		var err error
		if data, err = frame.NextResponse(data, &r); err != nil {
			return err
		}
		count--
	}
	in.frames = append(in.frames, responses{count, data})
	in.received = last
	in.signal()
	return nil
}

func (in *incoming) finish(total uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.total, in.done = total, true
	in.signal()
}

// begin starts a loop.
func (in *incoming) begin() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.reading {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "another loop is already reading the responses of this client", Hint: "use only one loop per client"}
	}
	in.reading = true
	return nil
}

func (in *incoming) stop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.reading = false
}

// take makes the next frame current. It reports whether there is one, and whether all responses were read.
func (in *incoming) take() (ok, done bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.frames) == 0 {
		return false, in.done && in.position >= in.total
	}
	f := in.frames[0]
	in.frames[0] = responses{}
	in.frames = in.frames[1:]
	in.rest, in.left, in.size = f.data, f.count, len(f.data)
	return true, false
}

// Responses yields the responses to this client. It ends after End when each accepted request has its response, or with an
// error, which is its last pair. A response is confirmed to the broker when the loop requests the next one. The response at
// which a loop breaks is confirmed when another loop starts: a process that attaches after this one has died receives it
// again.
func (cl *Client) Responses(ctx context.Context) iter.Seq2[Response, error] {
	return func(yield func(Response, error) bool) {
		if err := cl.in.begin(); err != nil {
			yield(Response{}, err)
			return
		}
		defer cl.in.stop()
		cl.processed.Store(max(cl.processed.Load(), cl.in.position))
		for {
			goOn, done, err := cl.drain(func(r Response) bool { return yield(r, nil) })
			switch {
			case err != nil:
				yield(Response{}, err)
				return
			case !goOn || done:
				return
			}
			select {
			case <-cl.in.ready:
			case <-cl.dead:
				if ok, done := cl.in.peek(); !ok && !done {
					yield(Response{}, cl.err)
					return
				}
			case <-ctx.Done():
				yield(Response{}, ctx.Err())
				return
			}
		}
	}
}

// peek reports whether there is a frame, and whether all responses were read.
func (in *incoming) peek() (ok, done bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.frames) > 0, in.done && in.position >= in.total
}

// drain yields what has arrived. goOn is false if yield returned false, and done is true after the last response.
func (cl *Client) drain(yield func(Response) bool) (goOn, done bool, err error) {
	in := &cl.in
	var r frame.Response
	for {
		for in.left > 0 {
			if in.rest, err = frame.NextResponse(in.rest, &r); err != nil {
				err = &fanfare.Error{Code: fanfare.Internal, Message: "the server violated the session protocol: " + err.Error()}
				cl.fail(err)
				return false, false, err
			}
			in.left--
			in.position++
			number := in.position
			if !yield(Response{Number: number, Request: r.Request, ID: r.ID, UserData: r.UserData, Body: r.Body, Last: r.Last, Attempts: int(r.Attempts), fault: r.Status == frame.Fault}) {
				return false, false, nil
			}
			cl.processed.Store(number)
			if number%(confirmCount+1) == 0 {
				cl.confirm(0, false)
			}
		}
		size := in.size
		in.size = 0
		ok, done := in.take()
		if size > 0 || done {
			cl.confirm(size, done)
		}
		if !ok {
			return true, done, nil
		}
	}
}

// confirm has the writer send a frame Received if it is due.
func (cl *Client) confirm(size int, now bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.pending += size
	cl.confirmNow = cl.confirmNow || now
	if now || cl.processed.Load()-cl.confirmed >= confirmCount || cl.pending >= confirmBytes {
		cl.rouse()
	}
}

// Handle calls fn for each response until all have been received, fn returns an error, or the client fails.
func (cl *Client) Handle(ctx context.Context, fn func(Response) error) error {
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return fmt.Errorf("response %d: %w", r.Number, err)
		}
	}
	return nil
}
