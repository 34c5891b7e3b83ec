package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A testClient is a client for tests that send one frame at a time.
type testClient struct {
	t       testing.TB
	conn    *pipeEnd
	welcome frame.ClientWelcome
	served  chan error
	cancel  context.CancelFunc
	window  uint64

	responses  []frame.Response
	next       uint64 // number of the next response
	accepted   uint64
	exceptions []frame.Exception
	problems   []string
	flushed    []uint64
	ended      []uint64
	done       bool
}

func attach(t testing.TB, b *Broker, id, name string, from uint64) *testClient {
	t.Helper()
	return attachAt(t, b, id, name, session.Position{From: from})
}

func attachAt(t testing.TB, b *Broker, id, name string, at session.Position) *testClient {
	t.Helper()
	near, far := pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &testClient{t: t, conn: near, served: make(chan error, 1), cancel: cancel}
	go func() { c.served <- b.ServeClient(ctx, far, testService, id, name, at) }()
	b0, err := near.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h, payload, _ := frame.Parse(b0)
	if h.Type != frame.Welcome {
		t.Fatalf("the first frame has the type %d: %s", h.Type, payload)
	}
	if err := json.Unmarshal(payload, &c.welcome); err != nil {
		t.Fatal(err)
	}
	c.next, c.window = c.welcome.From, c.welcome.Window
	return c
}

// patience is how long a test waits for a frame. It only determines how long a failure takes.
const patience = 2 * time.Minute

// step reads a frame, and reports whether there was one.
func (c *testClient) step(wait time.Duration) bool {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	b, err := c.conn.Read(ctx)
	if err != nil {
		return false
	}
	h, payload, err := frame.Parse(b)
	if err != nil {
		c.t.Fatal(err)
	}
	switch h.Type {
	case frame.Accepted:
		c.accepted = h.First
		for range h.Count {
			var e frame.Exception
			if payload, err = frame.NextException(payload, &e); err != nil {
				c.t.Fatal(err)
			}
			c.exceptions = append(c.exceptions, e)
		}
	case frame.Responses:
		if h.First != c.next {
			c.t.Fatalf("the frame begins with the response %d, want %d", h.First, c.next)
		}
		for range h.Count {
			var r frame.Response
			if payload, err = frame.NextResponse(payload, &r); err != nil {
				c.t.Fatal(err)
			}
			c.responses = append(c.responses, r)
			c.next++
		}
	case frame.Flushed:
		c.flushed = append(c.flushed, h.First, binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint64(payload[8:]))
	case frame.Ended:
		c.ended = append(c.ended, h.First)
	case frame.Done:
		if h.First != c.next-1 {
			c.t.Fatalf("done says %d responses, received up to %d", h.First, c.next-1)
		}
		c.done = true
	case frame.Problem, frame.Closed:
		c.problems = append(c.problems, string(payload))
	case frame.Window:
		c.window = h.First
	default:
		c.t.Fatalf("a frame of type %d", h.Type)
	}
	return true
}

// until reads frames until something is true.
func (c *testClient) until(what string, is func() bool) {
	c.t.Helper()
	for !is() {
		if !c.step(patience) {
			c.t.Fatalf("the connection of the client ended, or nothing came, before: %s (%d responses, accepted %d, problems %q)", what, len(c.responses), c.accepted, c.problems)
		}
	}
}

func (c *testClient) write(f []byte) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), f); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testClient) send(first uint64, requests ...frame.Request) {
	c.t.Helper()
	c.write(requestsFrame(first, requests...))
}

func requestsFrame(first uint64, requests ...frame.Request) []byte {
	b := frame.Token(frame.Requests, uint32(len(requests)), first)
	for i := range requests {
		b = frame.AppendRequest(b, &requests[i])
	}
	return b
}

func (c *testClient) confirm() { c.write(frame.Token(frame.Received, 0, c.next-1)) }

func (c *testClient) end() { c.write(frame.Token(frame.End, 0, math.MaxUint64)) }

func (c *testClient) close() {
	c.cancel()
	<-c.served
}

