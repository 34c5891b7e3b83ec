// Package reply classifies the replies of next hops. The first matching rule of an ordered list
// gives a reply its class, and may determine what the reply means for the destination.
//
// The built-in rules (smtp_codes.yaml) follow RFC 5321, RFC 3463 and the RFCs that add to its
// codes, RFC 9110, and the documentation of large receivers. The rules of an operator take
// precedence over them.
//
// Rules never change after they are parsed. A file with an invalid rule is refused completely; the
// error names the rule and its field. A reply that no rule matches has no class, and only its
// verdict counts.
package reply

import (
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Rules is a list of rules in the order in which they are tried.
type Rules struct{ list []*Rule }

// All returns the rules in order. The caller must not change them.
func (r *Rules) All() []*Rule { return r.list }

// Before returns the rules of r followed by the rules of others.
func (r *Rules) Before(others *Rules) *Rules {
	all := make([]*Rule, 0, len(r.list)+len(others.list))
	return &Rules{append(append(all, r.list...), others.list...)}
}

// A Reading is the result of the rules for a reply.
type Reading struct {
	Rule       *Rule // the rule that matched; nil if none did
	Class      fanfare.Class
	Verdict    driver.Verdict
	RetryAfter time.Duration // wait that the peer or else the rule asks for
	Suspend    time.Duration // how long to send nothing to the destination
	Slow       bool          // whether to send less to the destination
}

// MaxWait is the longest wait that a peer can ask for. It prevents a peer from delaying a delivery
// for, say, a year.
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
