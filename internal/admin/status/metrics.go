package status

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// Metrics returns the handler of /metrics.
func (r *Reporter) Metrics() http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for state := range fanfare.States {
		s := fanfare.State(state)
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "fanfare_attempts_total", Help: "Attempts recorded since the server started, by resulting state.",
			ConstLabels: prometheus.Labels{"state": s.String()},
		}, func() float64 { totals, _ := r.options.Recorder.Totals(); return float64(totals[s]) }))
	}
	gauge := func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "fanfare_outcome_commits_total", Help: "Transactions that stored outcomes.",
	}, func() float64 { _, groups := r.options.Recorder.Totals(); return float64(groups) }))
	gauge("fanfare_broadcasts_open", "Broadcasts that have not completed yet.", func() float64 {
		open, _, _ := r.options.Recorder.Backlog()
		return float64(open)
	})
	gauge("fanfare_broadcasts_held", "Broadcasts that are waiting for approval.", func() float64 { return float64(len(r.options.Switches.HeldBroadcasts())) })
	gauge("fanfare_deliveries_pending", "Deliveries in a manifest for which no attempt has been made yet.", func() float64 {
		_, pending, _ := r.options.Recorder.Backlog()
		return float64(pending)
	})
	gauge("fanfare_deliveries_deferred", "Deliveries between two attempts.", func() float64 {
		_, _, deferred := r.options.Recorder.Backlog()
		return float64(deferred)
	})
	metrics.MustRegister(suppressionMetrics{r.options.Registry})
	gauge("fanfare_state_keys", "Topic keys whose last event is stored.", func() float64 { return float64(r.options.States.Total().Keys) })
	gauge("fanfare_index_lag_events", "Events that are not in the index of deliveries by person yet.", func() float64 { return float64(r.options.IndexLag()) })
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "fanfare_notices_total", Help: "Delivery outcomes and changes of subscriptions and suppressions processed for notices to services since the server started.",
	}, func() float64 { return float64(r.options.Notifier.Posted()) }))
	gauge("fanfare_notices_waiting", "Outcomes and changes that have not been reported to services yet.", func() float64 { return float64(r.options.Notifier.Waiting()) })
	gauge("fanfare_notices_lag_seconds", "Age of the oldest outcome or change that has not been reported to services yet.", func() float64 { return r.options.Notifier.Lag().Seconds() })
	gauge("fanfare_disk_free_bytes", "Free disk space of the data directory.", func() float64 { return float64(r.options.Disk.Free()) })
	gauge("fanfare_change_seq", "Sequence number of the last change of subscriptions.", func() float64 { return float64(r.options.Registry.ChangeSeq()) })
	gauge("fanfare_subscriptions_not_understood", "Subscriptions whose conditions could not be parsed when the server started; they match no events.", func() float64 { return float64(r.options.Registry.InvalidConditions()) })
	for _, register := range r.options.Register {
		register(metrics)
	}
	if r.options.Inbound != nil {
		r.options.Inbound.RegisterMetrics(metrics)
	}
	metrics.MustRegister(r.options.Channels, r.options.DB)
	metrics.MustRegister(r.options.Collectors...)
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})
}

// suppressionMetrics counts the suppressed addresses.
type suppressionMetrics struct{ registry *registry.Registry }

var suppressionsDesc = prometheus.NewDesc("fanfare_suppressions", "Addresses on the suppression lists of all services.", []string{"reason"}, nil)

func (m suppressionMetrics) Describe(to chan<- *prometheus.Desc) { to <- suppressionsDesc }

func (m suppressionMetrics) Collect(to chan<- prometheus.Metric) {
	counts := m.registry.SuppressionsByReason()
	for _, reason := range suppression.Reasons {
		to <- prometheus.MustNewConstMetric(suppressionsDesc, prometheus.GaugeValue, float64(counts[reason]), reason)
	}
}