// numbered returns n requests whose body is their number.
func numbered(first, n int) []frame.Request {
	var all []frame.Request
	for k := first; k < first+n; k++ {
		all = append(all, frame.Request{Body: binary.LittleEndian.AppendUint32(nil, uint32(k))})
	}
	return all
}

// A testInstance is an instance whose tasks a test answers one by one.
type testInstance struct {
	t       testing.TB
	conn    *pipeEnd
	served  chan error
	cancel  context.CancelFunc
	tasks   []frame.Task
	cancels []uint64
	drained bool
	problem string
}

func join(t testing.TB, b *Broker, worker, name string, capacity int) *testInstance {
	t.Helper()
	near, far := pipe()
	ctx, cancel := context.WithCancel(t.Context())
	i := &testInstance{t: t, conn: near, served: make(chan error, 1), cancel: cancel}
	go func() { i.served <- b.ServeInstance(ctx, far, testService, worker, name, capacity) }()
	f, err := near.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if h, payload, _ := frame.Parse(f); h.Type != frame.Welcome {
		t.Fatalf("the first frame has the type %d: %s", h.Type, payload)
	}
	return i
}

func (i *testInstance) step(wait time.Duration) bool {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	f, err := i.conn.Read(ctx)
	if err != nil {
		return false
	}
	h, payload, err := frame.Parse(f)
	if err != nil {
		i.t.Fatal(err)
	}
	switch h.Type {
	case frame.Tasks:
		for range h.Count {
			var task frame.Task
			if payload, err = frame.NextTask(payload, &task); err != nil {
				i.t.Fatal(err)
			}
			i.tasks = append(i.tasks, task)
		}
	case frame.Cancel:
		for range h.Count {
			i.cancels = append(i.cancels, binary.LittleEndian.Uint64(payload))
			payload = payload[8:]
		}
	case frame.Drain:
		i.drained = true
	case frame.Problem:
		i.problem = string(payload)
	default:
		i.t.Fatalf("a frame of type %d", h.Type)
	}
	return true
}

func (i *testInstance) until(what string, is func() bool) {
	i.t.Helper()
	for !is() {
		if !i.step(patience) {
			i.t.Fatalf("the connection of the instance ended, or nothing came, before: %s (%d tasks)", what, len(i.tasks))
		}
	}
}

// firstOf reads the frames of several instances until something is true of one, and returns its index.
func firstOf(t testing.TB, instances []*testInstance, what string, is func(*testInstance) bool) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for k, i := range instances {
			if i.step(5 * time.Millisecond); is(i) {
				return k
			}
		}
	}
	t.Fatalf("no instance %s", what)
	return 0
}

// next returns the next task.
func (i *testInstance) next() frame.Task {
	i.t.Helper()
	i.until("a task", func() bool { return len(i.tasks) > 0 })
	task := i.tasks[0]
	i.tasks = i.tasks[1:]
	return task
}

func (i *testInstance) answer(results ...frame.Result) {
	i.t.Helper()
	b := frame.Token(frame.Results, uint32(len(results)), 0)
	for k := range results {
		b = frame.AppendResult(b, &results[k])
	}
	if err := i.conn.Write(i.t.Context(), b); err != nil {
		i.t.Fatal(err)
	}
}

// kill ends the connection without a word.
func (i *testInstance) kill() {
	_ = i.conn.Close(1006, "")
	<-i.served
	i.cancel()
}

// serve answers all tasks with their own body until the connection ends.
func (i *testInstance) serve() {
	for {
		f, err := i.conn.Read(context.Background())
		if err != nil {
			return
		}
		h, payload, _ := frame.Parse(f)
		if h.Type != frame.Tasks {
			continue
		}
		out := frame.AppendHeader(make([]byte, 0, len(f)), frame.Header{Type: frame.Results, Count: h.Count})
		for range h.Count {
			var task frame.Task
			payload, _ = frame.NextTask(payload, &task)
			out = frame.AppendResult(out, &frame.Result{Tag: task.Tag, Micros: 1, Body: task.Body})
		}
		if i.conn.Write(context.Background(), out) != nil {
			return
		}
	}
}

var echo = session.Definition{Name: "echo", Concurrency: 1}
