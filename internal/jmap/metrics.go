package jmap

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a server.
type metrics struct {
	logins   *prometheus.CounterVec
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fanfare_jmap_logins_total", Help: "JMAP requests with a login since the server started, by the kind of the login and the result."}, []string{"kind", "result"}),
		calls:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fanfare_jmap_calls_total", Help: "JMAP method calls since the server started, by method and result."}, []string{"method", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fanfare_jmap_call_seconds", Help: "Time of JMAP method calls.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}}, []string{"method"}),
	}
}

// call counts a call of a known method.
func (m *metrics) call(method, failure string, took time.Duration) {
	result := "ok"
	if failure != "" {
		result = failure
	}
	m.calls.WithLabelValues(method, result).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}

// login counts a login.
func (m *metrics) login(kind string, err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	m.logins.WithLabelValues(kind, result).Inc()
}

var runningDesc = prometheus.NewDesc("fanfare_jmap_running", "JMAP requests, uploads and streams that run now.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, to) }

// Collect implements prometheus.Collector.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{s.metrics.logins, s.metrics.calls, s.metrics.duration} {
		c.Collect(to)
	}
	running := map[resource]int{}
	s.mu.Lock()
	for key, n := range s.counts {
		running[key.of] += n
	}
	s.mu.Unlock()
	for kind, name := range map[resource]string{requests: "request", uploads: "upload", streams: "stream"} {
		to <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(running[kind]), name)
	}
}
