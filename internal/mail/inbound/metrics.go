package inbound

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics registers the counters of the server.
func (s *Server) RegisterMetrics(to *prometheus.Registry) {
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fanfare_inbound_sessions", Help: "Open connections of the inbound mail server.",
	}, func() float64 { return float64(s.Counts().Open) }))
	for result, count := range map[string]func(Counts) int64{
		"taken":   func(c Counts) int64 { return c.Taken },
		"not_now": func(c Counts) int64 { return c.NotNow },
		"large":   func(c Counts) int64 { return c.TooLarge },
	} {
		to.MustRegister(s.counter("fanfare_inbound_messages_total", "Messages that were sent to the inbound mail server, since the start, by what was answered.", "result", result, count))
	}
	for kind, count := range map[string]func(Counts) int64{
		"bounce":      func(c Counts) int64 { return c.Bounces },
		"unsubscribe": func(c Counts) int64 { return c.Unsubscribes },
		"ignored":     func(c Counts) int64 { return c.Ignored },
		"person":      func(c Counts) int64 { return c.Kept },
	} {
		to.MustRegister(s.counter("fanfare_inbound_arrivals_total", "Mails received since the start, by purpose; ignored are automatic answers to an unsubscribe address.", "kind", kind, count))
	}
	for reason, count := range map[string]func(Counts) int64{
		"limit":     func(c Counts) int64 { return c.TurnedAway },
		"recipient": func(c Counts) int64 { return c.Refused },
		"broken":    func(c Counts) int64 { return c.Broken },
	} {
		to.MustRegister(s.counter("fanfare_inbound_refused_total", "Refusals of the inbound mail server since the start: connections beyond a limit, unknown recipients, sessions ended for broken lines.", "reason", reason, count))
	}
}

func (s *Server) counter(name, help, label, value string, count func(Counts) int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}},
		func() float64 { return float64(count(s.Counts())) })
}
