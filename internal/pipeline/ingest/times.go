package ingest

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
)

// MaxAheadDays is how many days ahead an event may be scheduled: a year, and a leap day. The
// store keeps the day of an event until its broadcast has ended.
const MaxAheadDays = 366

// CheckTimes returns an error for an event that could never be sent, or is scheduled too far ahead.
func CheckTimes(p *fanfare.AcceptedEvent, now time.Time) error {
	for _, of := range []struct {
		pointer string
		at      time.Time
	}{{"/time", p.Event.Time}, {"/not_before", p.NotBefore}, {"/expires", p.Expires}} {
		if year := of.at.UTC().Year(); year < 0 || year > 9999 { // in UTC
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: of.pointer, Message: "is outside the years 0000 to 9999 in UTC, which RFC 3339 requires", Hint: "omit it, or set an earlier or later time"}
		}
	}
	switch {
	case p.NotBefore.Sub(now) > MaxAheadDays*24*time.Hour:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/not_before", Message: fmt.Sprintf("is more than %d days ahead", MaxAheadDays),
			Hint: "publish the event later"}
	case p.Expires.IsZero():
		return nil
	case !p.Expires.After(now):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/expires", Message: "is in the past", Hint: "set a later time; otherwise no message can be sent"}
	case !p.Expires.After(p.NotBefore):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/expires", Message: "is not after not_before", Hint: "set a later time; otherwise no message can be sent"}
	}
	return nil
}

// CheckTimes returns the error that Post would return for the times of an event.
func (in *Ingester) CheckTimes(p *fanfare.AcceptedEvent) error {
	return CheckTimes(p, in.options.Clock.Now())
}
