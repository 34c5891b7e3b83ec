package broker

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// The limits of a client.
const (
	maxUnconfirmed      = 65_536 // responses of an interactive session; then its requests wait
	maxUnconfirmedBytes = 64 << 20
	maxUncommitted      = 16_384 // requests of a durable session
	maxUncommittedBytes = 32 << 20
	maxRecentBytes      = 1 << 20 // responses of a durable session that are sent from memory
)

// A client is a stream of requests and one of responses. The mutex of its pool guards it.
type client struct {
	s      *openSession
	number uint32
	name   string
	conn   *clientConn // nil: not connected
	gone   bool

	// Requests. Kept ones are in the log, or were accepted by an interactive session.
	requests, accepted, kept, keptAccepted uint64
	ended, keptEnded                       bool
	usesIDs                                bool
	window                                 uint64            // number of the last request that it may send
	meanSize                               int               // of its requests
	exceptions                             []frame.Exception // to tell
	told                                   []frame.Exception // the last ones that were sent, in case that the connection broke before they arrived
	queue                                  queue
	linked                                 links[*client] // in openSession.ready

	// Of a durable session.
	loaded    uint64 // number of the last request that was put into the queue; the further ones are in the log
	loading   bool
	answered  answered
	started   map[uint64]struct{} // by another broker; the requests are not loaded yet
	resent    map[uint64]uint16   // likewise
	pending   pending
	dirty     bool // the committer knows that it has something to commit
	changed   bool // the record is not in the log
	confirmed bool // only Received has changed since

	// Responses. Numbered ones may not be kept yet; responses is the number of the last one that may be sent.
	numbered, responses, received uint64
	chunks                        chunks // interactive: since the last confirmed one; durable: those that are sent soon
	running                       int
}

func newClient(s *openSession, number uint32, name string) *client {
	return &client{s: s, number: number, name: name, meanSize: 1024, answered: restoredAnswered(0), chunks: chunks{recycled: !s.durable}}
}

func (c *client) links() *links[*client] { return &c.linked } //nolint:unused // a list calls it

func (c *client) record() session.ClientRecord {
	r := session.ClientRecord{Number: c.number, Name: c.name, Requests: c.requests, Accepted: c.accepted, Responses: c.numbered, Received: c.received,
		Floor: c.answered.floor, Ended: c.ended, IDs: c.usesIDs}
	if !c.s.durable {
		r.Floor = 0
	}
	return r
}

// dispatchable reports whether a request of the client may be dispatched. A client of an interactive session that does not
// confirm its responses waits, and only its own requests do.
func (c *client) dispatchable() bool {
	if c.queue.n == 0 || c.gone {
		return false
	}
	return c.s.durable || c.numbered-c.received+uint64(c.running) < maxUnconfirmed && c.chunks.bytes < maxUnconfirmedBytes // #nosec G115 -- not negative
}

// ready puts the client into the turn of its session, if it has something to dispatch.
func (c *client) ready() {
	if !c.linked.in && c.dispatchable() {
		c.s.ready.add(c)
		c.s.p.activate(c.s)
	}
}

func (c *client) unready() {
	if c.linked.in {
		c.s.ready.remove(c)
		if c.s.ready.n == 0 {
			c.s.p.deactivate(c.s)
		}
	}
}

// push adds a request at the end of the queue.
func (c *client) push(r request) {
	c.queue.pushBack(r)
	c.s.queuedRecords++
	c.s.queuedBytes += int64(len(r.record))
}

// giveBack puts a request back at the front of the queue.
func (c *client) giveBack(r request) {
	if c.gone {
		return
	}
	c.queue.pushFront(r)
	c.s.queuedRecords++
	c.s.queuedBytes += int64(len(r.record))
	c.ready()
}

