package cadence

import (
	"strings"
	"time"
)

// MaxText is the longest text of a cadence, in bytes.
const MaxText = 256

// MinWindow and MaxWindow are the shortest and the longest window.
const (
	MinWindow = time.Second
	MaxWindow = 24 * time.Hour
)

// A Cadence says when messages are due. The zero Cadence is immediate. Two that are
// spelled alike are equal.
type Cadence struct {
	window  time.Duration // 0: not a window
	clock   clock         // the zero clock: not on a clock
	spelled string        // without what follows; "": immediate
	zone    string        // that it names, or ""
	state   bool
}

// Immediate reports whether nothing waits.
func (c Cadence) Immediate() bool { return c.spelled == "" }

// OfState reports whether a message tells what is the case when it is due, instead
// of what has happened since the one before.
func (c Cadence) OfState() bool { return c.state }

// Local reports whether the time zone matters.
func (c Cadence) Local() bool { return c.clock != clock{} }

// Zone is the name of the time zone that the cadence itself names, or "".
func (c Cadence) Zone() string { return c.zone }

// String is the spelling that Parse reads, the same for all that mean the same but
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

// MarshalText and UnmarshalText are String and Parse.
func (c Cadence) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Cadence) UnmarshalText(text []byte) (err error) {
	*c, err = Parse(string(text))
	return err
}

// Next is the first due time after an instant, in whole seconds and UTC; the zero Time
// of an immediate one. The zone is that of the reader's clock; windows do without.
func (c Cadence) Next(after time.Time, zone *time.Location) time.Time {
	switch {
	case c.window != 0:
		seconds := int64(c.window / time.Second)
		past := ((after.Unix() % seconds) + seconds) % seconds
		return time.Unix(after.Unix()-past+seconds, 0).UTC()
	case c.Local():
		return c.clock.next(after, zone).UTC()
	}
	return time.Time{}
}
