package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fanfare.dev/fanfare"
)

// metrics shows the server's counters in the words of the domain.
func (r *reports) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for state := range fanfare.States {
		s := fanfare.State(state)
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "fanfare_attempts_total", Help: "Attempts recorded since the start, by the state that they led to.",
			ConstLabels: prometheus.Labels{"state": s.String()},
		}, func() float64 { totals, _ := r.recorder.Totals(); return float64(totals[s]) }))
	}
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "fanfare_outcome_commits_total", Help: "Transactions in which outcomes were kept.",
	}, func() float64 { _, groups := r.recorder.Totals(); return float64(groups) }))
	gauge("fanfare_broadcasts_open", "Broadcasts that are not completed.", func() float64 {
		open, _, _ := r.recorder.Backlog()
		return float64(open)
	})
	gauge("fanfare_broadcasts_held", "Broadcasts that wait for approval.", func() float64 { return float64(len(r.switches.heldBroadcasts())) })
	gauge("fanfare_deliveries_pending", "Deliveries in a manifest of which nothing was tried yet.", func() float64 {
		_, pending, _ := r.recorder.Backlog()
		return float64(pending)
	})
	gauge("fanfare_deliveries_deferred", "Deliveries between two attempts.", func() float64 {
		_, _, deferred := r.recorder.Backlog()
		return float64(deferred)
	})
	registry.MustRegister(suppressionMetrics{r})
	gauge("fanfare_state_keys", "Keys of topics whose last event is known.", func() float64 { return float64(r.states.Total().Keys) })
	gauge("fanfare_index_lag_events", "Events whose deliveries cannot be found by person through the index yet.", func() float64 { return float64(r.indexing.Lag()) })
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "fanfare_notices_total", Help: "Outcomes of deliveries, and changes of subscriptions and suppressions, that were looked at for services that hear of them, since the start.",
	}, func() float64 { return float64(r.notifier.Posted()) }))
	gauge("fanfare_notices_waiting", "Outcomes and changes that services are to be told of and are not yet.", func() float64 { return float64(r.notifier.Waiting()) })
	gauge("fanfare_notices_lag_seconds", "For how long the oldest of these has waited.", func() float64 { return r.notifier.Lag().Seconds() })
	gauge("fanfare_disk_free_bytes", "Free disk of the data directory.", func() float64 { return float64(r.floor.Free()) })
	gauge("fanfare_change_seq", "Number of the last change of subscriptions.", func() float64 { return float64(r.registry.ChangeSeq()) })
	gauge("fanfare_subscriptions_not_understood", "Subscriptions whose conditions the start did not understand: they match nothing.", func() float64 { return float64(r.registry.Unmatched()) })
	verifierMetrics(r.verifier, registry)
	if r.inbound != nil {
		r.inbound.RegisterMetrics(registry)
	}
	registry.MustRegister(r.channels, r.database, r.feedback)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
