package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A taskState is the state of a task.
type taskState uint8

const (
	unused    taskState = iota
	held                // its started mark is not durable yet
	waiting             // sent, but the instance is busy with earlier tasks
	running             // the instance runs it
	cancelled           // its result is dropped
)

// A task is an attempt of a request at an instance.
type task struct {
	request
	client   *client // nil: unused or cancelled
	session  *openSession
	tag      uint64 // generation << 20 | position
	at       int64  // when it was dispatched
	deadline int64  // 0: none
	timeout  uint32 // in milliseconds; 0: none
	state    taskState
	started  bool // it was running when it was cancelled
}

// tagIndex is the part of a tag that is the position of the task.
const tagIndex = 1<<20 - 1

// attempt returns the number of dispatches of a task that was sent.
func (r *request) attempt() uint16 {
	if r.extra == nil {
		return 1
	}
	return r.extra.attempts
}

// note adds an attempt to the history of a request that was sent.
func (t *task) note(instance, outcome string) {
	if t.extra == nil {
		t.extra = &extra{attempts: 1}
	}
	if len(t.extra.dispatched) < maxAttemptsTraced {
		t.extra.dispatched = append(t.extra.dispatched, session.Dispatch{At: time.UnixMicro(t.at).UTC(), Instance: instance, Outcome: outcome})
	}
}

// A tagQueue is a ring of tags.
type tagQueue struct {
	ring    []uint64
	head, n int
}

