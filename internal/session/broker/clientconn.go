package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// The limits of a connection of a client.
const (
	maxSent          = 16_384 // responses that it has not confirmed
	maxSentBytes     = 8 << 20
	maxBarriers      = 1024
	takeBytes        = 1 << 20   // of responses that are sent at once
	hardQueuedBytes  = 256 << 20 // of a session, at which its clients are not read
	exceptionsAtOnce = 1024
	maxTold          = 4096 // exceptions that are sent again to a process whose connection broke
)

var clientName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// A clientConn is the connection of a client.
type clientConn struct {
	link
	c         *client
	accepted  uint64 // the last number that was told
	windowDue bool
	barriers  []barrier
	cursor    uint64 // number of the last response that was taken
	confirmed uint64 // number of the last response that was confirmed on this connection
	sent      []sentChunk
	writing   []*chunk // their frames are with the writer
	sentBytes int
	done      bool // the frame Done was sent
}

type sentChunk struct {
	last  uint64
	bytes int
}

// A barrier is a flush or an end that waits until requests are kept.
type barrier struct {
	end   bool
	token uint64
	at    uint64 // number of the last request before it
}

// ServeClient serves the connection of a client, which continues at a position, until it ends. An error means that the client was refused; the peer has received it as a problem.
func (b *Broker) ServeClient(ctx context.Context, conn session.Conn, service, id, name string, at session.Position) error {
	if !b.enter() {
		return b.reject(ctx, conn, frame.Closed, errStopping, session.CloseGoingAway)
	}
	defer b.conns.Done()
	s, record, err := b.find(service, id)
	if err == nil && record != nil {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("session %s has ended: %s", id, cmp.Or(record.Reason, string(record.State))), Hint: "open a new session"}
	}
	if err == nil && !clientName.MatchString(name) {
		err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/client", Message: fmt.Sprintf("the client name %q is invalid", name),
			Hint: "use 1 to 64 letters, digits, hyphens, underscores and dots"}
	}
	if err == nil && s.durable {
		if err = s.readIDs(ctx); err != nil {
			b.Logger.Warn("cannot read the ids of the requests of a session; the client connects again", "session", s.id, "client", name, "error", err)
			err = &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("the requests of session %s could not be read from the database", id), Hint: "try again in a moment", RetryAfter: time.Second}
		}
	}
	var cc *clientConn
	if err == nil {
		cc, err = s.connect(conn, name, at)
	}
	if err != nil {
		return b.reject(ctx, conn, frame.Closed, err, refusalCode(err, session.CloseEnded))
	}
	b.serve(ctx, &cc.link, func(f []byte) { cc.handle(ctx, f) }, cc.take, &s.p.mu)
	s.disconnect(cc)
	return nil
}

func (s *openSession) connect(conn session.Conn, name string, at session.Position) (*clientConn, error) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.b.stops():
		return nil, errStopping
	case s.gone && s.record.State == session.Open:
		return nil, errMoved
	case s.gone:
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("session %s has ended", s.id), Hint: "open a new session"}
	}
	c, err := s.client(name)
	if err != nil {
		return nil, err
	}
	if c.conn != nil {
		p.close(&c.conn.link, session.CloseReplaced, "a newer connection has the same name")
		s.connected--
	}
	s.connected++
	cc := &clientConn{link: newLink(conn), c: c, accepted: c.kept}
	c.conn = cc
	first := uint64(1)
	if !s.durable {
		first = c.numbered + 1
		if len(c.chunks.list) > 0 {
			first = c.chunks.list[0].first
		}
	}
	from := min(max(cmp.Or(at.From, c.received+1), first), c.responses+1)
	if at.Again {
		c.tellAgain(at.Accepted)
	}
	cc.cursor, cc.confirmed = from-1, from-1
	c.window = c.requests + c.allowance()
	w := frame.ClientWelcome{Session: s.id, Client: name, Kind: string(s.record.Options.Kind), Requests: c.kept, Accepted: c.keptAccepted, Responses: c.responses,
		FirstResponse: first, From: from, Ended: c.keptEnded, Window: c.window, MessageLimit: p.def.MessageLimit, Heartbeat: heartbeatSeconds}
	welcome, _ := json.Marshal(w) // strings and numbers
	cc.control = append(cc.control, frame.JSON(frame.Welcome, welcome))
	p.wake(&cc.link)
	p.finish()
	return cc, nil
}

