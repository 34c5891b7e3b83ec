package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/registry"
)

// suppressionMetrics counts the addresses that nobody writes to.
type suppressionMetrics struct{ *reports }

var suppressionsDesc = prometheus.NewDesc("fanfare_suppressions", "Addresses on the suppression list, of all services together.", []string{"reason"}, nil)

func (m suppressionMetrics) Describe(to chan<- *prometheus.Desc) { to <- suppressionsDesc }

func (m suppressionMetrics) Collect(to chan<- prometheus.Metric) {
	counts := m.registry.SuppressedBy()
	for _, reason := range registry.SuppressionReasons {
		to <- prometheus.MustNewConstMetric(suppressionsDesc, prometheus.GaugeValue, float64(counts[reason]), reason)
	}
}
