package imap

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a server.
type metrics struct {
	connections prometheus.Counter
	refused     prometheus.Counter
	panics      prometheus.Counter
	logins      *prometheus.CounterVec
	commands    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		connections: prometheus.NewCounter(prometheus.CounterOpts{Name: "fanfare_imap_connections_total", Help: "Accepted IMAP connections since the server started."}),
		refused:     prometheus.NewCounter(prometheus.CounterOpts{Name: "fanfare_imap_refused_connections_total", Help: "IMAP connections above a limit since the server started."}),
		panics:      prometheus.NewCounter(prometheus.CounterOpts{Name: "fanfare_imap_panics_total", Help: "IMAP sessions that ended by an internal error since the server started."}),
		logins:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fanfare_imap_logins_total", Help: "IMAP logins since the server started, by result."}, []string{"result"}),
		commands:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fanfare_imap_commands_total", Help: "IMAP commands since the server started, by name and result."}, []string{"command", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fanfare_imap_command_seconds", Help: "Time of IMAP commands from their last byte to their response.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}}, []string{"command"}),
	}
}

// knownCommands bounds the values of the label command.
var knownCommands = map[string]bool{}

func init() {
	for _, name := range []string{
		"CAPABILITY", "NOOP", "LOGOUT", "ID", "STARTTLS", "LOGIN", "AUTHENTICATE", "ENABLE", "SELECT", "EXAMINE", "CREATE", "DELETE", "RENAME", "SUBSCRIBE", "UNSUBSCRIBE", "LIST", "LSUB",
		"NAMESPACE", "STATUS", "APPEND", "IDLE", "GETQUOTA", "GETQUOTAROOT", "SETQUOTA", "COMPRESS", "CHECK", "CLOSE", "UNSELECT", "EXPUNGE", "SEARCH", "FETCH", "STORE", "COPY", "MOVE",
		"UID EXPUNGE", "UID SEARCH", "UID FETCH", "UID STORE", "UID COPY", "UID MOVE",
	} {
		knownCommands[name] = true
	}
}

// command counts a command. IDLE has no time.
func (m *metrics) command(name, result string, took time.Duration) {
	if !knownCommands[name] {
		name = "other"
	}
	m.commands.WithLabelValues(name, result).Inc()
	if took > 0 && name != "IDLE" {
		m.duration.WithLabelValues(name).Observe(took.Seconds())
	}
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, to) }

// Collect implements prometheus.Collector.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	m := s.metrics
	for _, c := range []prometheus.Collector{m.connections, m.refused, m.panics, m.logins, m.commands, m.duration} {
		c.Collect(to)
	}
	s.mu.Lock()
	open, waiting := len(s.open), s.waiting
	s.mu.Unlock()
	to <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(open-waiting), "logged_in")
	to <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(waiting), "before_login")
}

var sessionsDesc = prometheus.NewDesc("fanfare_imap_sessions", "Open IMAP connections, by state.", []string{"state"}, nil)