func (s *openSession) disconnect(cc *clientConn) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if cc.c.conn == cc {
		cc.c.conn = nil
		s.connected--
		s.idleSince = s.p.b.now()
		if s.durable {
			cc.c.chunks = chunks{}
		}
		for _, c := range s.clients {
			c.raiseWindow()
		}
	}
	s.p.finish()
}

// handle handles a frame of the client.
func (cc *clientConn) handle(ctx context.Context, b []byte) {
	c := cc.c
	s, p := c.s, c.s.p
	purge := false
	h, payload, err := frame.Parse(b)
	p.mu.Lock()
	if cc.closing != 0 || c.conn != cc {
		p.mu.Unlock()
		return
	}
	if err == nil {
		switch h.Type {
		case frame.Requests:
			err = c.takeIn(b, h.First, h.Count, payload, p.b.now())
		case frame.Flush:
			cc.barriers = append(cc.barriers, barrier{token: h.First, at: c.requests})
		case frame.End:
			if refusal := c.end(h.First); refusal != nil {
				cc.control = append(cc.control, frame.JSON(frame.Problem, document(refusal)))
			} else {
				cc.barriers = append(cc.barriers, barrier{end: true, at: c.requests})
			}
		case frame.Received:
			err = cc.received(h.First)
		case frame.Close:
			purge = h.Count == 1
			if !purge {
				p.close(&cc.link, session.CloseNormal, "")
			}
		default:
			err = violation("/type", "a client must not send a frame of type %d", h.Type)
		}
		if len(cc.barriers) > maxBarriers {
			err = violation("", "the client has %d unanswered calls of flush and end", len(cc.barriers))
		}
	}
	if err != nil {
		p.refuse(&cc.link, frame.Problem, invalidFrame(err), session.CloseInvalid)
	}
	p.touch(s)
	p.wake(&cc.link)
	p.dispatch(p.b.now())
	over := s.queuedBytes > hardQueuedBytes && c.linked.in
	p.finish()
	p.mu.Unlock()
	if purge {
		p.b.purgeClient(ctx, cc)
	}
	// A client whose requests became much larger than the window assumed must wait until some have left. A client that does not
	// confirm its responses is not in turn, and is read.
	for over && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
		p.mu.Lock()
		over = s.queuedBytes > hardQueuedBytes && c.linked.in && !s.gone && cc.closing == 0
		p.mu.Unlock()
	}
}

// received handles a confirmation.
func (cc *clientConn) received(last uint64) error {
	if last > cc.cursor {
		return violation("/first", "the client confirmed response %d, but the last response that was sent is %d", last, cc.cursor)
	}
	cc.confirmed = max(cc.confirmed, last)
	n := 0
	for n < len(cc.sent) && cc.sent[n].last <= last {
		cc.sentBytes -= cc.sent[n].bytes
		n++
	}
	cc.sent = cc.sent[n:]
	cc.c.confirm(last)
	return nil
}

