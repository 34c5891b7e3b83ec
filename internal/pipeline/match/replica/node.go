package replica

import (
	"context"
	"encoding/binary"
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
	matched       *atomic.Int64
	requests      link.Requests // that wait for their hits
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// Match returns the hits of each event of a topic. hits[i] is nil if the node could not match the event. The hits include each
// change that was in the index of the leader before the call.
func (n *Node) Match(ctx context.Context, key condition.Key, events []condition.Event) (hits [][]fanfare.Hit, err error) {
	payload := binary.AppendUvarint(keyPayload(key), uint64(len(events)))
	for i := range events {
		if payload, err = appendEvent(payload, &events[i]); err != nil {
			return nil, err
		}
	}
	n.feed.awaitChange()
	reply, err := n.requests.Ask(ctx, n.link, kindMatch, payload)
	if err != nil {
		return nil, err
	}
	if hits, err = readReply(reply, len(events)); err == nil {
		n.matched.Add(int64(len(events)))
	}
	return hits, err
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
		n.requests.Reply(f)
		return nil
	}
	return link.ErrPayload
}

// ended notes that the link has ended.
func (n *Node) ended() { n.ready.Store(false) }
