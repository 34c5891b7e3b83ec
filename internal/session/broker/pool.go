package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A pool has the sessions and the instances of one worker. Its mutex guards them all.
type pool struct {
	b   *Broker
	key poolKey

	mu        sync.Mutex
	def       session.Definition
	defined   bool // in the configuration
	sessions  map[uint64]*openSession
	instances map[string]*instance
	skips     map[string]*skip // by the name of an instance

	// Dispatch.
	levels    [session.MaxPriority + 1]level
	active    []*level // that have sessions
	turn      uint64   // the start of the last turn
	free      []*instance
	turns     uint64  // tasks that were dispatched
	serviceUS float64 // average duration of a task in microseconds; 0: unknown
	deadline  int64   // no task ends before; 0: no task has a deadline
	totals    session.Totals

	// Connections to wake and sessions to look at before the mutex is released.
	waking  []*link
	touched []*openSession

	demand demand
}

// A skip is the memory of lost connections of an instance.
type skip struct {
	delay time.Duration // after the next connection
	lost  time.Time
}

func newPool(b *Broker, key poolKey, d session.Definition) *pool {
	p := &pool{b: b, key: key, sessions: map[uint64]*openSession{}, instances: map[string]*instance{}, skips: map[string]*skip{}}
	for i := range p.levels {
		p.levels[i].priority = uint64(i) // #nosec G115 -- at most 100
	}
	p.define(d, true)
	return p
}

// define sets the definition.
func (p *pool) define(d session.Definition, known bool) {
	d.Concurrency = min(max(d.Concurrency, 1), session.MaxConcurrency)
	d.MessageLimit = min(cmp.Or(max(d.MessageLimit, 0), session.DefaultMessageLimit), session.MaxMessageLimit)
	p.def, p.defined = d, known
}

// A link is a connection, of a client or of an instance. Its writer sleeps until it is woken.
type link struct {
	conn    session.Conn
	wake    chan struct{}
	waking  bool
	control [][]byte // frames that are sent first
	closing int      // the code; 0: not closing
	reason  string
}

func newLink(conn session.Conn) link { return link{conn: conn, wake: make(chan struct{}, 1)} }

// wake wakes the writer of a connection when the mutex is released.
func (p *pool) wake(l *link) {
	if !l.waking {
		l.waking = true
		p.waking = append(p.waking, l)
	}
}

// close closes a connection after its writer has sent all that is pending.
func (p *pool) close(l *link, code int, reason string) {
	if l.closing == 0 {
		l.closing, l.reason = code, reason
		p.wake(l)
	}
}

// refuse sends a problem and closes the connection.
func (p *pool) refuse(l *link, t frame.Type, err error, code int) {
	if l.closing == 0 {
		l.control = append(l.control, frame.JSON(t, document(err)))
		p.close(l, code, short(err))
	}
}

// finish does what is due before the mutex is released.
func (p *pool) finish() {
	for _, s := range p.touched {
		s.touched = false
		for _, c := range s.clients {
			c.raiseWindow()
		}
		for c := range s.refillable() {
			p.b.loops.Go(c.refill)
		}
	}
	clear(p.touched)
	p.touched = p.touched[:0]
	for _, l := range p.waking {
		l.waking = false
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	clear(p.waking)
	p.waking = p.waking[:0]
}

// touch notes that the queue of a session became shorter.
func (p *pool) touch(s *openSession) {
	if !s.touched && !s.gone {
		s.touched = true
		p.touched = append(p.touched, s)
	}
}

// document encodes an error as a problem.
func document(err error) []byte {
	b, _ := json.Marshal(problem.Of(err, "")) // it has only strings and numbers
	return b
}

// short returns a reason for a close frame, which has at most 123 bytes.
func short(err error) string {
	text := err.Error()
	return text[:min(len(text), 120)]
}

// violation is the error of a peer that violated the protocol.
func violation(pointer, format string, args ...any) error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: fmt.Sprintf(format, args...),
		Hint: "docs/reference/session-protocol.md describes the frames; if you use a Fanfare library, report this as a bug"}
}

// drop removes a session and all that belongs to it.
func (p *pool) drop(s *openSession, code int) {
	s.gone = true
	p.deactivate(s)
	s.blocked = false
	for _, c := range s.clients {
		p.dropClient(c)
		if c.conn == nil {
			continue
		}
		if code == session.CloseEnded {
			p.refuse(&c.conn.link, frame.Closed, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("session %s has ended: %s", s.id, cmp.Or(s.record.Reason, "it was closed")),
				Hint: "open a new session; the responses of a durable session can still be read with `fanfare session responses`"}, code)
		} else {
			p.close(&c.conn.link, code, "connect again")
		}
	}
	delete(p.sessions, s.record.Number)
}

// dropClient removes the requests of a client, and cancels its tasks.
func (p *pool) dropClient(c *client) {
	c.gone = true
	c.unready()
	c.s.queuedRecords -= c.queue.n
	c.s.queuedBytes -= c.queue.bytes
	c.queue = queue{}
	for _, i := range p.instances {
		for k := range i.slots {
			if t := &i.slots[k]; t.client == c {
				p.cancel(i, t)
			}
		}
	}
	p.touch(c.s)
}

// Workers returns the workers of a service that have had a session or an instance, by name.
func (b *Broker) Workers(service string) []session.WorkerInfo {
	var infos []session.WorkerInfo
	for _, p := range b.allPools() {
		if p.key.service == service {
			infos = append(infos, p.info())
		}
	}
	slices.SortFunc(infos, func(x, y session.WorkerInfo) int { return cmp.Compare(x.Name, y.Name) })
	return infos
}

func (p *pool) info() session.WorkerInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := session.WorkerInfo{Definition: p.def, Sessions: len(p.sessions), Totals: p.totals}
	for _, s := range p.sessions {
		info.Running += s.running
		info.Queued += s.outstanding() - s.running
	}
	for _, i := range p.instances {
		n := session.InstanceInfo{Name: i.name, Remote: i.remote, ConnectedAt: i.connectedAt, Capacity: i.capacity, Running: i.inFlight,
			Draining: i.draining, Done: i.done, Faults: i.faults}
		if i.skippedTo > p.b.now() {
			n.SkippedTo = time.UnixMicro(i.skippedTo).UTC()
		}
		info.Instances = append(info.Instances, n)
	}
	slices.SortFunc(info.Instances, func(x, y session.InstanceInfo) int { return cmp.Compare(x.Name, y.Name) })
	return info
}