// purgeClient removes the data of a client and the client.
func (b *Broker) purgeClient(ctx context.Context, cc *clientConn) {
	c := cc.c
	s, p := c.s, c.s.p
	p.mu.Lock()
	if !c.gone {
		p.dropClient(c)
		s.accepted -= c.accepted
		s.numbered -= c.numbered
		delete(s.clients, c.name)
		p.dispatch(b.now())
		p.finish()
	}
	p.mu.Unlock()
	var err error
	if s.durable {
		if err = b.committer.pause(ctx); err == nil {
			err = b.Log.PurgeClient(ctx, s.record.Number, c.number)
			b.committer.resume()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		b.Logger.Error("cannot remove the data of a client", "session", s.id, "client", c.name, "error", err)
		p.refuse(&cc.link, frame.Problem, &fanfare.Error{Code: fanfare.Unavailable, Message: "the data of the client could not be removed", Hint: "close the session with the option purge, which also removes the data of its clients"}, session.CloseNormal)
	}
	p.close(&cc.link, session.CloseNormal, "")
	p.finish()
}

// take returns the frames that are to be sent. It is called by the writer only.
func (cc *clientConn) take(ctx context.Context) ([][]byte, bool, error) {
	c := cc.c
	p := c.s.p
	p.mu.Lock()
	cc.wrote()
	out := cc.control
	cc.control = nil
	if c.conn != cc || cc.closing != 0 {
		p.mu.Unlock()
		return out, false, nil
	}
	out = cc.answers(out)
	out, more := cc.takeResponses(out)
	feed := !more && c.s.durable && cc.cursor < c.responses && cc.mayReceive()
	if c.keptEnded && cc.cursor == c.responses && c.responses == c.keptAccepted && !cc.done {
		cc.done = true
		out = append(out, frame.Token(frame.Done, 0, c.responses))
	}
	cursor := cc.cursor
	p.mu.Unlock()
	if !feed {
		return out, more, nil
	}
	return cc.feed(ctx, out, cursor)
}

// wrote notes that the writer has sent what it took.
func (cc *clientConn) wrote() {
	for _, k := range cc.writing {
		k.writers--
		k.recycle()
	}
	clear(cc.writing)
	cc.writing = cc.writing[:0]
}

// answers adds the frames that answer the client, except for its responses.
func (cc *clientConn) answers(out [][]byte) [][]byte {
	c := cc.c
	for n := 0; ; n = 0 {
		var exceptions []byte
		for n < len(c.exceptions) && n < exceptionsAtOnce && c.exceptions[n].Number <= c.kept {
			exceptions = frame.AppendException(exceptions, &c.exceptions[n])
			n++
		}
		if n == 0 && cc.accepted == c.kept {
			break
		}
		kept := c.kept
		if n == exceptionsAtOnce && n < len(c.exceptions) {
			kept = min(kept, c.exceptions[n-1].Number)
		}
		cc.accepted = kept
		b := frame.AppendHeader(make([]byte, 0, frame.HeaderSize+len(exceptions)), frame.Header{Type: frame.Accepted, Count: uint32(n), First: kept}) // #nosec G115 -- at most exceptionsAtOnce
		out = append(out, append(b, exceptions...))
		c.tell(n)
	}
	n := 0
	for _, f := range cc.barriers {
		if f.at > c.kept || f.end && !c.keptEnded {
			break
		}
		n++
		if f.end {
			out = append(out, frame.Token(frame.Ended, 0, c.keptAccepted))
			continue
		}
		b := frame.Token(frame.Flushed, 0, f.token)
		out = append(out, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, c.kept), c.keptAccepted))
	}
	cc.barriers = cc.barriers[n:]
	if cc.windowDue {
		cc.windowDue = false
		out = append(out, frame.Token(frame.Window, 0, c.window))
	}
	return out
}

// mayReceive reports whether the client has confirmed enough to receive more.
func (cc *clientConn) mayReceive() bool {
	return cc.cursor-cc.confirmed < maxSent && cc.sentBytes < maxSentBytes
}

// took notes a frame of responses that is sent.
func (cc *clientConn) took(last uint64, bytes int) {
	cc.cursor = last
	cc.sentBytes += bytes
	cc.sent = append(cc.sent, sentChunk{last, bytes})
}

// takeResponses takes responses from memory.
func (cc *clientConn) takeResponses(out [][]byte) ([][]byte, bool) {
	c, bytes := cc.c, 0
	for cc.cursor < c.responses && cc.mayReceive() {
		if bytes >= takeBytes {
			return out, true
		}
		k := c.chunks.at(cc.cursor + 1)
		if k == nil {
			break
		}
		k.seal()
		f := k.since(cc.cursor + 1)
		k.writers++
		cc.writing = append(cc.writing, k)
		cc.took(k.last(), len(f))
		bytes += len(f)
		out = append(out, f)
		if c.s.durable {
			c.chunks.removeTo(cc.cursor)
		}
	}
	return out, false
}

// feed adds responses that are not in memory any more.
func (cc *clientConn) feed(ctx context.Context, out [][]byte, cursor uint64) ([][]byte, bool, error) {
	c := cc.c
	p := c.s.p
	bytes, found := 0, false
	err := p.b.Log.Entries(ctx, c.s.record.Number, c.number, session.ResponseEntry, cursor+1, 0, func(e session.Entry) bool {
		f := cut(e.Data, e.First, e.Count, cursor+1)
		p.mu.Lock()
		defer p.mu.Unlock()
		last := e.First + uint64(e.Count) - 1
		if last > c.responses || !cc.mayReceive() || bytes >= takeBytes {
			return false
		}
		found = true
		bytes += len(f)
		cc.took(last, len(f))
		cursor = last
		out = append(out, f)
		return true
	})
	if err != nil {
		if ctx.Err() == nil {
			p.b.Logger.Warn("cannot read the responses of a session; retrying in a second", "session", c.s.id, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(time.Second):
		}
		return out, true, nil
	}
	if !found && bytes == 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		if cc.mayReceive() && cc.cursor < c.responses && c.chunks.at(cc.cursor+1) == nil {
			return out, false, fmt.Errorf("session %s, client %s: response %d is missing from the log", c.s.id, c.name, cc.cursor+1)
		}
	}
	return out, true, nil
}
