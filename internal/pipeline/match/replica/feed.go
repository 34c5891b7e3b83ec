package replica

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// FeedOptions are the dependencies of a Feed.
type FeedOptions struct {
	Index *condition.Index
	// Subscriptions visits all active subscriptions as the database has them. The visitor keeps nothing.
	Subscriptions func(ctx context.Context, visit func(condition.Key, *condition.Entry) error) error
	Logger        *slog.Logger
}

// A Feed is the matching index of the leader. It passes all changes to the copies on other nodes.
type Feed struct {
	*condition.Index
	options FeedOptions
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // held while the index changes, so that each copy gets all changes in their order
	keys  map[condition.Key]bool
	nodes []*Node // by name

	matched map[string]*atomic.Int64 // events that nodes have matched since the start, by name
}

// NewFeed returns a Feed without copies.
func NewFeed(o FeedOptions) *Feed {
	f := &Feed{Index: o.Index, options: o, keys: map[condition.Key]bool{}, matched: map[string]*atomic.Int64{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends all links, and waits for them.
func (f *Feed) Close() {
	f.mu.Lock()
	f.stop()
	f.mu.Unlock()
	f.running.Wait()
}

// Define sets the definition of a topic; see condition.Index.
func (f *Feed) Define(key condition.Key, def condition.Definition) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.Index.Define(key, def)
	if err != nil {
		return err
	}
	f.keys[key] = true
	if len(f.nodes) > 0 {
		f.broadcast(kindDefine, definePayload(key, &def))
	}
	return nil
}

func definePayload(key condition.Key, def *condition.Definition) []byte {
	text, _ := json.Marshal(def) // texts and a valid schema
	return link.AppendText(keyPayload(key), text)
}

// Add adds or replaces subscriptions; see condition.Index.
func (f *Feed) Add(key condition.Key, entries []condition.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.Index.Add(key, entries)
	if err != nil || len(f.nodes) == 0 {
		return err
	}
	f.broadcast(kindAdd, entriesPayload(key, entries))
	return nil
}

func entriesPayload(key condition.Key, entries []condition.Entry) []byte {
	payload := binary.AppendUvarint(keyPayload(key), uint64(len(entries)))
	for i := range entries {
		payload = appendEntry(payload, &entries[i])
	}
	return payload
}

// Remove removes a subscription; see condition.Index.
func (f *Feed) Remove(key condition.Key, place fanfare.RowID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Index.Remove(key, place)
	if len(f.nodes) > 0 {
		f.broadcast(kindRemove, binary.AppendUvarint(keyPayload(key), uint64(place)))
	}
}

// broadcast sends a change to all copies. The caller holds mu. A slow node must not delay a change: it loses its link.
func (f *Feed) broadcast(kind byte, payload []byte) {
	for _, n := range f.nodes {
		n.link.SendNow(kind, 0, payload)
	}
}

// awaitChange waits until a change that is in the index has been sent to all copies.
func (f *Feed) awaitChange() {
	f.mu.Lock()
	defer f.mu.Unlock()
}

// Attach runs the link to a node over an authenticated connection until it ends.
func (f *Feed) Attach(conn net.Conn, name, version string) {
	n := &Node{feed: f, name: name, version: version}
	n.link = link.New(f.ctx, conn, 0)
	f.mu.Lock()
	if f.ctx.Err() != nil {
		f.mu.Unlock()
		_ = conn.Close() // an error has no effect
		return
	}
	f.running.Add(1)
	if f.matched[name] == nil {
		f.matched[name] = new(atomic.Int64)
	}
	n.matched = f.matched[name]
	for _, before := range f.nodes {
		if before.name == name {
			before.link.End(errors.New("the node has opened another link"))
		}
	}
	f.nodes = append(slices.DeleteFunc(f.nodes, func(other *Node) bool { return other.name == name }), n)
	slices.SortFunc(f.nodes, func(a, b *Node) int { return cmp.Compare(a.name, b.name) })
	for key := range f.keys {
		if def := f.DefinitionOf(key); def != nil {
			n.link.SendNow(kindDefine, 0, definePayload(key, def))
		}
	}
	f.mu.Unlock()
	defer f.running.Done()
	f.running.Go(func() { f.fill(n) })
	why := n.link.Run(n.handle)
	n.ended()
	f.mu.Lock()
	f.nodes = slices.DeleteFunc(f.nodes, func(other *Node) bool { return other == n })
	f.mu.Unlock()
	if f.ctx.Err() == nil {
		f.options.Logger.Warn("the link to a node that matches events has ended", "node", name, "error", why)
	}
}

// chunkSize is the number of subscriptions that are sent together.
const chunkSize = 1024

// fill sends all subscriptions to a node.
func (f *Feed) fill(n *Node) {
	began, sent := time.Now(), 0
	ctx := n.link.Context()
	var at condition.Key
	var payload []byte
	inChunk := 0
	flush := func() {
		if inChunk > 0 {
			n.link.Send(kindLoad, 0, binary.AppendUvarint(keyPayload(at), uint64(inChunk)), payload)
			payload, inChunk = payload[:0], 0
		}
	}
	err := f.options.Subscriptions(ctx, func(key condition.Key, e *condition.Entry) error {
		if key != at || inChunk == chunkSize {
			flush()
			at = key
		}
		payload, inChunk, sent = appendEntry(payload, e), inChunk+1, sent+1
		return ctx.Err()
	})
	if err != nil {
		n.link.End(err)
		return
	}
	flush()
	n.link.Send(kindLoaded, 0)
	f.options.Logger.Info("a node gets a copy of the matching index", "node", n.name, "version", n.version, "subscriptions", sent, "took", time.Since(began).Round(time.Millisecond).String())
}

// Matched returns how many events other nodes have matched since the start, by the name of the node.
func (f *Feed) Matched() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]int64, len(f.matched))
	for name, n := range f.matched {
		all[name] = n.Load()
	}
	return all
}

// Nodes returns the nodes that can match events now, by name.
func (f *Feed) Nodes() (ready []*Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		if n.ready.Load() && !n.requests.Late() {
			ready = append(ready, n)
		}
	}
	return ready
}
