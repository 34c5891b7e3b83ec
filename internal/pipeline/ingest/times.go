package ingest

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
)

// MaxAheadDays is how many days ahead an event may be scheduled: a year, and a leap day. The
// store keeps the day of an event until its broadcast has ended.
const MaxAheadDays = 366

// CheckTimes refuses an event that could never be sent, or is scheduled too far ahead.
func CheckTimes(p *fanfare.AcceptedEvent, now time.Time) error {
	for _, of := range []struct {
		pointer string
		at      time.Time
	}{{"/time", p.Event.Time}, {"/not_before", p.NotBefore}, {"/expires", p.Expires}} {
		if year := of.at.UTC().Year(); year < 0 || year > 9999 { // its zone moves it there
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: of.pointer, Message: "is not in the years 0000 to 9999 of UTC, which are all that RFC 3339 can write", Hint: "leave it out, or name a time that is nearer"}
		}
	}
	switch {
	case p.NotBefore.Sub(now) > MaxAheadDays*24*time.Hour:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/not_before", Message: fmt.Sprintf("is more than %d days ahead", MaxAheadDays),
			Hint: "publish the event later"}
	case p.Expires.IsZero():
		return nil
	case !p.Expires.After(now):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/expires", Message: "is over already", Hint: "nothing would leave"}
	case !p.Expires.After(p.NotBefore):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/expires", Message: "is not after not_before", Hint: "nothing would leave"}
	}
	return nil
}

// CheckTimes refuses an event for what Post would refuse of its times.
func (c *Collector) CheckTimes(p *fanfare.AcceptedEvent) error {
	return CheckTimes(p, c.options.Clock.Now())
}
