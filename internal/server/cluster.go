package server

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/nodes"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/datadir/serverkeys"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox/hints"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
)

// A node of a cluster starts the components of a server only while it holds the lease of the leader:
//
//	join -> wait for the lease -> start the components -> lose the lease, or Stop -> stop the components -> wait ...
//
// Until then, its API forwards requests to the node that leads, and it performs duties for that node. From its start to its stop, it serves mailboxes.

const (
	// stepDownPatience is how long a node that has lost the lease waits for components that use the database, which refuses
	// their transactions.
	stepDownPatience = 2 * time.Second
	// leadAgain is the pause after a failed attempt to lead, in which another node can try.
	leadAgain = 15 * time.Second
)

// A node is this server as a member of a cluster.
type node struct {
	tables *postgres.Cluster
	member *cluster.Member
	key    *cluster.Key
	roots  *x509.CertPool // for the certificates of the other nodes
	hints  *hints.Exchange
	mail   atomic.Pointer[mailService] // nil while this node does not serve mailboxes
	stop   func()                      // ends the loops of lead and serve, and waits for them
}

// join makes this server a node of a cluster, and leads the cluster whenever it holds the lease.
func (s *Server) join(ctx context.Context, o Options) error {
	n := &node{}
	var err error
	if n.key, err = cluster.NewKey(s.config.ClusterKey()); err != nil {
		return err
	}
	roots, err := s.config.NodeRoots()
	if err != nil {
		return err
	}
	if err := s.withDatabase(ctx, func() error { return s.register(ctx, n, o) }); err != nil {
		return err
	}
	n.roots = roots
	if s.config.EmbeddedCluster() {
		if err := s.startNATS(ctx, n); err != nil {
			return err
		}
	}
	s.node = n
	if err := s.exchangeHints(n); err != nil {
		return err
	}
	s.api.Fallback(cluster.NewForwarder(cluster.ForwarderOptions{
		Member: n.member, Key: n.key, Local: s.api.API, Waits: s.leaderWaits, Metrics: nodes.Standby(n.member, s.config.MetricsOpen, mailMetrics{n}), Stopping: s.stopping, Roots: roots, MaxRequests: s.config.MaxRequests, Logger: s.log,
	}))
	s.forwardCompat(roots)
	s.background(n.member.Run)
	duties := &cluster.DutyRunner{Member: n.member, Key: n.key, Roots: roots, Version: o.Version, Logger: s.log}
	leading, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if s.config.Leads() {
		running.Go(func() { s.lead(leading, o) })
	}
	running.Go(func() { s.serveMailboxes(leading, o.Version) })
	if s.config.Delivers() {
		running.Go(func() { duties.Run(leading, s.delivery()) })
	}
	if s.config.Matches() {
		running.Go(func() { duties.Run(leading, s.matching()) })
	}
	n.stop = func() { stop(); running.Wait() }
	s.log.Info("this server is a node of a cluster", "node", s.config.Node, "url", s.config.URLOfNode(), "listen", s.URL())
	return nil
}

// register opens the tables of the cluster, checks the cluster key, and registers this node.
func (s *Server) register(ctx context.Context, n *node, o Options) (err error) {
	if n.tables, err = database.OpenCluster(ctx, &s.config, o.Version, s.log); err != nil {
		return err
	}
	s.onStop(n.tables.Close)
	sealed, err := n.tables.SealedKeys(ctx)
	if err != nil {
		return err
	}
	for name, key := range sealed {
		if _, err := n.key.Open(name, key); err != nil {
			return err
		}
	}
	n.member, err = cluster.Join(ctx, cluster.Options{Name: s.config.Node, URL: s.config.URLOfNode(), Version: o.Version, Roles: s.config.Roles, Store: n.tables, Logger: s.log})
	return err
}

// lead leads the cluster whenever this node holds the lease, until ctx ends.
func (s *Server) lead(ctx context.Context, o Options) {
	for {
		lease, err := s.node.member.Lead(ctx)
		if err != nil {
			return
		}
		err = s.leadUnder(ctx, lease, o)
		s.node.member.Resign(lease)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.log.Error("this node cannot lead; another node can take over", "error", err, "again_in", leadAgain.String())
		_ = retry.Sleep(ctx, leadAgain) // Lead returns the error of ctx
	}
}