func (q *tagQueue) push(tag uint64) {
	if q.n == len(q.ring) {
		ring := make([]uint64, max(16, 2*q.n))
		k := copy(ring, q.ring[q.head:])
		copy(ring[k:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = tag
	q.n++
}

func (q *tagQueue) pop() uint64 {
	tag := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return tag
}

// An instance is one connected process of a worker.
type instance struct {
	link
	p           *pool
	name        string
	remote      string
	version     string // of the worker when it connected
	capacity    int
	connectedAt time.Time

	slots      []task
	unused     []uint32
	generation uint64
	inFlight   int
	running    int
	bytes      int64    // of the tasks in flight
	order      tagQueue // tasks that were sent and do not run yet
	limited    map[*openSession]int
	heap       int    // position in pool.free; -1: not there
	turn       uint64 // of its last task
	draining   bool
	drainedAt  int64
	left       bool // it said that it leaves
	closed     bool
	skippedTo  int64 // 0: not skipped

	tasks   [][]byte // frames that the writer takes
	counts  []uint32 // their records
	size    int      // of the last frame: the next one is expected to be as large
	cancels []uint64

	done, faults uint64
}

// slot returns an unused place for a task.
func (i *instance) slot() (uint32, *task) {
	if n := len(i.unused); n > 0 {
		k := i.unused[n-1]
		i.unused = i.unused[:n-1]
		return k, &i.slots[k]
	}
	i.slots = append(i.slots, task{})
	k := len(i.slots) - 1
	return uint32(k), &i.slots[k] // #nosec G115 -- at most maxInFlight
}

func (i *instance) nextTag(k uint32) uint64 {
	i.generation++
	return i.generation<<20 | uint64(k)
}

// task returns the task with a tag, or nil.
func (i *instance) task(tag uint64) *task {
	k := tag & tagIndex
	if k >= uint64(len(i.slots)) || i.slots[k].tag != tag {
		return nil
	}
	return &i.slots[k]
}

// worksFor reports whether the instance has a task of a session.
func (i *instance) worksFor(s *openSession) bool {
	for k := range i.slots {
		if c := i.slots[k].client; c != nil && c.s == s {
			return true
		}
	}
	return false
}

// add appends a task to the frame that is sent next.
func (i *instance) add(t *frame.Task) {
	size := frame.TaskSize + len(t.Action) + len(t.Body)
	n := len(i.tasks) - 1
	if n < 0 || len(i.tasks[n])+size > tasksFrameBytes || i.counts[n] == frame.MaxRecords {
		n++
		i.tasks = append(i.tasks, frame.Buffer(max(frame.HeaderSize+size, min(i.size+i.size/8, tasksFrameBytes)))[:frame.HeaderSize])
		i.counts = append(i.counts, 0)
	}
	i.tasks[n] = frame.AppendTask(frame.Grow(i.tasks[n], size), t)
	i.counts[n]++
}

// take returns the frames that are to be sent.
func (i *instance) take() [][]byte {
	out := i.control
	i.control = nil
	for k, b := range i.tasks {
		frame.SetHeader(b, frame.Header{Type: frame.Tasks, Count: i.counts[k]})
		i.size = len(b)
		out = append(out, b)
	}
	clear(i.tasks)
	i.tasks, i.counts = i.tasks[:0], i.counts[:0]
	for tags := range slices.Chunk(i.cancels, frame.MaxRecords) {
		b := frame.Token(frame.Cancel, uint32(len(tags)), 0) // #nosec G115 -- at most MaxRecords
		for _, tag := range tags {
			b = binary.LittleEndian.AppendUint64(b, tag)
		}
		out = append(out, b)
	}
	i.cancels = nil
	return out
}

// ServeInstance serves the connection of an instance until it ends. Capacity 0 is the concurrency of the worker. An error
// means that the instance was refused; the peer has received it as a problem.
func (b *Broker) ServeInstance(ctx context.Context, conn session.Conn, service, worker, name string, capacity int) error {
	p, err := b.pool(service, worker)
	if err != nil {
		return b.reject(ctx, conn, frame.Problem, err, session.CloseInvalid)
	}
	if !b.enter() {
		return b.reject(ctx, conn, frame.Problem, errStopping, session.CloseGoingAway)
	}
	defer b.conns.Done()
	i, err := p.connect(conn, name, capacity)
	if err != nil {
		return b.reject(ctx, conn, frame.Problem, err, refusalCode(err, session.CloseInvalid))
	}
	var sent [][]byte
	b.serve(ctx, &i.link, func(f []byte) { i.handle(f); frame.Recycle(f) }, func(context.Context) ([][]byte, bool, error) {
		for _, f := range sent {
			frame.Recycle(f)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		sent = i.take()
		return sent, false, nil
	}, &p.mu)
	p.disconnect(i)
	return nil
}

// connect registers an instance.
func (p *pool) connect(conn session.Conn, name string, capacity int) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.b.stops() {
		return nil, errStopping
	}
	if !p.defined {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service no longer has a worker %q", p.key.worker),
			Hint: "register the worker in the section `workers` of the configuration document, then apply the document"}
	}
	capacity = cmp.Or(capacity, p.def.Concurrency)
	if capacity < 1 || capacity > session.MaxConcurrency {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/capacity", Message: fmt.Sprintf("the capacity is %d, but must be between 1 and %d", capacity, session.MaxConcurrency),
			Hint: "set the number of tasks that the instance runs at the same time"}
	}
	if name == "" || len(name) > 128 {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/instance", Message: fmt.Sprintf("the name of the instance has %d bytes, but must have between 1 and 128", len(name)),
			Hint: "use the host name and the process id"}
	}
	old := p.instances[name]
	if old == nil && len(p.instances) >= maxInstances {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the worker has %d instances, the maximum", maxInstances), Hint: "stop other instances first"}
	}
	if old != nil {
		p.close(&old.link, session.CloseReplaced, "a newer connection has the same name")
		p.remove(old)
	}
	i := &instance{link: newLink(conn), p: p, name: name, capacity: capacity, version: p.def.Version, connectedAt: p.b.Clock.Now(), heap: -1, limited: map[*openSession]int{}}
	if r, is := conn.(interface{ Remote() string }); is {
		i.remote = r.Remote()
	}
	if s := p.skips[name]; s != nil {
		i.skippedTo = micros(i.connectedAt.Add(s.delay))
		p.expect(i.skippedTo)
	}
	welcome, _ := json.Marshal(frame.WorkerWelcome{Worker: p.key.worker, Instance: name, Capacity: capacity, MessageLimit: p.def.MessageLimit, Heartbeat: heartbeatSeconds}) // strings and numbers
	i.control = append(i.control, frame.JSON(frame.Welcome, welcome))
	p.instances[name] = i
	p.wake(&i.link)
	p.refresh(i)
	p.dispatch(p.b.now())
	p.finish()
	return i, nil
}

// The delays after a lost connection.
const (
	firstSkip = time.Second
	lastSkip  = time.Minute
)

// disconnect removes an instance whose connection has ended. It is skipped after it connects again, unless it left as intended.
func (p *pool) disconnect(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.instances[i.name] == i {
		if !i.left && !i.draining && i.closing == 0 {
			s := p.skips[i.name]
			if s == nil {
				s = &skip{delay: firstSkip / 2}
				p.skips[i.name] = s
			}
			s.delay, s.lost = min(2*s.delay, lastSkip), p.b.Clock.Now()
		}
		p.remove(i)
	}
	p.dispatch(p.b.now())
	p.finish()
}

// remove takes an instance out of the pool. Its tasks return to the front of their queues, in their order; a task of a session
// that runs requests at most once is answered with the fault lost.
func (p *pool) remove(i *instance) {
	if i.closed {
		return
	}
	i.closed = true
	if p.instances[i.name] == i {
		delete(p.instances, i.name)
	}
	p.refresh(i)
	var lost []*task
	for k := range i.slots {
		if i.slots[k].state != unused {
			lost = append(lost, &i.slots[k])
		}
	}
	slices.SortFunc(lost, func(x, y *task) int { return cmp.Compare(y.tag, x.tag) }) // the last one first
	now := p.b.now()
	for _, t := range lost {
		c, state := t.client, t.state
		if c != nil {
			switch {
			case state == held: // the completion of its mark returns the request
			case c.s.atMostOnce():
				t.note(i.name, "lost")
				c.answer(&t.request, frame.Fault, fault("lost", fmt.Sprintf("the connection to the instance %s was lost while it had the request; the session runs a request at most once", i.name)), now, nil)
			default:
				t.note(i.name, "lost")
				c.giveBack(t.request)
			}
		}
		t.detach()
		p.release(i, t)
	}
	i.tasks, i.counts, i.cancels = nil, nil, nil
}

