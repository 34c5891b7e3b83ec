package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// A Node is another node with a copy of the matching index.
type Node struct {
	name, version string
	feed          *Feed
	link          *link.Link
	ready         atomic.Bool // the copy is complete
	late          atomic.Bool // it has not replied to a request in time, and has not replied to any since then
	matched       *atomic.Int64

	mu       sync.Mutex
	last     uint32                 // number of the last request
	requests map[uint32]chan []byte // that wait for their hits
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

var errGone = errors.New("the link to the node has ended")

// Match returns the hits of each event of a topic. hits[i] is nil if the node could not match the event. The hits include each
// change that was in the index of the leader before the call.
func (n *Node) Match(ctx context.Context, key condition.Key, events []condition.Event) (hits [][]fanfare.Hit, err error) {
	payload := binary.AppendUvarint(keyPayload(key), uint64(len(events)))
	for i := range events {
		if payload, err = appendEvent(payload, &events[i]); err != nil {
			return nil, err
		}
	}
	reply := make(chan []byte, 1)
	n.mu.Lock()
	n.last++
	request := n.last
	n.requests[request] = reply
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.requests, request)
		n.mu.Unlock()
	}()
	n.feed.awaitChange()
	n.link.Send(kindMatch, request, payload)
	select {
	case text := <-reply:
		hits, err := readReply(text, len(events))
		if err == nil {
			n.matched.Add(int64(len(events)))
		}
		return hits, err
	case <-n.link.Context().Done():
		return nil, errGone
	case <-ctx.Done():
		n.noteLate(request)
		return nil, ctx.Err()
	}
}

// noteLate notes that a request has had no reply in time, so that the next events do not wait for the node, too.
func (n *Node) noteLate(request uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests[request] != nil { // else the reply has just arrived, and there may be no other one
		n.late.Store(true)
	}
}

func readReply(text []byte, events int) (hits [][]fanfare.Hit, err error) {
	d := &link.Decoder{Rest: text}
	hits = make([][]fanfare.Hit, events)
	for i := range hits {
		if d.Byte() == 1 {
			hits[i] = readHits(d)
		}
	}
	return hits, d.Err
}

// handle handles a frame of the node.
func (n *Node) handle(f link.Frame) error {
	switch f.Kind {
	case kindReady:
		n.ready.Store(true)
		return nil
	case kindHits:
		n.mu.Lock()
		n.late.Store(false)
		reply := n.requests[f.Stream]
		delete(n.requests, f.Stream)
		n.mu.Unlock()
		if reply != nil { // else the caller has given up
			reply <- f.Payload
		}
		return nil
	}
	return link.ErrPayload
}

// ended notes that the link has ended.
func (n *Node) ended() { n.ready.Store(false) }
