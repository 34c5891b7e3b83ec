package cadence

import (
	"strings"
	"time"
)

// MaxText is the maximum length of the text of a cadence, in bytes.
const MaxText = 256

// MinWindow and MaxWindow are the shortest and the longest window.
const (
	MinWindow = time.Second
	MaxWindow = 24 * time.Hour
)

// A Cadence says when messages are due. The zero Cadence is immediate. Two cadences with the same
// String are equal.
type Cadence struct {
	window   time.Duration // 0: not a window
	calendar calendar      // zero: not on a local clock
	spelled  string        // without the suffixes; "": immediate
	zone     string        // the name of its time zone, or ""
	state    bool
}

// Immediate reports whether messages are due immediately.
func (c Cadence) Immediate() bool { return c.spelled == "" }

// OfState reports whether a message reports the state at its time, instead of the events since the
// last message.
func (c Cadence) OfState() bool { return c.state }

// Local reports whether the time zone matters.
func (c Cadence) Local() bool { return c.calendar != calendar{} }

// Zone returns the name of the time zone in the cadence, or "".
func (c Cadence) Zone() string { return c.zone }

// String returns a text that Parse reads. Cadences with the same meaning have the same text, except
// for crons.
func (c Cadence) String() string {
	if c.Immediate() {
		return immediate
	}
	var b strings.Builder
	b.WriteString(c.spelled)
	if c.state {
		b.WriteString(ofState)
	}
	if c.zone != "" {
		b.WriteString(in + c.zone)
	}
	return b.String()
}

// MarshalText returns String.
func (c Cadence) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Cadence) UnmarshalText(text []byte) (err error) {
	*c, err = Parse(string(text))
	return err
}
