// Package cluster lets several servers use one PostgreSQL and one NATS as the nodes of a cluster. One node holds the lease
// of the leader and runs all stages; the other nodes forward requests to it and take over when its lease expires.
//
// State. The tables leases, nodes and server_keys of the database; a Member knows the current leader, and its own lease. A
// Lease is valid until a time on the monotonic clock of this process that is never later than its end in the database.
//
// Failure. A node that cannot renew its lease loses it when the lease expires, and stops all work under it: another node
// may lead from then on. The transactions of a node fail once another node leads (internal/store/postgres).
//
//	member.go   registration, heartbeats, and the lease of the leader
//	key.go      the cluster key: sealed server keys, and proof of forwarded requests
//	forward.go  requests to the leader
//	link.go     connections from nodes to the leader
//	report.go   the list of nodes
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store/postgres"
)

const (
	// leaseLength is how long a node leads after the last renewal of its lease. A node that is killed is replaced after
	// this time.
	leaseLength = 10 * time.Second
	// renewEvery is the interval of renewals, and of heartbeats.
	renewEvery = 2 * time.Second
	// watchEvery is how often a node looks for the leader.
	watchEvery = 250 * time.Millisecond
	// exchangeLimit is the time limit of one exchange with the database.
	exchangeLimit = 3 * time.Second
	// nameTTL is how long the name of a killed node is in use.
	nameTTL = 15 * time.Second
	// listedFor is how long a node is listed after its last heartbeat.
	listedFor = 24 * time.Hour
)

// Options describe this node.
type Options struct {
	Name    string
	URL     string // at which the other nodes reach its API
	Version string
	Roles   []string // of the setting roles
	Store   Store
	Logger  *slog.Logger
}

// Store has the tables of the cluster.
type Store interface {
	Register(ctx context.Context, n *postgres.Node, ttl time.Duration) error
	Heartbeat(ctx context.Context, name string, instance int64, now time.Time) error
	Leave(ctx context.Context, name string, instance int64) error
	Holder(ctx context.Context, lease string) (postgres.Holder, error)
	Acquire(ctx context.Context, lease, node string, length time.Duration) (epoch int64, err error)
	Renew(ctx context.Context, lease, node string, epoch int64, length time.Duration) (held bool, err error)
	Release(ctx context.Context, lease, node string, epoch int64) error
	Nodes(ctx context.Context, within time.Duration) ([]postgres.Node, error)
}

// A Member is this node.
type Member struct {
	options  Options
	instance int64
	resigned chan *Lease // to be released

	mu      sync.Mutex
	leader  postgres.Holder
	nodes   []postgres.Node
	read    time.Time     // when nodes was read
	changed chan struct{} // closed when leader changes
	waiting chan *Lease   // of Lead; nil: nobody waits
	lease   *Lease        // nil: another node leads
}

// Join registers this node. Run keeps it registered. If another process with its name was seen lately, Join waits: that
// process may have been killed.
func Join(ctx context.Context, o Options) (*Member, error) {
	m := &Member{options: o, instance: rand.Int64(), resigned: make(chan *Lease), changed: make(chan struct{})}
	for began := time.Now(); ; {
		err := o.Store.Register(ctx, &postgres.Node{Name: o.Name, Instance: m.instance, URL: o.URL, Version: o.Version, Roles: o.Roles}, nameTTL)
		if err == nil {
			break
		}
		if fanfare.CodeOf(err) != fanfare.Conflict || time.Since(began) > nameTTL {
			return nil, err
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m, m.watch(ctx)
}

// Name returns the name of this node.
func (m *Member) Name() string { return m.options.Name }

// Leader returns the node that leads, as far as known, and a channel that is closed when this changes.
func (m *Member) Leader() (leader postgres.Holder, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader, m.changed
}

// Leading reports whether this node holds the lease.
func (m *Member) Leading() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease != nil && m.lease.Valid(0)
}

// Lead waits until this node acquires the lease of the leader.
func (m *Member) Lead(ctx context.Context) (*Lease, error) {
	acquired := make(chan *Lease, 1)
	m.mu.Lock()
	m.waiting = acquired
	m.mu.Unlock()
	select {
	case l := <-acquired:
		return l, nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	m.waiting = nil
	m.mu.Unlock()
	select {
	case l := <-acquired:
		m.Resign(l)
	default:
	}
	return nil, ctx.Err()
}

// Resign ends a lease, so that another node can lead immediately. The caller has stopped all work that needs the lease.
func (m *Member) Resign(l *Lease) {
	select {
	case m.resigned <- l:
	case <-l.lost:
	}
}

// Run keeps this node registered, renews its lease, and looks for the leader, until ctx ends. It releases what it holds.
func (m *Member) Run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var renewed, beaten time.Time
	for {
		select {
		case <-ctx.Done():
			m.leave()
			return
		case l := <-m.resigned:
			m.release(l)
		case <-ticker.C:
		}
		if now := time.Now(); now.Sub(beaten) >= renewEvery {
			beaten = now
			m.warn(m.beat(ctx))
		}
		if l := m.held(); l != nil {
			if now := time.Now(); now.Sub(renewed) >= renewEvery {
				renewed = now
				m.warn(m.renew(ctx, l))
			}
			continue
		}
		m.warn(m.watch(ctx))
		if l := m.acquire(ctx); l != nil {
			renewed = time.Now()
		}
	}
}

// warn logs a failed exchange, at the level of messages that repeat. The database itself logs its outages.
func (m *Member) warn(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.options.Logger.Debug("an exchange with the other nodes failed", "error", err)
	}
}

