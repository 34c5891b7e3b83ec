package broker

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/store/retry"
)

// The bounds of a group, and the pauses after an error of the log.
const (
	groupBytes  = 16 << 20
	firstPause  = 20 * time.Millisecond
	lastPause   = time.Second
	lastGroup   = 5 * time.Second // for what is pending when the broker stops
	markEpoch   = 32              // the bits below have a counter, those above the epoch
	sharedGroup = 0               // a group of several sessions
)

// pending is what a client has to commit.
type pending struct {
	requests  []session.Entry
	responses chunks
	marks     []mark
	resends   []request
}

// A mark is a task that is sent after its started mark is durable.
type mark struct {
	request  request
	instance *instance
	tag      uint64
}

// A committer collects the clients that have something to commit.
type committer struct {
	mu    sync.Mutex
	dirty []*client
	wake  chan struct{}
	round chan struct{} // held while a group is committed
	marks uint64        // entries of marks, in the round
}

func (k *committer) init() {
	k.wake, k.round = make(chan struct{}, 1), make(chan struct{}, 1)
}

// pause waits until no group is being committed, and keeps the committer from beginning one.
func (k *committer) pause(ctx context.Context) error {
	select {
	case k.round <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *committer) resume() { <-k.round }

// soil tells the committer that the client has something to commit. The mutex of the pool is held.
func (c *client) soil() {
	if c.dirty || c.gone {
		return
	}
	c.dirty = true
	k := &c.s.p.b.committer
	k.mu.Lock()
	k.dirty = append(k.dirty, c)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// A commit is the part of a client in a group.
type commit struct {
	c *client
	pending
	record session.ClientRecord
}

// commitLoop commits groups until the broker stops: each has all that is waiting when it begins. It then has a little time for
// the last groups. When that has passed it commits nothing more: a later group without an earlier one would leave a gap.
func (b *Broker) commitLoop() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	defer cancel()
	defer context.AfterFunc(b.ctx, func() { time.AfterFunc(lastGroup, cancel) })()
	for {
		select {
		case <-b.committer.wake:
			b.commitRound(ctx)
		case <-b.ctx.Done():
			b.commitRound(ctx)
			return
		}
	}
}

// commitRound commits what is waiting.
func (b *Broker) commitRound(ctx context.Context) {
	k := &b.committer
	if ctx.Err() != nil || k.pause(ctx) != nil {
		return
	}
	defer k.resume()
	k.mu.Lock()
	dirty := k.dirty
	k.dirty = nil
	k.mu.Unlock()
	for len(dirty) > 0 && ctx.Err() == nil {
		var group []commit
		for size := 0; len(dirty) > 0 && size < groupBytes; dirty = dirty[1:] {
			if one, bytes, found := dirty[0].collect(); found {
				group = append(group, one)
				size += bytes
			}
		}
		b.commitGroup(ctx, group, sharedGroup)
	}
}

// collect takes what a client has to commit.
func (c *client) collect() (commit, int, bool) {
	p := c.s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	one := commit{c: c, pending: c.pending, record: c.record()}
	work := c.changed || len(one.marks) > 0 || len(one.resends) > 0
	c.pending = pending{responses: chunks{size: one.responses.size}}
	c.dirty, c.changed, c.confirmed = false, false, false
	if n := len(one.responses.list); n > 0 {
		c.pending.responses.size = len(one.responses.list[n-1].frame)
	}
	size := one.responses.bytes
	for _, e := range one.requests {
		size += len(e.Data)
	}
	return one, size, work && !c.gone
}

// appendTo adds the rows of a client to a transaction.
func (m *commit) appendTo(a *session.Append, nextMark func() uint64) {
	s := m.c.s
	number := s.record.Number
	a.Epochs[number] = s.record.Epoch
	a.Clients = append(a.Clients, session.ClientUpdate{Session: number, Client: m.record})
	a.Entries = append(a.Entries, m.requests...)
	for _, k := range m.responses.list {
		e := session.Entry{Session: number, Client: m.c.number, Kind: session.ResponseEntry, First: k.first, Count: k.count, High: k.high, Data: k.seal()[frame.HeaderSize:]}
		a.Entries = append(a.Entries, e)
		e.Kind, e.Data = session.TraceEntry, k.traces
		a.Entries = append(a.Entries, e)
	}
	entry := func(kind session.EntryKind, count int, high uint64, data []byte) {
		a.Entries = append(a.Entries, session.Entry{Session: number, Client: m.c.number, Kind: kind, First: s.record.Epoch<<markEpoch + nextMark(),
			Count: uint32(count), High: high, Data: data}) // #nosec G115 -- tasks in flight
	}
	if len(m.marks) > 0 {
		var high uint64
		var data []byte
		for i := range m.marks {
			high = max(high, m.marks[i].request.number)
			data = binary.LittleEndian.AppendUint64(data, m.marks[i].request.number)
		}
		entry(session.StartedEntry, len(m.marks), high, data)
	}
	if len(m.resends) > 0 {
		var high uint64
		var data []byte
		for i := range m.resends {
			r := &m.resends[i]
			high = max(high, r.number)
			data = binary.LittleEndian.AppendUint64(data, r.number)
			data = binary.LittleEndian.AppendUint64(data, uint64(r.extra.resends))
		}
		entry(session.ResendEntry, len(m.resends), high, data)
	}
}

// commitGroup commits a group, however long the database is away. If one of its sessions has another broker, each session gets
// a group of its own. Only is the session of such a group.
func (b *Broker) commitGroup(ctx context.Context, group []commit, only uint64) {
	if len(group) == 0 {
		return
	}
	a := &session.Append{Epochs: map[uint64]uint64{}}
	for i := range group {
		group[i].appendTo(a, func() uint64 { b.committer.marks++; return b.committer.marks })
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := b.Log.Append(ctx, a)
		switch {
		case err == nil:
			b.complete(group)
			return
		case isFenced(err) && only != sharedGroup:
			b.fence(group[0].c.s)
			return
		case isFenced(err):
			sessions := map[uint64][]commit{}
			for _, m := range group {
				sessions[m.c.s.record.Number] = append(sessions[m.c.s.record.Number], m)
			}
			for number, part := range sessions {
				b.commitGroup(ctx, part, number)
			}
			return
		case ctx.Err() != nil:
			b.Logger.Warn("the last requests and responses of sessions were not stored; the clients and instances will repeat them", "error", err)
			return
		case retry.IsAway(err):
			b.Logger.Warn("sessions wait for the database", "error", err)
		default:
			b.Logger.Error("cannot write to the session log; durable sessions wait", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// complete continues with what a group has committed.
func (b *Broker) complete(group []commit) {
	now := b.now()
	for len(group) > 0 {
		p := group[0].c.s.p
		p.mu.Lock()
		for len(group) > 0 && group[0].c.s.p == p {
			p.committed(&group[0], now)
			group = group[1:]
		}
		p.dispatch(now)
		p.finish()
		p.mu.Unlock()
	}
}

// committed continues with a client: its requests may be dispatched, its responses sent, and its marked tasks leave.
func (p *pool) committed(m *commit, now int64) {
	c := m.c
	if c.gone {
		return
	}
	inMemory := c.loaded == c.kept && !c.loading
	c.kept, c.keptAccepted, c.keptEnded = m.record.Requests, m.record.Accepted, m.record.Ended
	for i := range m.requests {
		if inMemory = inMemory && c.s.hasCapacity(); inMemory {
			c.load(&m.requests[i], now)
		}
	}
	if inMemory && c.loaded < c.kept {
		c.answered.addAll(c.loaded+1, c.kept)
		c.loaded = c.kept
	}
	c.responses = m.record.Responses
	for _, k := range m.responses.list {
		c.hold(k)
	}
	for i := range m.marks {
		p.marked(c, &m.marks[i], now)
	}
	for i := len(m.resends) - 1; i >= 0; i-- {
		c.giveBack(m.resends[i])
	}
	c.ready()
	p.touch(c.s)
	if c.conn != nil {
		p.wake(&c.conn.link)
	}
}

// hold keeps responses in memory that are sent soon. A client that is behind reads them from the log.
func (c *client) hold(k *chunk) {
	if c.conn == nil || c.chunks.bytes > maxRecentBytes {
		return
	}
	next := c.conn.cursor + 1
	if n := len(c.chunks.list); n > 0 {
		next = c.chunks.list[n-1].last() + 1
	}
	if k.first != next {
		return
	}
	k.traces, k.names = nil, nil
	c.chunks.list = append(c.chunks.list, k)
	c.chunks.bytes += len(k.frame)
}

// marked sends a task whose started mark is durable. If its instance is gone, the task never left: it goes to another one.
func (p *pool) marked(c *client, m *mark, now int64) {
	e := &extra{}
	if m.request.extra != nil {
		e = m.request.extra
	}
	e.marked = true
	m.request.extra = e
	if t := m.instance.task(m.tag); t != nil && t.state == held && !m.instance.closed {
		t.extra = e
		p.send(m.instance, t, now)
		return
	}
	c.giveBack(m.request)
}
