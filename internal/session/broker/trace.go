package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// The bounds of traces. A durable session has a trace of each request; an interactive one of each fault and of one request in
// sampledEvery, and keeps the last ones.
const (
	sampledEvery      = 1000
	maxSampled        = 1000
	maxAttemptsTraced = 100
)

// outcomes are the codes of outcomes in a TraceEntry.
var outcomes = []string{"", "ok", "fault", "retry", "returned", "timeout", "lost"}

func statusOf(status frame.Status) string {
	if status == frame.Fault {
		return "fault"
	}
	return "ok"
}

// trace adds the trace of a request to the TraceEntry of a chunk: the number of the request, the time when it was queued, the
// time until it was answered, its status, and its attempts. Times are in microseconds.
func (k *chunk) trace(r *request, now int64, status frame.Status, a *attempt) {
	b := binary.AppendUvarint(k.traces, r.number)
	b = binary.AppendVarint(b, r.queued)
	b = binary.AppendVarint(b, now-r.queued)
	b = append(b, byte(status))
	var earlier []session.Dispatch
	if r.extra != nil {
		earlier = r.extra.dispatched
	}
	n := len(earlier)
	if a != nil {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n)) // #nosec G115 -- not negative
	for i := range earlier {
		b = k.attempt(b, micros(earlier[i].At)-r.queued, earlier[i].Instance, earlier[i].Outcome)
	}
	if a != nil {
		b = k.attempt(b, a.at-r.queued, a.instance, a.outcome)
	}
	k.traces = b
}

func (k *chunk) attempt(b []byte, after int64, instance, outcome string) []byte {
	b = binary.AppendVarint(b, after)
	b = append(b, byte(max(slices.Index(outcomes, outcome), 0))) // #nosec G115 -- a few
	if i := slices.Index(k.names, instance); i >= 0 {
		return binary.AppendUvarint(b, uint64(i)+1) // #nosec G115 -- not negative
	}
	k.names = append(k.names, instance)
	b = append(b, 0)
	b = binary.AppendUvarint(b, uint64(len(instance)))
	return append(b, instance...)
}

var errTrace = errors.New("cannot decode a trace")

// A traceReader decodes a TraceEntry.
type traceReader struct {
	b     []byte
	names []string
	err   error
}

func (d *traceReader) unsigned() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.err = nil, errTrace
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *traceReader) signed() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b, d.err = nil, errTrace
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *traceReader) code() byte {
	if len(d.b) == 0 {
		d.err = errTrace
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *traceReader) name() string {
	i := d.unsigned()
	if i > 0 {
		if i > uint64(len(d.names)) {
			d.err = errTrace
			return ""
		}
		return d.names[i-1]
	}
	n := d.unsigned()
	if n > uint64(len(d.b)) {
		d.err = errTrace
		return ""
	}
	name := string(d.b[:n])
	d.b = d.b[n:]
	d.names = append(d.names, name)
	return name
}

// next decodes a trace.
func (d *traceReader) next() session.Trace {
	t := session.Trace{Request: d.unsigned()}
	queued := d.signed()
	t.QueuedAt, t.AnsweredAt = time.UnixMicro(queued).UTC(), time.UnixMicro(queued+d.signed()).UTC()
	t.Status = statusOf(frame.Status(d.code()))
	for n := d.unsigned(); n > 0 && d.err == nil; n-- {
		one := session.Dispatch{At: time.UnixMicro(queued + d.signed()).UTC()}
		if code := int(d.code()); code < len(outcomes) {
			one.Outcome = outcomes[code]
		}
		one.Instance = d.name()
		t.Dispatched = append(t.Dispatched, one)
	}
	return t
}

// sample keeps the trace of a request of an interactive session.
func (s *openSession) sample(c *client, r *request, now int64, status frame.Status, a *attempt) {
	t := session.Trace{Client: c.name, Request: r.number, QueuedAt: time.UnixMicro(r.queued).UTC(), AnsweredAt: time.UnixMicro(now).UTC(), Status: statusOf(status), Response: c.numbered}
	if r.extra != nil {
		t.Dispatched = slices.Clone(r.extra.dispatched)
	}
	if a != nil {
		t.Dispatched = append(t.Dispatched, session.Dispatch{At: time.UnixMicro(a.at).UTC(), Instance: a.instance, Outcome: a.outcome})
	}
	if len(s.traces) < maxSampled {
		s.traces = append(s.traces, t)
		return
	}
	s.traces[s.nextTrace] = t
	s.nextTrace = (s.nextTrace + 1) % maxSampled
}

// Trace returns what happened to a request.
func (b *Broker) Trace(ctx context.Context, service, id, name string, number uint64) (session.Trace, error) {
	s, record, err := b.find(service, id)
	if err != nil {
		return session.Trace{}, err
	}
	if s == nil {
		c, err := b.storedClient(ctx, record, name)
		if err != nil {
			return session.Trace{}, err
		}
		return b.storedTrace(ctx, record.Number, c, id, number)
	}
	s.p.mu.Lock()
	c := s.clients[name]
	if c == nil {
		s.p.mu.Unlock()
		return session.Trace{}, noClient(s.id, name)
	}
	t, found := c.present(number)
	stored := c.record()
	s.p.mu.Unlock()
	switch {
	case found:
		return t, nil
	case number == 0 || number > stored.Requests:
		return session.Trace{}, noRequest(id, name, number, fmt.Sprintf("the last request from the client is number %d", stored.Requests))
	case s.durable:
		return b.storedTrace(ctx, s.record.Number, &stored, id, number)
	}
	return session.Trace{}, noRequest(id, name, number, fmt.Sprintf("an interactive session stores only the traces of faults and of one request in %d", sampledEvery))
}

func noRequest(id, name string, number uint64, hint string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("session %s has no trace of request %d from client %s", id, number, name), Hint: hint}
}

