package httpapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// The extension attributes in which a CloudEvent sets the times of its messages;
// expirytime is the one that the CloudEvents project documents.
const (
	notBeforeExtension = "notbefore"
	expiresExtension   = "expires"
	expirytime         = "expirytime"
)

// times is the period in which the messages of an event may be sent. Zero: no limit.
type times struct{ notBefore, expires time.Time }

// timesOf reads the times in the query, which apply to all events of a request.
func timesOf(q url.Values) (t times, err error) {
	if t.notBefore, err = timeIn("not_before", q.Get("not_before")); err == nil {
		t.expires, err = timeIn("expires", q.Get("expires"))
	}
	return t, err
}

// apply sets the times of an event, unless the event has its own.
func (t times) apply(p *fanfare.AcceptedEvent) (err error) {
	p.NotBefore, p.Expires = t.notBefore, t.expires
	for _, of := range []struct {
		name string
		to   *time.Time
	}{{notBeforeExtension, &p.NotBefore}, {expirytime, &p.Expires}, {expiresExtension, &p.Expires}} {
		raw, ok := p.Event.Extensions[of.name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if *of.to, err = timeIn(of.name, text); err != nil {
			return err
		}
	}
	return nil
}

func timeIn(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: fmt.Sprintf("%q is not a valid time", text), Hint: httpio.TimeHint}
	}
	return at.UTC(), nil
}
