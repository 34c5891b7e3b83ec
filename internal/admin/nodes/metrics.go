package nodes

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
)

// Standby serves the metrics of a node while it does not lead, and those of more, to its own machine or, if open is set, to all.
func Standby(member *cluster.Member, open bool, more ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Metrics{Member: member}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(more...)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open && !httpio.IsLocal(r) {
			problem.Of(&fanfare.Error{Code: fanfare.Forbidden, Message: "the metrics of a node that does not lead are served only to its own machine", Hint: "set metrics_open"}, httpio.RequestID(r)).Write(w)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

var (
	leaderDesc  = prometheus.NewDesc("fanfare_node_leader", "1 on the node that leads the cluster, 0 on the others.", []string{"node"}, nil)
	nodesDesc   = prometheus.NewDesc("fanfare_nodes", "Nodes of the cluster; state: responding or silent. Only on the node that leads.", []string{"state"}, nil)
	skewDesc    = prometheus.NewDesc("fanfare_node_clock_skew_seconds", "How far the clock of a node is ahead of the clock of the database. Only on the node that leads.", []string{"node"}, nil)
	matchedDesc = prometheus.NewDesc("fanfare_node_matched_events_total", "Events whose conditions another node has evaluated for the leader since it started to lead. Only on the node that leads.", []string{"node"}, nil)
	signedDesc  = prometheus.NewDesc("fanfare_node_signatures_total", "DKIM signatures that another node has made for the leader since it started to lead. Only on the node that leads.", []string{"node"}, nil)
)

// Metrics reports whether this node leads and, if so, the state of all nodes.
type Metrics struct {
	Member *cluster.Member
	Hub    *remote.Hub // nil while this node does not lead, as Feed
	Feed   *replica.Feed
}

// Describe names the metrics.
func (m Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- leaderDesc
	to <- nodesDesc
	to <- skewDesc
	to <- matchedDesc
	to <- signedDesc
}

// Collect reports the current state.
func (m Metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	if !m.Member.Leading() {
		gauge(leaderDesc, 0, m.Member.Name())
		return
	}
	gauge(leaderDesc, 1, m.Member.Name())
	responding, silent := 0.0, 0.0
	for _, n := range m.Member.Nodes() {
		if n.Responding {
			responding++
		} else {
			silent++
		}
		gauge(skewDesc, n.Skew.Seconds(), n.Name)
	}
	gauge(nodesDesc, responding, "responding")
	gauge(nodesDesc, silent, "silent")
	if m.Hub != nil {
		for name, signatures := range m.Hub.Signed() {
			to <- prometheus.MustNewConstMetric(signedDesc, prometheus.CounterValue, float64(signatures), name)
		}
	}
	if m.Feed != nil {
		for name, events := range m.Feed.Matched() {
			to <- prometheus.MustNewConstMetric(matchedDesc, prometheus.CounterValue, float64(events), name)
		}
	}
}
