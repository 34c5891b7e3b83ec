package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
)

// mailboxMetrics are the metrics of the search index of mailboxes.
type mailboxMetrics struct {
	store *mailbox.Store
	clock clock.Clock
}

var (
	waitingMetric = prometheus.NewDesc("fanfare_mailbox_search_waiting", "Messages that wait for the search index of mailboxes, at most 1,000,000. Searches read them.", nil, nil)
	lagMetric     = prometheus.NewDesc("fanfare_mailbox_search_lag_seconds", "Time since messages have been waiting for the search index of mailboxes without a break.", nil, nil)
)

// Describe returns the metrics.
func (mailboxMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- waitingMetric
	to <- lagMetric
}

// metricsTime is the time limit for reading the state of the index.
const metricsTime = 2 * time.Second

// Collect reads the metrics. They are absent if the index is off or the database cannot be read.
func (m mailboxMetrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), metricsTime)
	defer cancel()
	index, err := m.store.SearchIndex(ctx)
	if err != nil || !index.Enabled {
		return
	}
	lag := 0.0
	if !index.Since.IsZero() {
		lag = max(0, m.clock.Now().Sub(index.Since).Seconds())
	}
	to <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(index.Waiting))
	to <- prometheus.MustNewConstMetric(lagMetric, prometheus.GaugeValue, lag)
}
