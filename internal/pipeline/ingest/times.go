package ingest

import (
	"fmt"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
)

// CheckTimes refuses an event that could never leave, or would have to be kept for
// longer than anything is: ahead is how far ahead it may leave.
func CheckTimes(p *fanfare.AcceptedEvent, now time.Time, ahead time.Duration) error {
	for _, of := range []struct {
		pointer string
		at      time.Time
	}{{"/time", p.Event.Time}, {"/not_before", p.NotBefore}, {"/expires", p.Expires}} {
		if year := of.at.UTC().Year(); year < 0 || year > 9999 { // its zone moves it there
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: of.pointer, Message: "is not in the years 0000 to 9999 of UTC, which are all that RFC 3339 can write", Hint: "leave it out, or name a time that is nearer"}
		}
	}
	switch {
	case p.NotBefore.Sub(now) > ahead:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/not_before", Message: fmt.Sprintf("is more than %s ahead", inDays(ahead)),
			Hint: "send it later; how far ahead is half of retention_days"}
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
	return CheckTimes(p, c.options.Clock.Now(), c.options.Ahead)
}

// inDays words a time that is half of a number of days.
func inDays(d time.Duration) string {
	if d == 24*time.Hour {
		return "1 day"
	}
	return strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) + " days"
}
