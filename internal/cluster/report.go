package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// silentAfter is how long after its last heartbeat a node counts as silent.
const silentAfter = nameTTL

// Report lists the nodes as this node knows them.
func (m *Member) Report() wire.Nodes {
	m.mu.Lock()
	nodes, read, leader, lease := m.nodes, m.read, m.leader, m.lease
	m.mu.Unlock()
	if lease != nil && !lease.Valid(0) {
		leader.Held = false
	}
	since := time.Duration(0)
	if !read.IsZero() {
		since = time.Since(read)
	}
	report := wire.Nodes{Clustered: true, Nodes: make([]wire.Node, len(nodes))}
	for i := range nodes {
		n, silent := &nodes[i], nodes[i].Silent+since
		report.Nodes[i] = wire.Node{
			Name: n.Name, URL: n.URL, Version: n.Version, StartedAt: n.Started, LastSeenAt: n.Seen,
			SilentSeconds: silent.Round(time.Millisecond).Seconds(), Responding: silent <= silentAfter, ClockSkewMS: float64(n.Skew.Microseconds()) / 1000,
		}
		if leader.Held && leader.Node == n.Name {
			report.Nodes[i].Leader, report.Nodes[i].LeaseEpoch = true, leader.Epoch
		}
	}
	return report
}

var (
	leaderDesc = prometheus.NewDesc("fanfare_node_leader", "1 on the node that leads the cluster, 0 on the others.", []string{"node"}, nil)
	nodesDesc  = prometheus.NewDesc("fanfare_nodes", "Nodes of the cluster; state: responding or silent. Only on the node that leads.", []string{"state"}, nil)
	skewDesc   = prometheus.NewDesc("fanfare_node_clock_skew_seconds", "How far the clock of a node is ahead of the clock of the database. Only on the node that leads.", []string{"node"}, nil)
)

// Describe names the metrics.
func (m *Member) Describe(to chan<- *prometheus.Desc) {
	to <- leaderDesc
	to <- nodesDesc
	to <- skewDesc
}

// Collect reports whether this node leads, and if so the state of all nodes.
func (m *Member) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	if !m.Leading() {
		gauge(leaderDesc, 0, m.Name())
		return
	}
	gauge(leaderDesc, 1, m.Name())
	responding, silent := 0.0, 0.0
	for _, n := range m.Report().Nodes {
		if n.Responding {
			responding++
		} else {
			silent++
		}
		gauge(skewDesc, n.ClockSkewMS/1000, n.Name)
	}
	gauge(nodesDesc, responding, "responding")
	gauge(nodesDesc, silent, "silent")
}
