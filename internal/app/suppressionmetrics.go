package app

import "github.com/prometheus/client_golang/prometheus"

// suppressionMetrics counts the addresses that nobody writes to.
type suppressionMetrics struct{ *reports }

var suppressionsDesc = prometheus.NewDesc("fanfare_suppressions", "Addresses on the suppression list, of all services together.", []string{"reason"}, nil)

func (m suppressionMetrics) Describe(to chan<- *prometheus.Desc) { to <- suppressionsDesc }

func (m suppressionMetrics) Collect(to chan<- prometheus.Metric) {
	for reason, count := range m.registry.SuppressedBy() {
		to <- prometheus.MustNewConstMetric(suppressionsDesc, prometheus.GaugeValue, float64(count), reason)
	}
}
