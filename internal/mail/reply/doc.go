// Package reply reads what next hops answer: an ordered list of rules gives each
// answer a class, and may say what it means for the destination.
//
// The built-in rules (smtp_codes.yaml) follow RFC 5321, RFC 3463 and the RFCs that
// add to its codes, RFC 9110, and what large receivers publish about their
// answers. An operator's rules go before them, so that the first that fits an
// answer counts.
//
// State. None: Rules never change once they are read.
//
// Failure. A file of rules is taken as a whole or not at all; the error names the
// rule and its field. An answer that no rule fits has no class, and is treated by
// its verdict alone.
package reply

import (
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Rules are rules in the order in which they are tried.
type Rules struct{ list []*Rule }

// All returns the rules in order. They belong to Rules.
func (r *Rules) All() []*Rule { return r.list }

// Before returns the rules of r and behind them those of others.
func (r *Rules) Before(others *Rules) *Rules {
	all := make([]*Rule, 0, len(r.list)+len(others.list))
	return &Rules{append(append(all, r.list...), others.list...)}
}

// A Reading is what the rules say of an answer.
type Reading struct {
	Rule       *Rule // the one that counts; nil if none fits
	Class      fanfare.Class
	Verdict    driver.Verdict
	RetryAfter time.Duration // what the peer asks for, or else the rule
	Suspend    time.Duration // send the destination nothing for so long
	Slow       bool          // send the destination less
}

// MaxWait is the longest wait that a peer is granted: a delivery is not put off
// for a year because somebody says so.
const MaxWait = 24 * time.Hour

// Read classifies the answer of a destination to a driver. It does not change an accepted
// outcome or a class that the driver has set.
func (r *Rules) Read(driverName, destination string, o *driver.Outcome) Reading {
	reading := Reading{Class: o.Class, Verdict: o.Verdict, RetryAfter: clip(o.RetryAfter)}
	if o.Verdict == driver.Accepted {
		return reading
	}
	a := answer{driver: driverName, destination: destination, outcome: o, enhanced: enhancedIn(o.Text), text: strings.ToLower(o.Text)}
	for _, rule := range r.list {
		if rule.fits(&a) {
			reading.Rule = rule
			break
		}
	}
	if rule := reading.Rule; rule != nil {
		rule.apply(&reading)
	}
	if reading.RetryAfter == 0 && reading.Verdict != driver.Permanent {
		reading.RetryAfter = clip(waitIn(a.text))
	}
	if rule := reading.Rule; rule != nil && reading.RetryAfter == 0 {
		reading.RetryAfter = rule.After
	}
	return reading
}

func clip(d time.Duration) time.Duration { return max(0, min(d, MaxWait)) }
