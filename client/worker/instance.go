package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/internal/stream"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

const (
	batchSize  = 64 << 10 // bytes of a frame of results, unless one result is larger
	maxPending = 4 << 20  // bytes of results that are not sent; runners wait above this

	maxCapacity = 1024
)

// An instance is one connection. Runners take tasks from frames, and add results to the frame that is sent next: it fills
// while the one before is written.
type instance struct {
	conn  *websocket.Conn
	fn    Func
	limit int // bytes of a result

	tasks   sync.Mutex
	more    sync.Cond // of tasks: there are tasks, or the instance leaves
	frames  []*records
	current *records // the frame whose tasks are next
	rest    []byte   // of the current frame
	left    uint32
	leaving bool // no further task is started
	closed  bool
	dropped map[uint64]bool // tags of queued tasks that were cancelled
	runners []*runner
	quit    chan struct{} // is closed with leaving or closed

	results sync.Mutex
	space   sync.Cond // of results: a frame was taken
	pending [][]byte  // full frames
	size    int       // bytes in pending
	frame   []byte    // is being filled
	count   uint32
	idle    bool // the writer waits for wake
	wake    chan struct{}
	leave   bool // the frame Leaving must be sent
	last    bool // nothing follows
}

// records are the tasks of a frame.
type records struct {
	count   uint32
	data    []byte
	arrived time.Time
	frame   []byte
	over    uint32 // tasks whose functions have returned: after the last one, the memory is used again
}

// finished notes that nothing uses a task any more.
func (f *records) finished() {
	if f.over++; f.over == f.count {
		frame.Recycle(f.frame)
	}
}

// A runner runs one task at a time.
type runner struct {
	task Task
	ctx  *taskContext
	busy bool
	tag  uint64
	from *records // of the task
}

// Slots limit the functions that run in the process: one of a lost connection may still run while the next connection begins.
type slots struct {
	free  chan struct{}
	total int
}

func newSlots() *slots { return &slots{free: make(chan struct{}, maxCapacity)} }

func (s *slots) grow(n int) {
	for ; s.total < min(n, maxCapacity); s.total++ {
		s.free <- struct{}{}
	}
}

// serve answers the tasks of a connection. It returns nil after the instance has left as intended.
func serve(ctx context.Context, conn *websocket.Conn, welcome *frame.WorkerWelcome, fn Func, free *slots) error {
	in := &instance{conn: conn, fn: fn, limit: welcome.MessageLimit, dropped: map[uint64]bool{}, quit: make(chan struct{}), wake: make(chan struct{}, 1)}
	if in.limit == 0 {
		in.limit = frame.MaxBody
	}
	in.more.L, in.space.L = &in.tasks, &in.results
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ends with the connection
	defer cancel()
	var runners, others sync.WaitGroup
	capacity := min(max(1, welcome.Capacity), maxCapacity)
	free.grow(capacity)
	for range capacity {
		r := &runner{ctx: &taskContext{parent: alive}}
		in.runners = append(in.runners, r)
		runners.Go(func() {
			select {
			case <-free.free:
				in.run(alive, r)
				free.free <- struct{}{}
			case <-in.quit:
			}
		})
	}
	others.Go(func() {
		in.write(alive)
		cancel() // a broker that does not answer the end of the connection is not waited for
	})
	stop := context.AfterFunc(ctx, in.goAway)
	defer stop()
	go func() { // functions that ignore their contexts may run longer than the connection
		runners.Wait()
		in.finish()
	}()
	err := in.read(alive)
	cancel()
	in.stop()
	others.Wait()
	go func() { _ = conn.Close(1000, "") }() // the peer may be gone
	if end, ok := errors.AsType[*websocket.End](err); ok && end.Local && end.Code == 1000 {
		return nil
	}
	return err
}

// goAway starts no further task, and returns those that have not started.
func (in *instance) goAway() {
	in.tasks.Lock()
	if in.leaving {
		in.tasks.Unlock()
		return
	}
	in.results.Lock()
	in.leave = true
	in.rouse()
	in.results.Unlock()
	in.giveBack()
	in.leaving = true // after the results: then the connection may close
	in.quitOnce()
	in.tasks.Unlock()
}

func (in *instance) quitOnce() {
	in.more.Broadcast()
	select {
	case <-in.quit:
	default:
		close(in.quit)
	}
}

