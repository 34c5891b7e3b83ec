package inspect

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
)

// MatchCheck reports how matches are checked.
func MatchCheck(v *verify.Verifier, r *registry.Registry) *wire.MatchCheck {
	s := v.Status()
	out := &wire.MatchCheck{
		Share: config.Share(s.Share).String(), Events: s.Events, Reported: s.Reported, Unreported: s.Unreported, Undecided: s.Undecided, Seconds: s.Time.Seconds(),
		Contradictions: s.Extra + s.Missing,
	}
	for _, q := range s.Quarantined {
		one := wire.QuarantinedCondition{Filter: q.Filter, Since: q.Since, Event: q.Event, Index: q.Index, Evaluator: q.Evaluator}
		if t, ok := r.Configuration().TopicNumbered(q.Topic); ok {
			one.Service, one.Topic = t.Service, t.Name
		}
		if q.Subscription != 0 {
			one.Subscription = fanfare.SubscriptionID(q.Subscription)
		}
		out.Quarantined = append(out.Quarantined, one)
	}
	return out
}

// RegisterMatchMetrics registers the counters of a Verifier.
func RegisterMatchMetrics(v *verify.Verifier, to *prometheus.Registry) {
	counter := func(name, help string, labels prometheus.Labels, value func(*verify.Status) float64) {
		to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			s := v.Status()
			return value(&s)
		}))
	}
	const contradictions = "Conditions for which the matching index contradicted the independent evaluator, which is a bug in Fanfare."
	counter("fanfare_match_contradictions_total", contradictions, prometheus.Labels{"kind": "extra"}, func(s *verify.Status) float64 { return float64(s.Extra) })
	counter("fanfare_match_contradictions_total", contradictions, prometheus.Labels{"kind": "missing"}, func(s *verify.Status) float64 { return float64(s.Missing) })
	const checks = "Conditions that the independent evaluator evaluated in addition to the matching index."
	counter("fanfare_match_checks_total", checks, prometheus.Labels{"kind": "reported"}, func(s *verify.Status) float64 { return float64(s.Reported) })
	counter("fanfare_match_checks_total", checks, prometheus.Labels{"kind": "unreported"}, func(s *verify.Status) float64 { return float64(s.Unreported) })
	counter("fanfare_match_undecided_total", "Checks that the independent evaluator could not decide.", nil, func(s *verify.Status) float64 { return float64(s.Undecided) })
	counter("fanfare_match_check_seconds_total", "Time spent on the checks.", nil, func(s *verify.Status) float64 { return s.Time.Seconds() })
	counter("fanfare_events_matched_total", "Events whose conditions this server evaluated.", nil, func(s *verify.Status) float64 { return float64(s.Events) })
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fanfare_match_quarantined", Help: "Conditions that are evaluated without the matching index because it returned wrong results for them."}, func() float64 {
		return float64(len(v.Status().Quarantined))
	}))
}