// takeIn accepts a frame of requests, which belongs to the broker then.
func (c *client) takeIn(data []byte, first uint64, count uint32, records []byte, now int64) error {
	s := c.s
	used := &lease{frame: data, uses: 1}
	defer func() {
		if used.uses--; used.uses == 0 && !s.durable { // each request was sent before
			frame.Recycle(data)
		}
	}()
	switch {
	case first == 0:
		return violation("/first", "the number of the first request is 0: requests are numbered from 1")
	case first > c.requests+1:
		return violation("/first", "the number of the first request is %d, but must be %d", first, c.requests+1)
	case c.ended && first+uint64(count) > c.requests+1:
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the client sent request %d after it had ended its requests", c.requests+1), Hint: "use another client name to send more requests"}
	}
	if count > 0 {
		c.meanSize = max(len(records)/int(count), c.meanSize*7/8)
	}
	var run []byte // the records of accepted requests that follow each other
	var runFirst uint64
	var runCount uint32
	end := func() {
		if runCount > 0 {
			c.keep(runFirst, runCount, run)
			runCount = 0
		}
	}
	whole := records
	for n := first; n < first+uint64(count); n++ {
		var r frame.Request
		rest, err := frame.NextRequest(records, &r)
		if err != nil {
			return err
		}
		record := records[: len(records)-len(rest) : len(records)-len(rest)]
		records = rest
		if n <= c.requests { // it was sent before
			continue
		}
		if n > c.window {
			return violation("/first", "the client sent request %d, but its window ends at %d", n, c.window)
		}
		c.requests = n
		if e, is := c.check(n, &r); is {
			c.exceptions = append(c.exceptions, e)
			end()
			continue
		}
		c.accepted++
		s.accepted++
		s.p.totals.Requests++
		if !s.durable {
			c.push(request{record: record, number: n, queued: now, lease: used})
			used.uses++
			continue
		}
		if runCount == 0 {
			runFirst, run = n, whole[len(whole)-len(rest)-len(record):][:0]
		}
		run = run[:len(run)+len(record)] // the records are neighbours
		runCount++
	}
	if len(records) > 0 {
		return violation("", "%d bytes follow the last request", len(records))
	}
	if s.durable {
		end()
		c.changed = true
		c.soil()
		return nil
	}
	c.kept, c.keptAccepted = c.requests, c.accepted
	c.ready()
	return nil
}

// tell notes that the first n exceptions are sent.
func (c *client) tell(n int) {
	c.told = append(c.told, c.exceptions[:n]...)
	if len(c.told) > maxTold {
		c.told = slices.Clone(c.told[len(c.told)-maxTold:])
	}
	if c.exceptions = c.exceptions[n:]; len(c.exceptions) == 0 {
		c.exceptions = nil
	}
}

// tellAgain sends the exceptions after a number again.
func (c *client) tellAgain(after uint64) {
	n := len(c.told)
	for n > 0 && c.told[n-1].Number > after {
		n--
	}
	c.exceptions = slices.Concat(c.told[n:], c.exceptions)
	c.told = c.told[:n]
}

// keep adds accepted requests to the next commit.
func (c *client) keep(first uint64, count uint32, records []byte) {
	entries := c.pending.requests
	if n := len(entries); n > 0 {
		if e := &entries[n-1]; e.High+1 == first && len(e.Data)+len(records) <= chunkBytes/4 && e.Count+count <= frame.MaxRecords {
			e.Data = append(e.Data[:len(e.Data):len(e.Data)], records...)
			e.Count += count
			e.High += uint64(count)
			return
		}
	}
	c.pending.requests = append(entries, session.Entry{Session: c.s.record.Number, Client: c.number, Kind: session.RequestEntry,
		First: first, Count: count, High: first + uint64(count) - 1, Data: records})
}