// giveBack returns all tasks that have not started.
func (in *instance) giveBack() {
	var t frame.Task
	for in.next(&t) {
		in.add(&frame.Result{Tag: t.Tag, Status: frame.Returned})
	}
}

// next takes the next task from the frames.
func (in *instance) next(t *frame.Task) bool {
	for in.left == 0 {
		if len(in.frames) == 0 {
			return false
		}
		f := in.frames[0]
		in.frames[0] = nil
		in.frames = in.frames[1:]
		in.current, in.rest, in.left = f, f.data, f.count
	}
	var err error
	if in.rest, err = frame.NextTask(in.rest, t); err != nil { // take has checked the frame
		in.left = 0
		return false
	}
	in.left--
	return true
}

// run is a runner.
func (in *instance) run(alive context.Context, r *runner) {
	var t frame.Task
	var result frame.Result
	var start, end time.Time
	for {
		in.tasks.Lock()
		if r.busy {
			r.busy = false
			r.from.finished()
		}
		start = end
		for {
			if in.closed || in.leaving {
				in.tasks.Unlock()
				return
			}
			if in.next(&t) {
				break
			}
			in.more.Wait()
			start = time.Time{}
		}
		if len(in.dropped) > 0 && in.dropped[t.Tag] {
			delete(in.dropped, t.Tag)
			in.current.finished()
			in.tasks.Unlock()
			in.add(&frame.Result{Tag: t.Tag, Status: frame.Returned})
			continue
		}
		r.begin(alive, &t, in.current)
		in.tasks.Unlock()

		if start.IsZero() {
			start = time.Now()
		}
		body, err := in.call(r)
		end = time.Now()
		r.ctx.cancel(context.Canceled)
		if alive.Err() != nil {
			continue
		}
		result = frame.Result{Tag: t.Tag, Micros: uint32(min(end.Sub(start).Microseconds(), 1<<32-1)), Body: body}
		if err == nil && len(body) > in.limit {
			err = &Fault{Code: string(fanfare.TooLarge), Message: fmt.Sprintf("the response has %d bytes; the limit of the worker is %d", len(body), in.limit)}
		}
		if err != nil {
			result.Status, result.Body = faultBody(err)
			if len(result.Body) > in.limit {
				_, result.Body = faultBody(&Fault{Code: "fault", Message: "the description of the fault exceeds the message limit of the worker"})
			}
		}
		in.add(&result)
	}
}

// begin makes t the task of the runner.
func (r *runner) begin(alive context.Context, t *frame.Task, from *records) {
	r.busy, r.tag, r.from = true, t.Tag, from
	action := r.task.Action
	if action != string(t.Action) {
		action = string(t.Action)
	}
	r.task = Task{Session: t.Session, Request: t.Request, Client: t.Client, Attempt: int(t.Attempt), Action: action, Body: t.Body}
	var deadline time.Time
	if t.Timeout > 0 {
		deadline = from.arrived.Add(time.Duration(t.Timeout) * time.Millisecond)
	}
	if !r.ctx.reset(deadline) {
		r.ctx = &taskContext{parent: alive, deadline: deadline}
	}
}

// reset prepares the context for another task. It fails if somebody may still wait for the former one.
func (c *taskContext) reset(deadline time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed {
		return false
	}
	c.err, c.deadline = nil, deadline
	return true
}

// call runs the function. A panic becomes a fault.
func (in *instance) call(r *runner) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, &Fault{Code: "panic", Message: fmt.Sprint(p), Detail: string(debug.Stack())}
		}
	}()
	return in.fn(r.ctx, &r.task)
}

// add adds a result to the frame that is sent next.
func (in *instance) add(r *frame.Result) {
	size := frame.ResultSize + len(r.Body)
	in.results.Lock()
	defer in.results.Unlock()
	for in.size >= maxPending && !in.last {
		in.space.Wait()
	}
	if in.count > 0 && (len(in.frame)+size > frame.HeaderSize+batchSize || in.count == frame.MaxRecords) {
		in.seal()
	}
	if in.frame == nil {
		in.frame = frame.Buffer(frame.HeaderSize + max(size, batchSize))[:frame.HeaderSize]
	}
	in.frame = frame.AppendResult(in.frame, r)
	in.count++
	in.rouse()
}

// seal ends the frame that is being filled.
func (in *instance) seal() {
	frame.SetHeader(in.frame, frame.Header{Type: frame.Results, Count: in.count})
	in.pending = append(in.pending, in.frame)
	in.size += len(in.frame)
	in.frame, in.count = nil, 0
}

