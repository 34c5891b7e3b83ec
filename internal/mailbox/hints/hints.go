// Package hints tells the nodes of a cluster which mailboxes have changed, so that sessions on one node learn of changes on another at once.
//
// State. An Exchange has a queue of hints that are not sent yet, and the stores of this node: that of its mail programs, and while it leads that of its
// components.
//
// Failure. A hint may be lost: when the queue is full, when NATS cannot be reached, or when a node is killed after a commit. The stores find the
// changes later (mailbox.Store.Follow), and at once after the connection to NATS was restored.
//
// The server makes one Exchange for each node of a cluster; a server that is alone has none.
package hints

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/mailbox"
)

// Subject is the subject of the messages between nodes.
const Subject = "fanfare.mailboxes"

// maxQueued is the number of hints that wait to be sent. Further ones are dropped.
const maxQueued = 4096

// Transport carries messages to the other nodes. *bus.Peers is one.
type Transport interface {
	Publish(subject string, message []byte) error
}

// An Exchange passes hints between the stores of this node and those of other nodes. Its methods are safe for concurrent use.
type Exchange struct {
	log   *slog.Logger
	queue chan mailbox.Hint

	mu      sync.Mutex
	members map[*Member]struct{}
}

// A Member is a store of this node.
type Member struct {
	exchange *Exchange
	store    atomic.Pointer[mailbox.Store] // nil until Attach
	again    chan struct{}                 // has an element when hints may have been lost
}

// New returns an exchange. Run sends what is announced.
func New(log *slog.Logger) *Exchange {
	return &Exchange{log: log, queue: make(chan mailbox.Hint, maxQueued), members: map[*Member]struct{}{}}
}

// Join adds a store of this node, which Attach names later, because it announces by the member.
func (e *Exchange) Join() *Member {
	m := &Member{exchange: e, again: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members[m] = struct{}{}
	return m
}

// Attach passes the hints of others to the store.
func (m *Member) Attach(s *mailbox.Store) { m.store.Store(s) }

// Leave ends Join.
func (m *Member) Leave() {
	m.exchange.mu.Lock()
	defer m.exchange.mu.Unlock()
	delete(m.exchange.members, m)
}

// Again has an element when hints may have been lost.
func (m *Member) Again() <-chan struct{} { return m.again }

// Announce takes a hint of the member's store for all other stores. It does not block.
func (m *Member) Announce(h mailbox.Hint) {
	for _, other := range m.exchange.all() {
		if other != m {
			other.hear(h)
		}
	}
	select {
	case m.exchange.queue <- h:
	default:
	}
}

func (m *Member) hear(h mailbox.Hint) {
	if s := m.store.Load(); s != nil {
		s.Hear(h)
	}
}

func (e *Exchange) all() []*Member {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.members))
}

// Receive takes a message of another node.
func (e *Exchange) Receive(message []byte) {
	var h mailbox.Hint
	if err := json.Unmarshal(message, &h); err != nil {
		e.log.Debug("a message about mailboxes cannot be read", "error", err)
		return
	}
	for _, m := range e.all() {
		m.hear(h)
	}
}

// Lost says that hints may have been lost. It does not block.
func (e *Exchange) Lost() {
	for _, m := range e.all() {
		select {
		case m.again <- struct{}{}:
		default:
		}
	}
}

// Run sends hints until ctx ends.
func (e *Exchange) Run(ctx context.Context, to Transport) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-e.queue:
			message, err := json.Marshal(e.more(h))
			if err = errors.Join(err, to.Publish(Subject, message)); err != nil {
				e.log.Debug("other nodes were not told of a change of mailboxes; they find it later", "error", err)
			}
		}
	}
}

// maxAccounts is the number of accounts in a message. NATS limits messages to 1 MiB.
const maxAccounts = 1000

// more adds the queued hints that fit into the same message.
func (e *Exchange) more(h mailbox.Hint) mailbox.Hint {
	for h.Block == 0 && len(h.Accounts) < maxAccounts {
		select {
		case next := <-e.queue:
			if next.Block > 0 { // it has many accounts
				h.Block, h.Members = next.Block, next.Members
			}
			h.Accounts, h.Access = append(h.Accounts, next.Accounts...), append(h.Access, next.Access...)
		default:
			return h
		}
	}
	return h
}