// held returns the lease of this node, or nil without one. It forgets a lease that has expired.
func (m *Member) held() *Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease != nil && !m.lease.Valid(0) {
		m.options.Logger.Warn("this node no longer leads: its lease has expired because the database did not respond", "node", m.lease.Node)
		m.lease = nil
	}
	return m.lease
}

// beat updates the row of this node and reads those of the others.
func (m *Member) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	if err := m.options.Store.Heartbeat(ctx, m.options.Name, m.instance, time.Now()); err != nil {
		if fanfare.CodeOf(err) == fanfare.Conflict {
			m.options.Logger.Error("another process uses the name of this node", "node", m.options.Name, "error", err)
		}
		return err
	}
	nodes, err := m.options.Store.Nodes(ctx, listedFor)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.nodes, m.read = nodes, time.Now()
	m.mu.Unlock()
	return nil
}

// watch reads who leads.
func (m *Member) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	holder, err := m.options.Store.Holder(ctx, postgres.LeaderLease)
	if err != nil {
		return err
	}
	m.setLeader(holder)
	return nil
}

func (m *Member) setLeader(h postgres.Holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h == m.leader {
		return
	}
	if h.Node != m.leader.Node && h.Held && h.Node != m.options.Name {
		m.options.Logger.Info("another node leads", "leader", h.Node, "url", h.URL)
	}
	m.leader = h
	close(m.changed)
	m.changed = make(chan struct{})
}

// acquire acquires the lease if Lead waits for it and no node holds it.
func (m *Member) acquire(ctx context.Context) *Lease {
	m.mu.Lock()
	waiting, leader := m.waiting, m.leader
	m.mu.Unlock()
	if waiting == nil || leader.Held {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	start := time.Now()
	epoch, err := m.options.Store.Acquire(ctx, postgres.LeaderLease, m.options.Name, leaseLength)
	if err != nil || epoch == 0 {
		m.warn(err)
		return nil
	}
	l := newLease(m.options.Name, epoch, start.Add(leaseLength))
	m.mu.Lock()
	m.waiting, m.lease = nil, l
	m.mu.Unlock()
	m.setLeader(postgres.Holder{Node: m.options.Name, URL: m.options.URL, Epoch: epoch, Held: true})
	m.options.Logger.Info("this node leads", "node", m.options.Name, "epoch", epoch, "before", leader.Node)
	waiting <- l
	return l
}

// renew extends the lease, or loses it if another node has acquired it.
func (m *Member) renew(ctx context.Context, l *Lease) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	start := time.Now()
	held, err := m.options.Store.Renew(ctx, postgres.LeaderLease, l.Node, l.Epoch, leaseLength)
	switch {
	case err != nil:
		return err
	case held:
		l.extend(start.Add(leaseLength))
		return nil
	}
	m.options.Logger.Warn("this node no longer leads: another node has acquired the lease", "node", l.Node)
	m.drop(l)
	return m.watch(ctx)
}

// drop forgets a lease.
func (m *Member) drop(l *Lease) {
	m.mu.Lock()
	if m.lease == l {
		m.lease = nil
	}
	m.mu.Unlock()
	l.lose()
}

// release ends a lease in the database. If that fails, it expires.
func (m *Member) release(l *Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeLimit)
	defer cancel()
	m.warn(m.options.Store.Release(ctx, postgres.LeaderLease, l.Node, l.Epoch))
	m.drop(l)
	m.warn(m.watch(ctx))
}

// leave releases the lease, and frees the name of this node.
func (m *Member) leave() {
	if l := m.held(); l != nil {
		m.release(l)
	}
	ctx, cancel := context.WithTimeout(context.Background(), exchangeLimit)
	defer cancel()
	m.warn(m.options.Store.Leave(ctx, m.options.Name, m.instance))
}

// A Lease is the lease of the leader, held by this node. It is lost when it expires.
type Lease struct {
	Node  string
	Epoch int64

	until atomic.Pointer[time.Time] // with a monotonic reading
	once  sync.Once
	lost  chan struct{}

	mu      sync.Mutex
	expiry  *time.Timer
	renewed chan struct{} // closed by each renewal
}

func newLease(node string, epoch int64, until time.Time) *Lease {
	l := &Lease{Node: node, Epoch: epoch, lost: make(chan struct{}), renewed: make(chan struct{})}
	l.until.Store(&until)
	l.expiry = time.AfterFunc(time.Until(until), l.expire)
	return l
}

// expire loses the lease unless it was renewed in the meantime.
func (l *Lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Until(*l.until.Load()) <= 0 {
		l.lose()
	}
}

// Lost returns a channel that is closed when this node no longer holds the lease.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Valid reports whether the lease is valid for at least d from now.
func (l *Lease) Valid(d time.Duration) bool {
	select {
	case <-l.lost:
		return false
	default:
		return time.Until(*l.until.Load()) > d || failpoint.Fault("lease-without-epoch")
	}
}

// Await waits for a renewal if the lease is valid for less than d, and reports false if it is lost or ctx ends.
func (l *Lease) Await(ctx context.Context, d time.Duration) bool {
	for {
		l.mu.Lock()
		renewed := l.renewed
		l.mu.Unlock()
		if l.Valid(d) {
			return true
		}
		select {
		case <-renewed:
		case <-l.lost:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (l *Lease) extend(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(&until)
	l.expiry.Reset(time.Until(until))
	close(l.renewed)
	l.renewed = make(chan struct{})
}

func (l *Lease) lose() {
	if failpoint.Fault("lease-without-epoch") {
		return
	}
	l.once.Do(func() { close(l.lost) })
}