// handle handles a frame of an instance. It does not keep the frame.
func (i *instance) handle(b []byte) {
	p := i.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if i.closed || i.closing != 0 {
		return
	}
	h, payload, err := frame.Parse(b)
	if err == nil {
		switch h.Type {
		case frame.Results:
			err = i.results(h.Count, payload)
		case frame.Leaving:
			i.left, i.draining = true, true
			p.refresh(i)
		default:
			err = violation("/type", "an instance must not send a frame of type %d", h.Type)
		}
	}
	if err != nil {
		p.refuse(&i.link, frame.Problem, invalidFrame(err), session.CloseInvalid)
		p.remove(i)
	}
	p.dispatch(p.b.now())
	p.finish()
}

// invalidFrame makes an error of a parser an error for users.
func invalidFrame(err error) error {
	if fanfare.CodeOf(err) != fanfare.Internal {
		return err
	}
	return violation("", "%s", err.Error())
}

// results handles results.
func (i *instance) results(count uint32, b []byte) error {
	p, now := i.p, i.p.b.now()
	var total uint64
	var measured int
	var returned []*task
	for range count {
		var r frame.Result
		rest, err := frame.NextResult(b, &r)
		if err != nil {
			return err
		}
		b = rest
		t := i.task(r.Tag)
		if t == nil || t.state == held || t.state == unused {
			p.totals.LateResults++
			continue
		}
		if t.state == cancelled {
			if t.session != nil {
				t.session.lateResults++
				p.totals.LateResults++
			}
			p.release(i, t)
			continue
		}
		c := t.client
		switch r.Status {
		case frame.OK, frame.Fault:
			if len(r.Body) > p.def.MessageLimit {
				r.Status, r.Body = frame.Fault, fault("too_large", fmt.Sprintf("the response has %d bytes; the limit of the worker is %d", len(r.Body), p.def.MessageLimit))
			}
			total += uint64(r.Micros)
			measured++
			i.done++
			outcome := "ok"
			if r.Status == frame.Fault {
				i.faults++
				outcome = "fault"
			}
			c.answer(&t.request, r.Status, r.Body, now, &attempt{t.at, i.name, outcome})
			t.free()
		case frame.Retry:
			i.done++
			i.faults++
			p.retry(i, t, "retry", r.Body, now)
		case frame.Returned:
			t.note(i.name, "returned")
			returned = append(returned, t)
			continue
		default:
			return violation("/status", "a result has the unknown status %d", r.Status)
		}
		t.detach()
		p.release(i, t)
	}
	slices.SortFunc(returned, func(x, y *task) int { return cmp.Compare(y.tag, x.tag) })
	for _, t := range returned {
		if t.client == nil || t.state == unused { // the instance returned it twice
			continue
		}
		t.client.giveBack(t.request)
		t.detach()
		p.release(i, t)
	}
	if len(b) > 0 {
		return violation("", "%d bytes follow the last result", len(b))
	}
	if measured > 0 {
		p.measure(total, measured)
		delete(p.skips, i.name)
	}
	p.start(i, now)
	p.refresh(i)
	return nil
}

// retry sends a request again, or makes its last fault the response. The caller releases the task.
func (p *pool) retry(i *instance, t *task, outcome string, lastFault []byte, now int64) {
	t.note(i.name, outcome)
	c := t.client
	if int(t.extra.resends) >= c.s.record.Options.Resends {
		c.answer(&t.request, frame.Fault, lastFault, now, nil)
		return
	}
	t.extra.resends++
	t.extra.avoid = i
	c.s.resends++
	c.s.p.totals.Resends++
	if c.s.durable {
		c.pending.resends = append(c.pending.resends, t.request)
		c.soil()
		return
	}
	c.giveBack(t.request)
}

// fault encodes the body of a fault of the broker.
func fault(code, message string) []byte {
	b, _ := json.Marshal(frame.FaultBody{Code: code, Message: message}) // two strings
	return b
}

// drain asks an instance to finish its tasks and to leave.
func (p *pool) drain(i *instance, why *fanfare.Error) {
	i.draining, i.drainedAt = true, p.b.now()
	i.control = append(i.control, frame.JSON(frame.Drain, document(why)))
	p.refresh(i)
	p.wake(&i.link)
}
