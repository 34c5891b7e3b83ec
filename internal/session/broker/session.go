package broker

import (
	"cmp"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
)

// The limits of the queue of a session in memory. An interactive session stops its clients there; the further requests of a
// durable session stay in the log until the queue is short.
const (
	maxQueuedRequests = 65_536
	maxQueuedBytes    = 64 << 20
)

// An openSession is a session that is open. The mutex of its pool guards it, except for what never changes.
type openSession struct {
	p       *pool
	id      string
	record  session.Record // its Options, Service, Number and Epoch never change
	durable bool
	gone    bool // ended, or given up

	clients    map[string]*client
	nextClient uint32
	connected  int // clients
	idleSince  int64
	ids        map[idHash]contentHash // of requests with an id; nil: not read from the log yet
	reading    chan struct{}          // closed when ids have been read

	// Dispatch.
	ready         list[*client, client] // clients that have requests to dispatch
	linked        links[*openSession]   // in its level
	blocked       bool                  // none of its instances has capacity, and it may use no other one
	uses          map[*instance]int     // tasks by instance, if the number of instances is limited
	touched       bool                  // its queue became shorter: the windows of its clients may rise
	queuedRecords int                   // in the queues in memory
	queuedBytes   int64

	accepted, numbered           uint64 // sums over the clients
	running                      int64
	faults, resends, lateResults uint64

	traces    []session.Trace // the last ones, a ring
	nextTrace int
}

func newSession(p *pool, record session.Record) *openSession {
	s := &openSession{p: p, id: ID(record.Number), record: record, durable: record.Options.Kind == session.Durable, clients: map[string]*client{}, idleSince: p.b.now()}
	if record.Options.MaxInstances > 0 {
		s.uses = map[*instance]int{}
	}
	return s
}

// atMostOnce reports whether a request may be dispatched only once.
func (s *openSession) atMostOnce() bool { return s.record.Options.Resends == 0 }

// outstanding is the number of requests without a response.
func (s *openSession) outstanding() int64 { return int64(s.accepted) - int64(s.numbered) } // #nosec G115 -- both are counters

// client returns the client with a name, and creates it.
func (s *openSession) client(name string) (*client, error) {
	if c := s.clients[name]; c != nil {
		return c, nil
	}
	if len(s.clients) >= maxClients {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the session already has the maximum of %d clients", maxClients),
			Hint: "close clients that are no longer needed, or open another session"}
	}
	s.nextClient++
	c := newClient(s, s.nextClient, name)
	s.clients[name] = c
	if s.durable {
		c.changed = true
		c.soil()
	}
	return c, nil
}

func noClient(s, name string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("session %s has no client %q", s, name),
		Hint: "`fanfare session get " + s + "` lists its clients"}
}

// info describes the session. The mutex of the pool is held.
func (s *openSession) info() session.Info {
	info := session.Info{Record: s.record, ID: s.id, Running: s.running, Queued: s.outstanding() - s.running,
		Faults: s.faults, Resends: s.resends, LateResults: s.lateResults, Instances: len(s.uses)}
	for _, c := range s.clients {
		r := c.record()
		info.Clients = append(info.Clients, session.ClientInfo{ClientRecord: r, Connected: c.conn != nil, Queued: int64(c.accepted) - int64(c.numbered) - int64(c.running)}) // #nosec G115 -- counters
		info.Requests += r.Accepted
		info.Responses += r.Responses
	}
	slices.SortFunc(info.Clients, func(x, y session.ClientInfo) int { return cmp.Compare(x.Number, y.Number) })
	if s.uses == nil && s.running > 0 {
		for _, i := range s.p.instances {
			if i.worksFor(s) {
				info.Instances++
			}
		}
	}
	return info
}

// A list is a doubly linked list whose elements hold the links: adding and removing need no allocation.
type list[P interface {
	*E
	links() *links[P]
}, E any] struct {
	first, last P
	n           int
}

type links[P any] struct {
	prev, next P
	in         bool
}

func (l *list[P, E]) add(e P) {
	k := e.links()
	k.in, k.prev, k.next = true, l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.links().next = e
	}
	l.last = e
	l.n++
}

func (l *list[P, E]) remove(e P) {
	k := e.links()
	if k.prev == nil {
		l.first = k.next
	} else {
		k.prev.links().next = k.next
	}
	if k.next == nil {
		l.last = k.prev
	} else {
		k.next.links().prev = k.prev
	}
	*k = links[P]{}
	l.n--
}

// rotate moves the first element to the end.
func (l *list[P, E]) rotate() {
	if l.first != l.last {
		e := l.first
		l.remove(e)
		l.add(e)
	}
}
