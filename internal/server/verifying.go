package server

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/registry"
)

// verifiedSubscriptions is the registry as a Verifier sees it.
type verifiedSubscriptions struct{ *registry.Registry }

// Entries visits the active subscriptions of some subscribers to a topic.
func (s verifiedSubscriptions) Entries(ctx context.Context, topic uint32, subscribers []fanfare.RowID, visit func(*condition.Entry) error) error {
	return s.EntriesOf(ctx, topic, subscribers, visit)
}

// Quarantine stores conditions about which the index was wrong.
func (s verifiedSubscriptions) Quarantine(ctx context.Context, list []verify.Quarantined) error {
	return s.Registry.Quarantine(ctx, registryQuarantine(list))
}

// Release forgets them.
func (s verifiedSubscriptions) Release(ctx context.Context, list []verify.Quarantined) error {
	return s.Registry.Release(ctx, registryQuarantine(list))
}

// Quarantined lists them.
func (s verifiedSubscriptions) Quarantined() (list []verify.Quarantined) {
	for _, q := range s.Registry.Quarantined() {
		list = append(list, verify.Quarantined(q))
	}
	return list
}

func registryQuarantine(list []verify.Quarantined) []registry.Quarantine {
	kept := make([]registry.Quarantine, len(list))
	for i, q := range list {
		kept[i] = registry.Quarantine(q)
	}
	return kept
}

// openVerifier begins to check what the index says.
func (h *house) openVerifier(context.Context) error {
	share := verify.Share(h.config.MatchCheck)
	h.verifier = verify.New(verify.Options{
		Index: h.index, Store: verifiedSubscriptions{h.people}, Share: share, Meter: processMeter{time.Now()}, Now: h.clock.Now, Logger: h.log,
	})
	if n := len(h.people.Quarantined()); n > 0 {
		h.log.Warn("conditions are in quarantine since the matching index was wrong about them: they are evaluated without it, see fanfare status", "conditions", n)
	}
	return nil
}

// processMeter measures the time and the processor time of this process.
type processMeter struct{ begun time.Time }

// Elapsed is the time since the meter was made.
func (m processMeter) Elapsed() time.Duration { return time.Since(m.begun) }

// Processor is the processor time that the process has used, in user and in system mode.
func (m processMeter) Processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func verifiedTopic(t *catalog.Topic) verify.Topic {
	return verify.Topic{Key: condition.Key{Service: t.Service, Topic: t.Name}, Number: t.Number}
}

// SecondOpinion evaluates the condition of a subscription independently of the index, asks
// the index the same, and tells whether the condition is in quarantine.
func (c conditions) SecondOpinion(ctx context.Context, s *registry.Subscription, event *fanfare.Event, was []byte) (report.Opinion, error) {
	topic, ok := c.Topic(s.Service, s.Topic)
	if !ok {
		return report.Opinion{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + s.Topic}
	}
	entry := condition.Entry{Place: s.Place, Filter: s.Filter, Rule: s.Rule, Params: s.Params}
	if s.Rule != "" && entry.Params == nil {
		entry.Params = []byte("{}")
	}
	of := condition.EventOf(event)
	of.Previous = was
	verdict, err := c.verifier.Evaluate(verifiedTopic(topic), &entry, of)
	if err != nil {
		return report.Opinion{}, err
	}
	o := report.Opinion{Result: verdict.Result.String(), Reason: verdict.Reason}
	if q, is := c.verifier.InQuarantine(verifiedTopic(topic), &entry); is {
		o.Quarantined = fmt.Sprintf("since %s, when at the event %s the index said %q and the evaluator %q", q.Since.Format(time.RFC3339), q.Event, q.Index, q.Evaluator)
	}
	if s.State != "active" {
		return o, nil // it is not in the index
	}
	if err := c.asking.Lock(ctx); err != nil {
		return o, err
	}
	defer c.asking.Unlock()
	o.Indexed = true
	err = c.index.Places(condition.Key{Service: s.Service, Topic: s.Topic}, of, func(places []uint32) {
		for _, place := range places {
			o.Found = o.Found || fanfare.RowID(place) == s.Place
		}
	})
	return o, err
}

// matchCheckStatus says how matches are checked.
func (r *reports) matchCheckStatus() *wire.MatchCheck {
	s := r.verifier.Status()
	out := &wire.MatchCheck{
		Share: config.Share(s.Share).String(), Events: s.Events, Reported: s.Reported, Unreported: s.Unreported, Undecided: s.Undecided, Seconds: s.Time.Seconds(),
		Contradictions: s.Extra + s.Missing,
	}
	for _, q := range s.Quarantined {
		one := wire.QuarantinedCondition{Filter: q.Filter, Since: q.Since, Event: q.Event, Index: q.Index, Evaluator: q.Evaluator}
		if t, ok := r.registry.Configuration().TopicNumbered(q.Topic); ok {
			one.Service, one.Topic = t.Service, t.Name
		}
		if q.Subscription != 0 {
			one.Subscription = fanfare.SubscriptionID(q.Subscription)
		}
		out.Quarantined = append(out.Quarantined, one)
	}
	return out
}

// verifierMetrics register what the Verifier counts.
func verifierMetrics(v *verify.Verifier, to *prometheus.Registry) {
	counter := func(name, help string, labels prometheus.Labels, value func(*verify.Status) float64) {
		to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			s := v.Status()
			return value(&s)
		}))
	}
	const contradictions = "Conditions about which the matching index contradicted the independent evaluator: a defect of Fanfare."
	counter("fanfare_match_contradictions_total", contradictions, prometheus.Labels{"kind": "extra"}, func(s *verify.Status) float64 { return float64(s.Extra) })
	counter("fanfare_match_contradictions_total", contradictions, prometheus.Labels{"kind": "missing"}, func(s *verify.Status) float64 { return float64(s.Missing) })
	const checks = "Conditions that the independent evaluator evaluated beside the matching index."
	counter("fanfare_match_checks_total", checks, prometheus.Labels{"kind": "reported"}, func(s *verify.Status) float64 { return float64(s.Reported) })
	counter("fanfare_match_checks_total", checks, prometheus.Labels{"kind": "unreported"}, func(s *verify.Status) float64 { return float64(s.Unreported) })
	counter("fanfare_match_undecided_total", "Checks in which the independent evaluator could not decide.", nil, func(s *verify.Status) float64 { return float64(s.Undecided) })
	counter("fanfare_match_check_seconds_total", "Time that the checks took.", nil, func(s *verify.Status) float64 { return s.Time.Seconds() })
	counter("fanfare_events_matched_total", "Events that were matched.", nil, func(s *verify.Status) float64 { return float64(s.Events) })
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fanfare_match_quarantined", Help: "Conditions that are evaluated without the matching index, because it was wrong about them."}, func() float64 {
		return float64(len(v.Status().Quarantined))
	}))
}
