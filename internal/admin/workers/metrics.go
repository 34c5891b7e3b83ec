package workers

import "github.com/prometheus/client_golang/prometheus"

var (
	workerLabels    = []string{"service", "worker"}
	sessionsOpen    = prometheus.NewDesc("fanfare_sessions", "Open sessions.", workerLabels, nil)
	sessionsQueued  = prometheus.NewDesc("fanfare_session_requests_queued", "Requests of sessions that wait for an instance.", workerLabels, nil)
	sessionsRunning = prometheus.NewDesc("fanfare_session_tasks_running", "Tasks of sessions at instances.", workerLabels, nil)
	workerInstances = prometheus.NewDesc("fanfare_worker_instances", "Connected instances; state: working or draining.", []string{"service", "worker", "state"}, nil)
	sessionRequests = prometheus.NewDesc("fanfare_session_requests_total", "Requests of sessions, without repetitions and refusals, since the server started.", workerLabels, nil)
	sessionReplies  = prometheus.NewDesc("fanfare_session_responses_total", "Responses of sessions since the server started, faults included.", workerLabels, nil)
	sessionFaults   = prometheus.NewDesc("fanfare_session_faults_total", "Responses of sessions that are faults, since the server started.", workerLabels, nil)
	sessionResends  = prometheus.NewDesc("fanfare_session_resends_total", "Requests of sessions that were sent again after a retry or a timeout, since the server started.", workerLabels, nil)
	sessionLate     = prometheus.NewDesc("fanfare_session_late_results_total", "Results that arrived after the timeout of their task and were dropped, since the server started.", workerLabels, nil)
)

// Metrics reports the workers with their sessions.
type Metrics struct{ Report Report }

// Describe names the metrics.
func (m Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sessionsOpen, sessionsQueued, sessionsRunning, workerInstances, sessionRequests, sessionReplies, sessionFaults, sessionResends, sessionLate} {
		to <- d
	}
}

// Collect reports the current state.
func (m Metrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range m.Report.Services.Configuration().Services() {
		for _, w := range m.Report.Broker.Workers(s.Name) {
			gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{s.Name, w.Name}, labels...)...)
			}
			counter := func(desc *prometheus.Desc, value uint64) {
				to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), s.Name, w.Name)
			}
			draining := 0
			for _, i := range w.Instances {
				if i.Draining {
					draining++
				}
			}
			gauge(sessionsOpen, float64(w.Sessions))
			gauge(sessionsQueued, float64(w.Queued))
			gauge(sessionsRunning, float64(w.Running))
			gauge(workerInstances, float64(len(w.Instances)-draining), "working")
			gauge(workerInstances, float64(draining), "draining")
			counter(sessionRequests, w.Totals.Requests)
			counter(sessionReplies, w.Totals.Responses)
			counter(sessionFaults, w.Totals.Faults)
			counter(sessionResends, w.Totals.Resends)
			counter(sessionLate, w.Totals.LateResults)
		}
	}
}