// check returns the exception of a request that has no response.
func (c *client) check(number uint64, r *frame.Request) (frame.Exception, bool) {
	refuse := func(err *fanfare.Error) (frame.Exception, bool) {
		return frame.Exception{Number: number, Refused: true, Problem: document(err)}, true
	}
	limit := c.s.p.def.MessageLimit
	switch {
	case len(r.Body) > limit:
		return refuse(&fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the request has %d bytes; the message limit of worker %s is %d", len(r.Body), c.s.p.key.worker, limit),
			Hint: "send less data in a request, or raise `message_limit` of the worker"})
	case len(r.ID) > frame.MaxID:
		return refuse(&fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the id of the request has %d bytes; at most %d are allowed", len(r.ID), frame.MaxID), Hint: "use a shorter id"})
	case len(r.Action) > frame.MaxAction:
		return refuse(&fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the action of the request has %d bytes; at most %d are allowed", len(r.Action), frame.MaxAction), Hint: "use a shorter action"})
	case len(r.UserData) > frame.MaxUserData:
		return refuse(&fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the user data of the request has %d bytes; at most %d are allowed", len(r.UserData), frame.MaxUserData), Hint: "put data that the worker needs into the body"})
	case len(r.ID) == 0:
		return frame.Exception{}, false
	}
	c.usesIDs = true
	known, same := c.s.remember(r)
	switch {
	case !known:
		return frame.Exception{}, false
	case same:
		return frame.Exception{Number: number}, true
	}
	return refuse(&fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the session already has a request with the id %q and different content", r.ID),
		Hint: "use a new id for different content; to send the same request again, send the same action, user data and body"})
}

// An attempt is the one that a response ends.
type attempt struct {
	at       int64
	instance string
	outcome  string
}

// answer adds the response of a request. The last attempt is nil if it is in the history of the request, or if there was none.
func (c *client) answer(r *request, status frame.Status, body []byte, now int64, a *attempt) {
	if c.gone {
		return
	}
	s := c.s
	c.numbered++
	s.numbered++
	s.p.totals.Responses++
	if status == frame.Fault {
		s.faults++
		s.p.totals.Faults++
	}
	list := &c.chunks
	if s.durable {
		list = &c.pending.responses
	}
	id, data := r.id(), r.userData()
	size := frame.ResponseSize + len(id) + len(data) + len(body)
	k := list.tail(c.numbered, size)
	if list.recycled {
		k.frame = frame.Grow(k.frame, size)
	}
	k.frame = frame.AppendResponse(k.frame, &frame.Response{Request: r.number, ID: id, UserData: data, Body: body, Status: status,
		Last: c.ended && c.numbered == c.accepted, Attempts: r.attempt()})
	k.count++
	k.high = max(k.high, r.number)
	s.p.touch(s)
	if s.durable {
		c.answered.add(r.number)
		k.trace(r, now, status, a)
		c.changed = true
		c.soil()
		return
	}
	c.responses = c.numbered
	if status == frame.Fault || r.number%sampledEvery == 1 {
		s.sample(c, r, now, status, a)
	}
	if c.conn != nil {
		s.p.wake(&c.conn.link)
	}
}

// capacity is the number of requests of the client that may be in its queue, or wait for their commit.
func (c *client) capacity() int64 {
	size := int64(max(c.meanSize, 1))
	if c.s.durable {
		return min(maxUncommitted, max(maxUncommittedBytes/size, 1))
	}
	// The connected clients share the queue, so that a client whose requests wait does not stop the others.
	n := int64(max(c.s.connected, 1))
	return min(max(session.StopQueued/n, 1), max(maxQueuedBytes/n/size, 1))
}

// allowance is the number of further requests that the client may send.
func (c *client) allowance() uint64 {
	if c.ended || c.gone {
		return 0
	}
	used := max(int64(c.queue.n), c.queue.bytes/int64(max(c.meanSize, 1)))
	if c.s.durable {
		used = int64(c.requests - c.kept) // #nosec G115 -- a window at most
	}
	return uint64(max(0, c.capacity()-used)) // #nosec G115 -- not negative
}

// raiseWindow tells a connected client that it may send more, if that is at least a quarter of its capacity.
func (c *client) raiseWindow() {
	if c.conn == nil {
		return
	}
	if target := c.requests + c.allowance(); target > c.window && target-c.window >= uint64(max(c.capacity()/4, 1)) { // #nosec G115 -- positive
		c.window = target
		c.conn.windowDue = true
		c.s.p.wake(&c.conn.link)
	}
}

// end handles end(count).
func (c *client) end(count uint64) error {
	if count != c.accepted && count != math.MaxUint64 {
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the client expects %d accepted requests, but the broker has accepted %d", count, c.accepted),
			Hint: "compare the requests that were sent with the exceptions (repeated or refused requests are not accepted), then end again; the stream is still open"}
	}
	if !c.ended {
		c.ended = true
		if c.s.durable {
			c.changed = true
			c.soil()
		} else {
			c.keptEnded = true
		}
	}
	return nil
}

// confirm notes that the application has processed the responses up to a number.
func (c *client) confirm(last uint64) {
	if last <= c.received {
		return
	}
	c.received = last
	if c.s.durable {
		c.confirmed = true
		return
	}
	c.chunks.removeTo(last)
	c.ready()
}

// refillable are the clients of a durable session whose next requests are to be read from the log.
func (s *openSession) refillable() iter.Seq[*client] {
	return func(yield func(*client) bool) {
		if !s.durable || s.gone || s.p.b.ctx.Err() != nil {
			return
		}
		for _, c := range s.clients {
			if c.loaded < c.kept && !c.loading && c.queue.n < maxQueuedRequests/8 && s.hasCapacity() {
				c.loading = true
				if !yield(c) {
					return
				}
			}
		}
	}
}

// hasCapacity reports whether further requests of a durable session may be in memory.
func (s *openSession) hasCapacity() bool {
	return s.queuedRecords < maxQueuedRequests && s.queuedBytes < maxQueuedBytes
}
