package server

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
)

// nodes returns the function that lists the nodes of the cluster; nil for a server that is alone.
func (c *components) nodes() func() wire.Nodes {
	if c.node == nil {
		return nil
	}
	member := c.node.member
	return func() wire.Nodes {
		list, connections := member.Nodes(), c.channels.NodeConnections()
		answer := wire.Nodes{Clustered: true, Nodes: make([]wire.Node, len(list))}
		for i := range list {
			n := &list[i]
			open := connections[n.Name]
			if n.Leader {
				open = connections[""]
			}
			answer.Nodes[i] = wire.Node{
				Name: n.Name, Roles: n.Roles, URL: n.URL, Version: n.Version, StartedAt: n.Started, LastSeenAt: n.Seen, Responding: n.Responding, Leader: n.Leader, LeaseEpoch: n.Epoch,
				SilentSeconds: n.Silent.Round(time.Millisecond).Seconds(), ClockSkewMS: float64(n.Skew.Microseconds()) / 1000,
				Delivers: n.Leader && c.config.Delivers() || c.attached(n.Name), Matches: c.copied(n.Name), Connections: open,
			}
		}
		answer.Bus = c.busCopies()
		return answer
	}
}

// copiesLimit is how long a list of nodes waits for the NATS servers.
const copiesLimit = 2 * time.Second

// busCopies describes the NATS servers; nil if they do not respond.
func (c *components) busCopies() *wire.Copies {
	ctx, cancel := context.WithTimeout(context.Background(), copiesLimit)
	defer cancel()
	copies, err := c.bus.Copies(ctx)
	if err != nil {
		return nil
	}
	answer := &wire.Copies{Embedded: c.nats != nil, Replicas: copies.Replicas, Current: copies.Current, Sync: "unknown"}
	switch {
	case c.nats == nil:
	case c.config.Fsync():
		answer.Sync = "always"
	default:
		answer.Sync = "interval"
	}
	return answer
}

// attached reports whether another node delivers for this one.
func (c *components) attached(name string) bool {
	return slices.ContainsFunc(c.delivering.Nodes(), func(n *remote.Node) bool { return n.Name() == name })
}

// copied reports whether another node has a complete copy of the matching index.
func (c *components) copied(name string) bool {
	return slices.ContainsFunc(c.feed.Nodes(), func(n *replica.Node) bool { return n.Name() == name })
}

var (
	leaderDesc  = prometheus.NewDesc("fanfare_node_leader", "1 on the node that leads the cluster, 0 on the others.", []string{"node"}, nil)
	nodesDesc   = prometheus.NewDesc("fanfare_nodes", "Nodes of the cluster; state: responding or silent. Only on the node that leads.", []string{"state"}, nil)
	skewDesc    = prometheus.NewDesc("fanfare_node_clock_skew_seconds", "How far the clock of a node is ahead of the clock of the database. Only on the node that leads.", []string{"node"}, nil)
	matchedDesc = prometheus.NewDesc("fanfare_node_matched_events_total", "Events whose conditions another node has evaluated for the leader since it started to lead. Only on the node that leads.", []string{"node"}, nil)
	signedDesc  = prometheus.NewDesc("fanfare_node_signatures_total", "DKIM signatures that another node has made for the leader since it started to lead. Only on the node that leads.", []string{"node"}, nil)
)

// nodeMetrics reports whether this node leads and, if so, the state of all nodes.
type nodeMetrics struct {
	member *cluster.Member
	hub    *remote.Hub // nil while this node does not lead, as feed
	feed   *replica.Feed
}

// Describe names the metrics.
func (m nodeMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- leaderDesc
	to <- nodesDesc
	to <- skewDesc
	to <- matchedDesc
	to <- signedDesc
}

// Collect reports the current state.
func (m nodeMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	if !m.member.Leading() {
		gauge(leaderDesc, 0, m.member.Name())
		return
	}
	gauge(leaderDesc, 1, m.member.Name())
	responding, silent := 0.0, 0.0
	for _, n := range m.member.Nodes() {
		if n.Responding {
			responding++
		} else {
			silent++
		}
		gauge(skewDesc, n.Skew.Seconds(), n.Name)
	}
	gauge(nodesDesc, responding, "responding")
	gauge(nodesDesc, silent, "silent")
	if m.hub != nil {
		for name, signatures := range m.hub.Signed() {
			to <- prometheus.MustNewConstMetric(signedDesc, prometheus.CounterValue, float64(signatures), name)
		}
	}
	if m.feed != nil {
		for name, events := range m.feed.Matched() {
			to <- prometheus.MustNewConstMetric(matchedDesc, prometheus.CounterValue, float64(events), name)
		}
	}
}
