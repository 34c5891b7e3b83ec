package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// HubOptions are the dependencies of a Hub.
type HubOptions struct {
	Changed func()                   // called after a node has joined or left, one call at a time
	Leads   func(time.Duration) bool // reports whether the lease of the leader is valid for that long; nil: always
	Logger  *slog.Logger

	silence time.Duration // 0: link.Silence; for tests
}

// A Hub is the leader's side: it has a link to each node that delivers.
type Hub struct {
	options HubOptions
	ctx     context.Context
	stop    context.CancelFunc
	links   sync.WaitGroup

	mu     sync.Mutex
	nodes  []*Node                  // by name
	signed map[string]*atomic.Int64 // signatures that nodes have made, by name

	changing sync.Mutex // held while Changed runs
}

// NewHub returns a Hub without nodes.
func NewHub(o HubOptions) *Hub {
	if o.silence == 0 {
		o.silence = link.Silence
	}
	if o.Leads == nil {
		o.Leads = func(time.Duration) bool { return true }
	}
	h := &Hub{options: o, signed: map[string]*atomic.Int64{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close ends all links, and waits for them.
func (h *Hub) Close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.links.Wait()
}

// Attach runs the link to a node over an authenticated connection until it ends.
func (h *Hub) Attach(conn net.Conn, name, version string) {
	n := &Node{name: name, version: version, hub: h, streams: map[uint32]*stream{}, lacks: map[string]time.Time{}, channels: map[uint16]uint32{}}
	n.link = link.New(h.ctx, conn, h.options.silence)
	h.mu.Lock()
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		_ = conn.Close() // an error has no effect
		return
	}
	h.links.Add(1)
	if h.signed[name] == nil {
		h.signed[name] = new(atomic.Int64)
	}
	n.made = h.signed[name]
	h.mu.Unlock()
	defer h.links.Done()
	h.join(n)
	why := n.link.Run(n.handle)
	n.ended()
	h.leave(n)
	if h.ctx.Err() == nil && !n.leaving.Load() {
		h.options.Logger.Warn("the link to a delivering node has ended", "node", name, "error", why)
	}
}

// join adds a node. It ends an older link of this node, whose streams are not used again.
func (h *Hub) join(n *Node) {
	h.mu.Lock()
	for _, before := range h.nodes {
		if before.name == n.name {
			before.link.End(errors.New("the node has opened another link"))
		}
	}
	h.nodes = append(slices.DeleteFunc(slices.Clone(h.nodes), func(other *Node) bool { return other.name == n.name }), n)
	slices.SortFunc(h.nodes, func(a, b *Node) int { return cmp.Compare(a.name, b.name) })
	h.mu.Unlock()
	h.options.Logger.Info("another node delivers for this node", "node", n.name, "version", n.version)
	h.changed()
}

// leave removes a node.
func (h *Hub) leave(n *Node) {
	h.mu.Lock()
	before := len(h.nodes)
	h.nodes = slices.DeleteFunc(slices.Clone(h.nodes), func(other *Node) bool { return other == n })
	gone := len(h.nodes) < before
	h.mu.Unlock()
	if gone {
		h.options.Logger.Info("another node no longer delivers for this node", "node", n.name)
		h.changed()
	}
}

func (h *Hub) changed() {
	h.changing.Lock()
	defer h.changing.Unlock()
	if h.options.Changed != nil && h.ctx.Err() == nil {
		h.options.Changed()
	}
}

// Nodes returns the nodes that deliver, by name.
func (h *Hub) Nodes() []*Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes
}

// A Node is another node that delivers.
type Node struct {
	name, version string
	hub           *Hub
	link          *link.Link
	leaving       atomic.Bool

	mu       sync.Mutex
	next     uint32 // number of the last stream
	streams  map[uint32]*stream
	signing  link.Requests // that wait for a signature
	made     *atomic.Int64
	lacks    map[string]time.Time // public keys that the node does not have, and until when it is not asked again
	channels map[uint16]uint32    // by number of the channel: the version of the settings that the node has
	lost     time.Time            // when the link ended; zero while it exists
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// Version returns the version of the node's program.
func (n *Node) Version() string { return n.version }

// Connections returns how many connections the node has open, or is opening.
func (n *Node) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.streams)
}

// A Channel is one version of the settings of a channel, which a node needs to create its drivers.
type Channel struct {
	number   uint16
	version  uint32
	settings []byte
}

var versions atomic.Uint32

// NewChannel returns a new version of the settings of a channel. The node passes them to AgentOptions.Drivers.
func NewChannel(number uint16, settings []byte) *Channel {
	return &Channel{number, versions.Add(1), settings}
}

// Driver returns a driver for one relay of a channel, which runs on the node. Two drivers are equal if their arguments are
// equal.
func (n *Node) Driver(c *Channel, relay string) driver.Driver { return nodeDriver{n, c, relay} }

type nodeDriver struct {
	node    *Node
	channel *Channel
	relay   string
}

// Serve runs one connection of the node; see driver.Driver.
func (d nodeDriver) Serve(ctx context.Context, queue driver.Queue) error {
	s, err := d.node.open(d.channel, d.relay)
	if err != nil {
		return err
	}
	defer d.node.close(s)
	return s.serve(ctx, queue)
}

// errLost is the error of the streams of a link that has ended.
var errLost = errors.New("the link to the delivering node has ended")

// open opens a stream.
func (n *Node) open(c *Channel, relay string) (*stream, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.lost.IsZero() {
		return nil, errLost
	}
	n.next++
	s := &stream{node: n, id: n.next, calls: make(chan link.Frame, 2)}
	n.streams[s.id] = s
	if n.channels[c.number] != c.version {
		n.channels[c.number] = c.version
		clear(n.lacks) // the node may learn keys from these settings
		n.link.Send(kindChannel, 0, binary.BigEndian.AppendUint16(nil, c.number), binary.BigEndian.AppendUint32(nil, c.version), c.settings)
	}
	n.link.Send(kindOpen, s.id, binary.BigEndian.AppendUint16(nil, c.number), binary.BigEndian.AppendUint32(nil, c.version), []byte(relay))
	return s, nil
}

func (n *Node) close(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.streams, s.id)
}

// ended tells all streams that the link has ended.
func (n *Node) ended() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = time.Now()
	for _, s := range n.streams {
		s.interrupt()
		close(s.calls)
	}
}

// certainlySilent returns the time by which the node has certainly closed all its connections after the end of the link: it
// closes them when it has received nothing for the silence limit.
func (n *Node) certainlySilent() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	lost := n.lost
	if lost.IsZero() { // the caller has just ended the link
		lost = time.Now()
	}
	return lost.Add(n.link.Silence() * 3 / 2)
}

// handle handles a frame of the node.
func (n *Node) handle(f link.Frame) error {
	if f.Kind == kindLeave {
		if !n.leaving.Swap(true) {
			n.hub.links.Go(func() { n.hub.leave(n) })
		}
		return nil
	}
	if f.Kind == kindSigned {
		n.signing.Reply(f)
		return nil
	}
	n.mu.Lock()
	s := n.streams[f.Stream]
	n.mu.Unlock()
	switch {
	case s == nil: // it has ended on this side
		return nil
	case f.Kind == kindCancel:
		s.cancel(f.Payload)
		return nil
	case f.Kind != kindCall && f.Kind != kindEnd:
		return link.ErrPayload
	}
	select {
	case s.calls <- f:
		return nil
	default: // a node makes one call at a time
		return link.ErrPayload
	}
}