// leadUnder runs the components until the lease is lost or ctx ends, and returns why they could not start.
func (s *Server) leadUnder(ctx context.Context, lease *cluster.Lease, o Options) error {
	started := s.clock.Now()
	starting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-lease.Lost():
			stop()
		case <-starting.Done():
		}
	}()
	keep := len(s.cleanups)
	err := s.withDatabase(starting, func() error { return s.startComponents(starting, o, started, lease) })
	if err == nil {
		select {
		case <-lease.Lost():
		case <-ctx.Done():
		}
	}
	patience := s.config.DrainTimeout + stopPatience
	if !lease.Valid(0) {
		patience = stepDownPatience
		if s.leaveBus != nil { // what this node still took from the bus, the next leader would get late and out of order
			_ = s.leaveBus() // a cleanup closes the bus again and returns the error
		}
	}
	if err := s.cleanUp(keep, patience); err != nil {
		s.log.Debug("a component could not be closed", "error", err)
	}
	s.outage, s.giveUp, s.leaveBus = nil, nil, nil
	if starting.Err() != nil {
		return nil
	}
	return err
}

// databaseLease returns the lease under which this node uses the database; nil for a server that is alone.
func (c *components) databaseLease() *postgres.NodeLease {
	if c.lease == nil {
		return nil
	}
	return &postgres.NodeLease{Node: c.lease.Node, Epoch: c.lease.Epoch}
}

// sendingLease returns the lease under which this node sends; nil for a server that is alone.
func (c *components) sendingLease() deliver.NodeLease {
	if c.lease == nil {
		return nil
	}
	return c.lease
}

// leaseLost returns a context that ends when the lease is lost: the next leader sends the messages again whose outcome is unknown. It
// is nil for a server that is alone.
func (c *components) leaseLost() context.Context {
	if c.lease == nil {
		return nil
	}
	ctx, lost := context.WithCancel(context.Background())
	stop := make(chan struct{})
	c.onStop(func() error { close(stop); return nil })
	go func() {
		select {
		case <-c.lease.Lost():
			lost()
		case <-stop:
		}
	}()
	return ctx
}

// acceptsEvents returns why no events are accepted, or nil. A node whose lease has expired accepts none, because the next
// leader would not know their ids.
func (c *components) acceptsEvents() error {
	if c.lease != nil && !c.lease.Valid(0) {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "this node cannot reach the database, and its lease has expired; nothing was stored", Hint: "send the event to another node, or send it again later", RetryAfter: time.Second}
	}
	return c.disk.Check()
}

// nodes returns the function that lists the nodes of the cluster; nil for a server that is alone.
func (c *components) nodes() func() wire.Nodes {
	if c.node == nil {
		return nil
	}
	syncMode := "unknown" // of external servers
	switch {
	case c.nats == nil:
	case c.config.Fsync():
		syncMode = "always"
	default:
		syncMode = "interval"
	}
	leader := &nodes.Leader{
		Member: c.node.member, Hub: c.delivering, Feed: c.feed, Bus: c.bus, Delivers: c.config.Delivers(), Connections: c.channels.NodeConnections, Sync: syncMode, Embedded: c.nats != nil,
	}
	return leader.List
}

// delivery returns the duty of a node that delivers.
func (s *Server) delivery() cluster.Duty {
	return cluster.Duty{Name: "delivers", Protocol: remote.Protocol, Run: func(ctx context.Context, conn net.Conn) error {
		keys, err := serverkeys.Read(s.config.DataDir)
		if err == nil {
			err = keys.Adopt(ctx, s.node.tables, s.node.key)
		}
		if err != nil {
			return err
		}
		node := &channels.Node{WebhookKey: keys.Webhooks.Bytes, Networks: s.config.Networks(), Clock: s.clock}
		return remote.NewAgent(remote.AgentOptions{Drivers: node.Drivers, Sign: node.Sign, Drain: s.config.DrainTimeout, Logger: s.log}).Serve(ctx, conn)
	}}
}

// matching returns the duty of a node that matches events.
func (s *Server) matching() cluster.Duty {
	return cluster.Duty{Name: "matches events", Protocol: replica.Protocol, Run: func(ctx context.Context, conn net.Conn) error { return replica.Serve(ctx, conn, s.log) }}
}
