package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// The size of a read of requests from the log.
const (
	refillRequests = 16_384
	refillBytes    = 8 << 20
)

// restore takes over the sessions of the log.
func (b *Broker) restore(ctx context.Context) error {
	records, err := b.Log.Sessions(ctx, b.Clock.Now().Add(-endedRetention))
	if err != nil {
		return err
	}
	for _, r := range records {
		switch {
		case r.State != session.Open:
			b.remember(r)
		case r.Options.Kind != session.Durable:
			r.State, r.Reason, r.ClosedAt = session.Lost, "its broker stopped", b.Clock.Now()
			if err := b.Log.Update(ctx, &r); err != nil {
				return err
			}
			b.remember(r)
		default:
			if err := b.takeOver(ctx, r); err != nil {
				return fmt.Errorf("take over the session %s: %w", ID(r.Number), err)
			}
		}
	}
	return nil
}

// takeOver continues a durable session.
func (b *Broker) takeOver(ctx context.Context, r session.Record) (err error) {
	if r.Epoch, err = b.Log.TakeOver(ctx, r.Number); err != nil {
		return err
	}
	key := poolKey{r.Service, r.Options.Worker}
	p := b.pools[key]
	if p == nil {
		d, known := b.Definition(r.Service, r.Options.Worker)
		p = newPool(b, key, d)
		p.defined = known
		b.pools[key] = p
	}
	clients, err := b.Log.Clients(ctx, r.Number)
	if err != nil {
		return err
	}
	b.open[r.Service]++
	s := b.add(p, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, record := range clients {
		c := newClient(s, record.Number, record.Name)
		if err := c.restore(ctx, b.Log, &record); err != nil {
			return err
		}
		s.clients[c.name] = c
		s.nextClient = max(s.nextClient, c.number)
		s.accepted += c.accepted
		s.numbered += c.numbered
	}
	p.touch(s)
	p.finish()
	return nil
}

// restore sets the state of a client: its requests without its responses, and which of them were started or sent again.
func (c *client) restore(ctx context.Context, log session.Log, r *session.ClientRecord) error {
	c.requests, c.kept, c.accepted, c.keptAccepted = r.Requests, r.Requests, r.Accepted, r.Accepted
	c.numbered, c.responses, c.received = r.Responses, r.Responses, r.Received
	c.ended, c.keptEnded, c.usesIDs = r.Ended, r.Ended, r.IDs
	c.answered, c.loaded = restoredAnswered(r.Floor), r.Floor
	number := c.s.record.Number
	var broken error
	err := log.Entries(ctx, number, c.number, session.ResponseEntry, 1, r.Floor+1, func(e session.Entry) bool {
		records := e.Data
		for range e.Count {
			var one frame.Response
			if records, broken = frame.NextResponse(records, &one); broken != nil {
				return false
			}
			c.answered.add(one.Request)
		}
		return true
	})
	if err == nil {
		err = broken
	}
	if err != nil {
		return err
	}
	c.started, c.resent = map[uint64]struct{}{}, map[uint64]uint16{}
	err = log.Entries(ctx, number, c.number, session.StartedEntry, 1, r.Floor+1, func(e session.Entry) bool {
		for d := e.Data; len(d) >= 8; d = d[8:] {
			if n := binary.LittleEndian.Uint64(d); !c.answered.has(n) {
				c.started[n] = struct{}{}
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return log.Entries(ctx, number, c.number, session.ResendEntry, 1, r.Floor+1, func(e session.Entry) bool {
		for d := e.Data; len(d) >= 16; d = d[16:] {
			if n := binary.LittleEndian.Uint64(d); !c.answered.has(n) {
				c.resent[n] = max(c.resent[n], uint16(binary.LittleEndian.Uint64(d[8:]))) // #nosec G115 -- at most MaxResends
			}
		}
		return true
	})
}

// load puts the requests of an entry into the queue. Numbers between entries belong to requests that were repeated or refused.
func (c *client) load(e *session.Entry, now int64) {
	if e.First > c.loaded+1 {
		c.answered.addAll(c.loaded+1, e.First-1)
	}
	records := e.Data
	for n := e.First; n < e.First+uint64(e.Count); n++ {
		var one frame.Request
		rest, err := frame.NextRequest(records, &one)
		if err != nil {
			c.s.p.b.Logger.Error("cannot decode an entry of a session", "session", c.s.id, "client", c.name, "first", e.First, "error", err)
			break
		}
		r := request{record: records[: len(records)-len(rest) : len(records)-len(rest)], number: n, queued: now}
		records = rest
		if n <= c.loaded || c.answered.has(n) {
			continue
		}
		if k, was := c.resent[n]; was {
			delete(c.resent, n)
			r.extra = &extra{attempts: k, resends: k}
		}
		if _, was := c.started[n]; was {
			delete(c.started, n)
			if c.s.atMostOnce() {
				r.extra = &extra{attempts: 1}
				c.answer(&r, frame.Fault, fault("lost", "the broker stopped while an instance may have had the request; the session runs a request at most once"), now, nil)
				continue
			}
		}
		c.push(r)
	}
	c.loaded = max(c.loaded, e.High)
}

// refill reads requests from the log until the queue is long enough. At most one goroutine does so for a client.
func (c *client) refill() {
	s, p := c.s, c.s.p
	b := p.b
	for {
		p.mu.Lock()
		from, kept := c.loaded+1, c.kept
		if c.gone || from > kept || !s.hasCapacity() || b.ctx.Err() != nil {
			c.loading = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		var entries []session.Entry
		requests, bytes := 0, 0
		err := b.Log.Entries(b.ctx, s.record.Number, c.number, session.RequestEntry, from, from, func(e session.Entry) bool {
			if e.First > kept {
				return false
			}
			entries = append(entries, e)
			requests += int(e.Count)
			bytes += len(e.Data)
			return requests < refillRequests && bytes < refillBytes
		})
		if err != nil {
			if b.ctx.Err() == nil {
				b.Logger.Warn("cannot read the requests of a session; retrying in a second", "session", s.id, "error", err)
			}
			select {
			case <-b.ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		p.mu.Lock()
		if !c.gone {
			now := b.now()
			for i := range entries {
				c.load(&entries[i], now)
			}
			if len(entries) == 0 { // the rest were repeated or refused
				c.answered.addAll(c.loaded+1, kept)
				c.loaded = kept
			}
			c.ready()
			p.dispatch(now)
		}
		p.finish()
		p.mu.Unlock()
	}
}
