package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
)

// metrics adds what is counted of answers.
func (r *replies) metrics(to *prometheus.Registry) {
	for i := range r.counts {
		class := "none"
		if i < len(fanfare.Classes) {
			class = string(fanfare.Classes[i])
		}
		to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "fanfare_answers_total", Help: "Attempts that were not taken, since the start, by the class of the answer.",
			ConstLabels: prometheus.Labels{"class": class},
		}, func() float64 { return float64(r.counts[i].Load()) }))
	}
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fanfare_reply_rules_refused", Help: "1 while the file of reply_rules cannot be used.",
	}, func() float64 {
		if r.fault.Load() != nil {
			return 1
		}
		return 0
	}))
}