func (in *instance) rouse() {
	if in.idle {
		in.idle = false
		in.wake <- struct{}{}
	}
}

// finish has the writer close the connection after the last result.
func (in *instance) finish() {
	in.results.Lock()
	defer in.results.Unlock()
	in.last = true
	in.space.Broadcast()
	in.rouse()
}

// write sends results until the connection ends.
func (in *instance) write(ctx context.Context) {
	var written []byte
	for {
		frame.Recycle(written)
		written = nil
		in.results.Lock()
		var data []byte
		leaving := in.leave
		last := false
		switch {
		case leaving:
			in.leave = false
			data = frame.Token(frame.Leaving, 0, 0)
		case len(in.pending) == 0 && in.count > 0:
			in.seal()
			fallthrough
		case len(in.pending) > 0:
			data = in.pending[0]
			in.pending[0] = nil
			in.pending = in.pending[1:]
			in.size -= len(data)
			written = data
			in.space.Broadcast()
		case in.last:
			last = true
		default:
			in.idle = true
		}
		in.results.Unlock()
		switch {
		case data != nil:
			if in.conn.Write(ctx, data) != nil {
				_ = in.conn.Close(1001, "a write failed") // ends read, which reports the error
				return
			}
		case last:
			_ = in.conn.Close(1000, "") // ends read
			return
		default:
			select {
			case <-in.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// stop ends the runners after the connection was lost. Running functions see the end of their contexts.
func (in *instance) stop() {
	in.results.Lock()
	in.last = true
	in.space.Broadcast() // first: goAway may wait for space while it holds the tasks
	in.results.Unlock()
	in.tasks.Lock()
	defer in.tasks.Unlock()
	in.closed = true
	in.quitOnce()
}

// read handles the frames of the broker until the connection ends.
func (in *instance) read(ctx context.Context) error {
	var problem *fanfare.Error
	for {
		data, err := in.conn.Read(ctx)
		if err != nil {
			return stream.Closed(err, problem)
		}
		h, payload, err := frame.Parse(data)
		if err == nil {
			switch h.Type {
			case frame.Tasks:
				err = in.queue(h, data, payload)
			case frame.Cancel:
				err = in.cancel(h, payload)
			case frame.Drain:
				in.goAway()
			case frame.Problem:
				problem = stream.Problem(payload)
			default: // of a newer server
			}
		}
		if err != nil {
			return stream.Break(in.conn, err)
		}
	}
}

// queue takes the tasks of a frame.
func (in *instance) queue(h frame.Header, data, payload []byte) error {
	if h.Count == 0 {
		return nil
	}
	rest := payload
	var t frame.Task
	for range h.Count {
		var err error
		if rest, err = frame.NextTask(rest, &t); err != nil {
			return err
		}
	}
	in.tasks.Lock()
	defer in.tasks.Unlock()
	in.frames = append(in.frames, &records{count: h.Count, data: payload, arrived: time.Now(), frame: data})
	switch {
	case in.leaving:
		in.giveBack()
	case h.Count == 1:
		in.more.Signal()
	default:
		in.more.Broadcast()
	}
	return nil
}

// cancel ends the contexts of tasks, and keeps those from starting that wait.
func (in *instance) cancel(h frame.Header, tags []byte) error {
	if len(tags) < 8*int(h.Count) {
		return errors.New("a cancel frame is too short for its number of tags")
	}
	in.tasks.Lock()
	defer in.tasks.Unlock()
	for i := range int(h.Count) {
		tag := binary.LittleEndian.Uint64(tags[8*i:])
		if in.waits(tag) {
			in.dropped[tag] = true
			continue
		}
		for _, r := range in.runners {
			if r.busy && r.tag == tag {
				r.ctx.cancel(context.Canceled)
			}
		}
	}
	return nil
}

// waits reports whether a task is queued.
func (in *instance) waits(tag uint64) bool {
	var t frame.Task
	among := func(rest []byte, count uint32) bool {
		for range count {
			rest, _ = frame.NextTask(rest, &t) // queue has checked the frame
			if t.Tag == tag {
				return true
			}
		}
		return false
	}
	if among(in.rest, in.left) {
		return true
	}
	for _, f := range in.frames {
		if among(f.data, f.count) {
			return true
		}
	}
	return false
}
