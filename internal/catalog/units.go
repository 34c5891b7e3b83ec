package catalog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Duration is a time.Duration in Go syntax: 30s, 2m, 1h30m.
type Duration time.Duration

// String returns the shortest form that ParseDuration reads: 10m, not 10m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// A Rate is a number of messages per time. The zero Rate is unlimited.
type Rate struct {
	Count int
	Per   time.Duration // second, minute or hour
}

// PerSecond returns the rate in messages per second; 0 is unlimited.
func (r Rate) PerSecond() float64 {
	if r.Count == 0 {
		return 0
	}
	return float64(r.Count) / r.Per.Seconds()
}

// Unlimited is the text form of the zero Rate.
const Unlimited = "unlimited"

var rateUnits = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}

// ParseRate reads "30/s", "1000/min", "5000/h" or "unlimited".
func ParseRate(s string) (Rate, error) {
	if s == Unlimited {
		return Rate{}, nil
	}
	count, unit, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(count)
	per, known := rateUnits[unit]
	if err != nil || !known || n < 1 || n > 10_000_000 {
		return Rate{}, fmt.Errorf("%q is not a rate", s)
	}
	return Rate{n, per}, nil
}

// String returns the form that ParseRate reads.
func (r Rate) String() string {
	for unit, per := range rateUnits {
		if r.Count != 0 && r.Per == per {
			return strconv.Itoa(r.Count) + "/" + unit
		}
	}
	return Unlimited
}

// MarshalJSON writes the text form.
func (r Rate) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Rate) UnmarshalJSON(b []byte) error {
	var s string
	err := json.Unmarshal(b, &s)
	if err == nil {
		*r, err = ParseRate(s)
	}
	return err
}

// maxReasonBytes is the maximum size of a stored reason.
const maxReasonBytes = 256

// CleanReason makes a reason one short line of valid UTF-8.
func CleanReason(reason string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], ""))
}