// present returns the trace of a request that waits or runs, or whose trace is in memory.
func (c *client) present(number uint64) (t session.Trace, found bool) {
	s := c.s
	begin := func(r *request, status string) {
		t = session.Trace{Client: c.name, Request: number, QueuedAt: time.UnixMicro(r.queued).UTC(), Status: status}
		if r.extra != nil {
			t.Dispatched = slices.Clone(r.extra.dispatched)
		}
		found = true
	}
	for _, one := range s.traces {
		if one.Client == c.name && one.Request == number {
			return one, true
		}
	}
	c.queue.each(func(r *request) {
		if r.number == number {
			begin(r, "queued")
		}
	})
	for _, i := range s.p.instances {
		for k := range i.slots {
			if one := &i.slots[k]; one.client == c && one.number == number {
				begin(&one.request, "running")
				if one.state == held {
					t.Status = "queued"
				} else {
					t.Dispatched = append(t.Dispatched, session.Dispatch{At: time.UnixMicro(one.at).UTC(), Instance: i.name})
				}
			}
		}
	}
	if !found && s.durable && number <= c.requests && !c.answered.has(number) {
		t, found = session.Trace{Client: c.name, Request: number, Status: "queued"}, true
	}
	return t, found
}

// storedClient returns a client of a session that has ended.
func (b *Broker) storedClient(ctx context.Context, record *session.Record, name string) (*session.ClientRecord, error) {
	if record.State == session.Purged || record.Options.Kind != session.Durable {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("session %s no longer has any data: its state is %s", ID(record.Number), record.State),
			Hint: "only durable sessions that have not been purged retain their responses"}
	}
	clients, err := b.Log.Clients(ctx, record.Number)
	if err != nil {
		return nil, err
	}
	for i := range clients {
		if clients[i].Name == name {
			return &clients[i], nil
		}
	}
	return nil, noClient(ID(record.Number), name)
}

// storedTrace returns a trace from the log.
func (b *Broker) storedTrace(ctx context.Context, number uint64, c *session.ClientRecord, id string, request uint64) (found session.Trace, err error) {
	var broken error
	err = b.Log.Entries(ctx, number, c.Number, session.TraceEntry, 1, request, func(e session.Entry) bool {
		d := traceReader{b: e.Data}
		for i := range e.Count {
			t := d.next()
			if broken = d.err; broken != nil {
				return false
			}
			if t.Request == request {
				found = t
				found.Client, found.Response = c.Name, e.First+uint64(i)
				return false
			}
		}
		return true
	})
	if err == nil {
		err = broken
	}
	if err == nil && found.Request == 0 {
		err = noRequest(id, c.Name, request, "the request was repeated or refused, or its response is not stored yet")
	}
	return found, err
}

// The bounds of a page.
const (
	defaultPage  = 1000
	maxPage      = 10_000
	maxPageBytes = 4 << 20
)

// Page returns responses of a client from a number on, at most as many as asked for.
func (b *Broker) Page(ctx context.Context, service, id, name string, from uint64, most int) (session.Page, error) {
	from = max(from, 1)
	if most <= 0 {
		most = defaultPage
	}
	most = min(most, maxPage)
	page := session.Page{First: from, Next: from}
	bytes := 0
	add := func(records []byte, first uint64, count uint32) (bool, error) {
		for n := first; n < first+uint64(count); n++ {
			var r frame.Response
			rest, err := frame.NextResponse(records, &r)
			if err != nil {
				return false, err
			}
			size := len(records) - len(rest)
			records = rest
			if n < from {
				continue
			}
			if len(page.Responses) >= most || len(page.Responses) > 0 && bytes+size > maxPageBytes {
				return false, nil
			}
			if len(page.Responses) == 0 {
				page.First = n
			}
			page.Responses = append(page.Responses, r)
			page.Next = n + 1
			bytes += size
		}
		return len(page.Responses) < most, nil
	}
	s, record, err := b.find(service, id)
	if err != nil {
		return page, err
	}
	var number uint64
	var stored *session.ClientRecord
	if s == nil {
		number = record.Number
		if stored, err = b.storedClient(ctx, record, name); err != nil {
			return page, err
		}
	} else {
		number = s.record.Number
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		c := s.clients[name]
		if c == nil {
			return page, noClient(s.id, name)
		}
		if !s.durable {
			for _, k := range c.chunks.list {
				more, err := add(k.frame[frame.HeaderSize:], k.first, k.count)
				if err != nil {
					return page, err
				}
				if !more {
					break
				}
			}
			for i := range page.Responses { // the memory of the chunks is used again
				r := &page.Responses[i]
				r.ID, r.UserData, r.Body = slices.Clone(r.ID), slices.Clone(r.UserData), slices.Clone(r.Body)
			}
			return page, nil
		}
		r := c.record()
		stored = &r
		s.p.mu.Unlock()
		defer s.p.mu.Lock()
	}
	var broken error
	err = b.Log.Entries(ctx, number, stored.Number, session.ResponseEntry, from, 0, func(e session.Entry) bool {
		var more bool
		more, broken = add(e.Data, e.First, e.Count)
		return more && broken == nil
	})
	if err == nil {
		err = broken
	}
	return page, err
}
