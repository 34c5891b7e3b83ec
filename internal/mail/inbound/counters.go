package inbound

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counts are the totals since the start of the server.
type Counts struct {
	Open       int   // current sessions
	Sessions   int64 // all sessions
	TurnedAway int64 // connections beyond a limit

	Taken        int64 // accepted messages
	Bounces      int64 // of these, bounces
	Unsubscribes int64 // of these, unsubscribe emails
	Ignored      int64 // of these, automatic replies to an unsubscribe address
	Kept         int64 // of these, for postmaster or abuse
	Delivered    int64 // of these, recipients with a mailbox

	WrongLogins int64

	NotNow   int64 // messages answered with 451 or 452
	Refused  int64 // unknown recipients
	TooLarge int64 // messages above the limit
	Broken   int64 // sessions ended for ambiguous input
	Panics   int64
}

type counters struct {
	sessions, turnedAway, taken, bounces, unsubscribes, ignored, kept atomic.Int64
	notNow, refused, tooLarge, broken, panics, delivered, wrongLogins atomic.Int64
}

// Counts returns the current counts.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	open := len(s.open)
	s.mu.Unlock()
	c := &s.counters
	return Counts{
		Open: open, Sessions: c.sessions.Load(), TurnedAway: c.turnedAway.Load(),
		Taken: c.taken.Load(), Bounces: c.bounces.Load(), Unsubscribes: c.unsubscribes.Load(), Ignored: c.ignored.Load(), Kept: c.kept.Load(), Delivered: c.delivered.Load(), WrongLogins: c.wrongLogins.Load(),
		NotNow: c.notNow.Load(), Refused: c.refused.Load(), TooLarge: c.tooLarge.Load(), Broken: c.broken.Load(), Panics: c.panics.Load(),
	}
}

// RegisterMetrics registers the counters of the server.
func (s *Server) RegisterMetrics(to prometheus.Registerer) {
	if s.options.Kind != Returns {
		s.registerMailboxMetrics(to)
		return
	}
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fanfare_inbound_sessions", Help: "Open connections of the inbound mail server.",
	}, func() float64 { return float64(s.Counts().Open) }))
	for result, count := range map[string]func(Counts) int64{
		"taken":   func(c Counts) int64 { return c.Taken },
		"not_now": func(c Counts) int64 { return c.NotNow },
		"large":   func(c Counts) int64 { return c.TooLarge },
	} {
		to.MustRegister(s.counter("fanfare_inbound_messages_total", "Messages sent to the inbound mail server since the server started, by result.", "result", result, count))
	}
	for kind, count := range map[string]func(Counts) int64{
		"bounce":      func(c Counts) int64 { return c.Bounces },
		"unsubscribe": func(c Counts) int64 { return c.Unsubscribes },
		"ignored":     func(c Counts) int64 { return c.Ignored },
		"person":      func(c Counts) int64 { return c.Kept },
	} {
		to.MustRegister(s.counter("fanfare_inbound_arrivals_total", "Messages received since the server started, by kind; automatic replies to an unsubscribe address are counted as ignored.", "kind", kind, count))
	}
	for reason, count := range map[string]func(Counts) int64{
		"limit":     func(c Counts) int64 { return c.TurnedAway },
		"recipient": func(c Counts) int64 { return c.Refused },
		"broken":    func(c Counts) int64 { return c.Broken },
	} {
		to.MustRegister(s.counter("fanfare_inbound_refused_total", "Refusals of the inbound mail server since the server started, by reason: connections above a limit, unknown recipients and sessions closed because of malformed lines.", "reason", reason, count))
	}
}

// registerMailboxMetrics registers the counters of a server for mailboxes.
func (s *Server) registerMailboxMetrics(to prometheus.Registerer) {
	labels := func(more ...string) prometheus.Labels {
		l := prometheus.Labels{"listener": s.options.Listener}
		for i := 0; i < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fanfare_mailbox_sessions", Help: "Open connections of the LMTP and submission servers.", ConstLabels: labels(),
	}, func() float64 { return float64(s.Counts().Open) }))
	counter := func(name, help string, l prometheus.Labels, count func(Counts) int64) {
		to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: l}, func() float64 { return float64(count(s.Counts())) }))
	}
	counter("fanfare_mailbox_deliveries_total", "Messages stored in mailboxes by the LMTP and submission servers since the server started, counted for each recipient.", labels(),
		func(c Counts) int64 { return c.Delivered })
	for reason, count := range map[string]func(Counts) int64{
		"limit":     func(c Counts) int64 { return c.TurnedAway },
		"recipient": func(c Counts) int64 { return c.Refused },
		"login":     func(c Counts) int64 { return c.WrongLogins },
		"large":     func(c Counts) int64 { return c.TooLarge },
		"not_now":   func(c Counts) int64 { return c.NotNow },
		"broken":    func(c Counts) int64 { return c.Broken },
	} {
		counter("fanfare_mailbox_refused_total", "Refusals of the LMTP and submission servers since the server started, by reason: connections above a limit, recipients, logins, messages above the limit, messages that could not be stored, and sessions closed because of malformed lines.", labels("reason", reason), count)
	}
}

func (s *Server) counter(name, help, label, value string, count func(Counts) int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}},
		func() float64 { return float64(count(s.Counts())) })
}
