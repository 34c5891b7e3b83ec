package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// A Copy is the matching index of a node that matches events for the leader.
type Copy struct {
	link    *link.Link
	index   *condition.Index
	logger  *slog.Logger
	running sync.WaitGroup
	slots   chan struct{} // one for each match that may run at the same time

	// The goroutine that reads frames uses these fields.
	changed map[fanfare.RowID]bool // subscriptions that were changed while the copy is filled; nil after that
	loaded  int
}

// Serve matches events for the leader at the other end of an authenticated connection, until the link or ctx ends.
func Serve(ctx context.Context, conn net.Conn, logger *slog.Logger) error {
	c := &Copy{index: condition.New(), logger: logger, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), changed: map[fanfare.RowID]bool{}}
	c.link = link.New(ctx, conn, 0)
	err := c.link.Run(c.handle)
	c.running.Wait()
	select {
	case <-ctx.Done(): // the end was requested
		return nil
	default:
		return err
	}
}

// handle handles a frame of the leader. A change is applied when it returns, so that it is in the hits of later events.
func (c *Copy) handle(f link.Frame) error {
	d := &link.Decoder{Rest: f.Payload}
	switch f.Kind {
	case kindDefine:
		return c.define(d)
	case kindAdd, kindLoad:
		return c.add(d, f.Kind == kindLoad)
	case kindRemove:
		key, place := readKey(d), fanfare.RowID(d.Uint())
		if d.Err == nil {
			c.note(place)
			c.index.Remove(key, place)
		}
		return d.Err
	case kindLoaded:
		c.changed = nil
		c.link.SendNow(kindReady, 0)
		c.logger.Info("this node has a copy of the matching index", "subscriptions", c.loaded)
		return nil
	case kindMatch:
		c.running.Go(func() { c.match(f) })
		return nil
	}
	return link.ErrPayload
}

func (c *Copy) define(d *link.Decoder) error {
	key, text := readKey(d), d.Bytes()
	if d.Err != nil {
		return d.Err
	}
	var def condition.Definition
	if err := json.Unmarshal(text, &def); err != nil {
		return fmt.Errorf("the definition of topic %s/%s: %w", key.Service, key.Topic, err)
	}
	return c.index.Define(key, def)
}

// note notes that a change has mentioned a subscription.
func (c *Copy) note(place fanfare.RowID) {
	if c.changed != nil {
		c.changed[place] = true
	}
}

// add adds subscriptions. Those that were stored are ignored if a change has mentioned them.
func (c *Copy) add(d *link.Decoder, stored bool) error {
	key, n := readKey(d), d.Uint()
	if n > uint64(len(d.Rest)) {
		d.Fail()
	}
	if d.Err != nil {
		return d.Err
	}
	entries := make([]condition.Entry, 0, n)
	for range n {
		e := readEntry(d)
		if d.Err != nil {
			return d.Err
		}
		if stored && c.changed[e.Place] {
			continue
		}
		if !stored {
			c.note(e.Place)
		}
		entries = append(entries, e)
	}
	c.loaded += len(entries)
	err := c.index.Add(key, entries)
	if !stored || fanfare.CodeOf(err) != fanfare.Invalid && fanfare.CodeOf(err) != fanfare.NotFound {
		return err
	}
	for i := range entries { // the leader leaves out what its version rejects, too
		if err := c.index.Add(key, entries[i:i+1]); err != nil && fanfare.CodeOf(err) != fanfare.Invalid && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
	}
	return nil
}

// maxReply is the number of bytes of a reply after which no further event is matched. One event can have millions of hits.
const maxReply = 32 << 20

// match matches the events of a request, and replies.
func (c *Copy) match(f link.Frame) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	d := &link.Decoder{Rest: f.Payload}
	key, n := readKey(d), d.Uint()
	var reply []byte
	var hits []fanfare.Hit
	for i := uint64(0); i < n && d.Err == nil; i++ {
		event := readEvent(d)
		if d.Err != nil {
			break
		}
		if len(reply) > maxReply {
			reply = append(reply, 0) // the leader matches it
			continue
		}
		var err error
		if hits, err = c.index.Match(key, event, hits[:0]); err != nil {
			reply = append(reply, 0) // the leader matches it, and finds the error
			continue
		}
		reply = appendHits(append(reply, 1), hits)
	}
	if d.Err != nil {
		c.link.End(d.Err)
		return
	}
	c.link.Send(kindHits, f.Stream, reply)
}
