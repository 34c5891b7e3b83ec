package broker

import (
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// The bounds of the tasks at an instance.
const (
	maxInFlight      = 65_536
	maxInFlightBytes = 8 << 20 // of prefetched tasks
	maxAutoPrefetch  = 1024
	prefetchMicros   = 2000 // of work that an instance holds, if the prefetch is automatic
	turnScale        = 1 << 40
	tasksFrameBytes  = 256 << 10
)

// A level has the sessions of one priority that have requests to dispatch, in turn. A turn of a level with n sessions costs
// 1/(priority * n), and the level whose next turn starts first is served: so each session has a share in proportion to its
// priority, as with deficit round robin, but in steps of one task.
type level struct {
	priority uint64
	sessions list[*openSession, openSession]
	next     uint64 // start of its next turn
}

func (s *openSession) links() *links[*openSession] { return &s.linked } //nolint:unused // a list calls it

// activate adds a session that has something to dispatch.
func (p *pool) activate(s *openSession) {
	if s.linked.in || s.blocked || s.gone || s.ready.n == 0 {
		return
	}
	l := &p.levels[s.record.Options.Priority]
	if l.sessions.n == 0 {
		l.next = max(l.next, p.turn)
		p.active = append(p.active, l)
	}
	l.sessions.add(s)
}

func (p *pool) deactivate(s *openSession) {
	if !s.linked.in {
		return
	}
	l := &p.levels[s.record.Options.Priority]
	l.sessions.remove(s)
	if l.sessions.n == 0 {
		p.active = slices.DeleteFunc(p.active, func(x *level) bool { return x == l })
	}
}

// dispatch assigns requests to instances until there are no more of one of them.
func (p *pool) dispatch(now int64) {
	for len(p.free) > 0 && len(p.active) > 0 {
		l := p.active[0]
		for _, x := range p.active[1:] {
			if x.next < l.next {
				l = x
			}
		}
		s := l.sessions.first
		c := s.ready.first
		i := p.choose(s, c.queue.front())
		if i == nil {
			if len(p.free) > 0 { // it may not use the others
				s.blocked = true
				p.deactivate(s)
			}
			continue
		}
		p.turn = l.next
		l.next += turnScale / (l.priority * uint64(l.sessions.n)) // #nosec G115 -- positive
		r := c.queue.pop()
		s.queuedRecords--
		s.queuedBytes -= int64(len(r.record))
		p.touch(s)
		p.assign(i, c, r, now)
		if c.dispatchable() {
			s.ready.rotate()
		} else {
			c.unready()
		}
		if s.ready.n == 0 {
			p.deactivate(s)
		} else {
			l.sessions.rotate()
		}
	}
}

// choose returns the instance that gets a request of a session, or nil.
func (p *pool) choose(s *openSession, r *request) *instance {
	for len(p.free) > 0 && !p.free[0].available() {
		p.refresh(p.free[0])
	}
	if len(p.free) == 0 {
		return nil
	}
	best := p.free[0]
	var avoid *instance
	if r.extra != nil {
		avoid = r.extra.avoid
	}
	if s.uses != nil && len(s.uses) >= s.record.Options.MaxInstances {
		best = nil
		for i := range s.uses {
			if i.available() && (best == nil || best == avoid || i != avoid && i.before(best)) {
				best = i
			}
		}
		return best
	}
	if best == avoid {
		for _, i := range p.free[1:min(len(p.free), 3)] { // one of them is the second best
			if i.available() && (best == avoid || i.before(best)) {
				best = i
			}
		}
	}
	return best
}

// assign gives a request to an instance. If its started mark must be durable first, the task is held back.
func (p *pool) assign(i *instance, c *client, r request, now int64) {
	k, t := i.slot()
	*t = task{request: r, client: c, session: c.s, tag: i.nextTag(k), at: now}
	i.inFlight++
	i.bytes += int64(len(r.record))
	p.turns++
	i.turn = p.turns
	c.running++
	c.s.running++
	if c.s.uses != nil {
		c.s.uses[i]++
		i.limited[c.s]++
	}
	if c.s.durable && c.s.atMostOnce() && (r.extra == nil || !r.extra.marked) {
		t.state = held
		c.pending.marks = append(c.pending.marks, mark{request: r, instance: i, tag: t.tag})
		c.soil()
	} else {
		p.send(i, t, now)
	}
	p.refresh(i)
}

// send adds a task to the frame that the writer of the instance takes next.
func (p *pool) send(i *instance, t *task, now int64) {
	t.state = waiting
	t.at = now
	t.timeout = p.timeoutOf(&t.request)
	if e := t.extra; e != nil {
		e.attempts++
	}
	out := frame.Task{Tag: t.tag, Session: t.client.s.record.Number, Request: t.number, Client: t.client.number, Timeout: t.timeout,
		Attempt: t.attempt(), Action: t.action(), Body: t.body()}
	i.add(&out)
	i.order.push(t.tag)
	p.start(i, now)
	p.wake(&i.link)
}

// timeoutOf returns the timeout of a request in milliseconds.
func (p *pool) timeoutOf(r *request) uint32 {
	if ms := r.timeout(); ms > 0 {
		return ms
	}
	timeout := p.def.Timeout
	if len(p.def.Actions) > 0 {
		if a, known := p.def.Actions[string(r.action())]; known && a.Timeout > 0 {
			timeout = a.Timeout
		}
	}
	return uint32(min(timeout.Milliseconds(), 1<<31)) // #nosec G115 -- bounded
}

// start notes which tasks run: an instance runs the first ones that it received, as many as its capacity. The time of a task
// begins then, so that a prefetched task does not time out while it waits.
func (p *pool) start(i *instance, now int64) {
	for i.running < i.capacity && i.order.n > 0 {
		t := i.task(i.order.pop())
		if t == nil || t.state != waiting {
			continue
		}
		t.state = running
		i.running++
		if t.timeout > 0 {
			t.deadline = now + int64(t.timeout)*1000
			p.expect(t.deadline)
		}
	}
}

// expect makes the limit loop look at the tasks at a time.
func (p *pool) expect(deadline int64) {
	if p.deadline == 0 || deadline < p.deadline {
		p.deadline = deadline
		select {
		case p.b.sooner <- struct{}{}:
		default:
		}
	}
}

// prefetch is the number of further tasks per running one.
func (p *pool) prefetch() int {
	switch {
	case p.def.Prefetch > 0:
		return min(p.def.Prefetch, session.MaxPrefetch)
	case p.serviceUS <= 0:
		return 1
	}
	return min(max(int(prefetchMicros/max(p.serviceUS, 1)), 1), maxAutoPrefetch)
}

// measure includes the duration of tasks in the average.
func (p *pool) measure(total uint64, n int) {
	mean := max(float64(total)/float64(n), 0.5)
	if p.serviceUS == 0 {
		p.serviceUS = mean
		return
	}
	p.serviceUS += (mean - p.serviceUS) * min(float64(n), 64) / 256
}

// available reports whether an instance may get another task.
func (i *instance) available() bool {
	if i.draining || i.closed || i.skippedTo != 0 || i.closing != 0 {
		return false
	}
	if i.inFlight < i.capacity {
		return true
	}
	return i.inFlight < min(i.capacity*(1+i.p.prefetch()), maxInFlight) && i.bytes < maxInFlightBytes
}

// before reports whether an instance gets a task rather than another one: it has less to do for its capacity, or got its last
// task earlier.
func (i *instance) before(o *instance) bool {
	x, y := i.inFlight*o.capacity, o.inFlight*i.capacity
	return x < y || x == y && i.turn < o.turn
}

// refresh puts an instance into its place in the heap of those that are available, after its tasks have changed.
func (p *pool) refresh(i *instance) {
	switch available := i.available(); {
	case available && i.heap < 0:
		i.heap = len(p.free)
		p.free = append(p.free, i)
		p.up(i.heap)
		for s := range i.limited {
			p.unblock(s)
		}
	case available:
		p.up(i.heap)
		p.down(i.heap)
		for s := range i.limited {
			p.unblock(s)
		}
	case i.heap >= 0:
		k, last := i.heap, len(p.free)-1
		p.swap(k, last)
		p.free[last] = nil
		p.free = p.free[:last]
		i.heap = -1
		if k < last {
			p.up(k)
			p.down(k)
		}
	}
}

func (p *pool) unblock(s *openSession) {
	if s.blocked {
		s.blocked = false
		p.activate(s)
	}
}

func (p *pool) swap(x, y int) {
	p.free[x], p.free[y] = p.free[y], p.free[x]
	p.free[x].heap, p.free[y].heap = x, y
}

func (p *pool) up(k int) {
	for k > 0 && p.free[k].before(p.free[(k-1)/2]) {
		p.swap(k, (k-1)/2)
		k = (k - 1) / 2
	}
}

func (p *pool) down(k int) {
	for {
		least := k
		for child := 2*k + 1; child <= 2*k+2 && child < len(p.free); child++ {
			if p.free[child].before(p.free[least]) {
				least = child
			}
		}
		if least == k {
			return
		}
		p.swap(k, least)
		k = least
	}
}

// release frees the slot of a task.
func (p *pool) release(i *instance, t *task) {
	i.inFlight--
	i.bytes -= int64(len(t.record))
	if t.state == running || t.state == cancelled && t.started {
		i.running--
	}
	if s := t.session; s != nil && s.uses != nil {
		if s.uses[i]--; s.uses[i] <= 0 {
			delete(s.uses, i)
			p.unblock(s) // it may use another instance now
		}
		if i.limited[s]--; i.limited[s] <= 0 {
			delete(i.limited, s)
		}
	}
	k := uint32(t.tag & tagIndex) // #nosec G115 -- masked
	*t = task{}
	i.unused = append(i.unused, k)
}

// detach ends the connection between a task and its client.
func (t *task) detach() {
	if t.client != nil {
		t.client.running--
		t.client.s.running--
		t.client = nil
	}
}

// cancelGrace is how long a cancelled task keeps its place at an instance that does not answer: the instance probably still
// runs it.
const cancelGrace = 10 * time.Second

// cancel stops a task whose outcome does not matter any more.
func (p *pool) cancel(i *instance, t *task) {
	t.detach()
	if t.state == held {
		p.release(i, t)
		p.refresh(i)
		return
	}
	i.cancels = append(i.cancels, t.tag)
	t.started = t.state == running
	t.state = cancelled
	t.deadline = p.b.now() + cancelGrace.Microseconds()
	p.expect(t.deadline)
	p.wake(&i.link)
}
