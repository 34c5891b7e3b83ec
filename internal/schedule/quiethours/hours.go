// Package quiethours calculates quiet hours on people's local clocks, during which they receive
// no messages.
//
// A day may have 23 or 25 hours. If a change of the clock skips the beginning or end of quiet
// hours, they begin or end with the change. If that time occurs twice, quiet hours begin at the
// first occurrence and end at the second. No message is therefore sent while the local clock shows
// a quiet hour, and the rest of the day is free.
package quiethours

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quiet is a period of each day, or of some days, on a local clock. It may end on the next day.
type Quiet struct {
	From, To int     // minutes since midnight; To may be 24:00
	Days     [7]bool // days on which it begins, from Sunday; all if none is set
}

// dayMinutes is the length of a day on the clock.
const dayMinutes = 24 * 60

var dayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseClock parses a time of day from 00:00 to 24:00.
func ParseClock(text string) (minutes int, err error) {
	h, m, ok := strings.Cut(text, ":")
	hour, herr := strconv.ParseUint(h, 10, 8)
	minute, merr := strconv.ParseUint(m, 10, 8)
	if !ok || len(h) != 2 || len(m) != 2 || herr != nil || merr != nil || minute > 59 || hour*60+minute > dayMinutes {
		return 0, fmt.Errorf("%q is not a time of day", text)
	}
	return int(hour*60 + minute), nil
}

// ParseDay parses the three-letter abbreviation of a day of the week.
func ParseDay(text string) (time.Weekday, error) {
	at := slices.Index(dayNames[:], text)
	if at < 0 {
		return 0, fmt.Errorf("%q is not a day", text)
	}
	return time.Weekday(at), nil
}

// A Span begins at From and ends before Until.
type Span struct{ From, Until time.Time }

// horizon is the number of days that are searched: a week, plus the shift of a clock change.
const horizon = 9

// Next returns the current quiet span of any of all, or the next one. Adjacent spans are joined.
// The zero Span means that there is none within the horizon.
func Next(now time.Time, zone *time.Location, all ...Quiet) Span {
	var spans []Span
	year, month, day := now.In(zone).Date()
	for i := range all {
		q := &all[i]
		for ahead := -2; ahead <= horizon; ahead++ {
			if s := q.on(year, month, day+ahead, zone); s.Until.After(now) && s.Until.After(s.From) {
				spans = append(spans, s)
			}
		}
	}
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(a.From.Compare(b.From), a.Until.Compare(b.Until))
	})
	if len(spans) == 0 {
		return Span{}
	}
	next := spans[0]
	for _, s := range spans[1:] {
		if s.From.After(next.Until) {
			break
		}
		if s.Until.After(next.Until) {
			next.Until = s.Until
		}
	}
	return next
}

// on returns the span that begins on a day, or the zero Span if none does.
func (q *Quiet) on(year int, month time.Month, day int, zone *time.Location) Span {
	weekday := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()
	if q.Days != [7]bool{} && !q.Days[weekday] {
		return Span{}
	}
	to := q.To
	if to <= q.From {
		to += dayMinutes
	}
	first, _ := instants(year, month, day, q.From, zone)
	_, last := instants(year, month, day, to, zone)
	return Span{first, last}
}

// instants returns the first and the last moment at which the clock of a zone shows a time. If the
// clock skips the time, both are the moment of the change.
func instants(year int, month time.Month, day, minutes int, zone *time.Location) (first, last time.Time) {
	shown := time.Date(year, month, day, 0, minutes, 0, 0, time.UTC)
	var before time.Time // the latest candidate whose zone offset differs from the assumed one
	for _, offset := range offsetsNear(shown, zone) {
		at := shown.Add(-offset).In(zone)
		if _, now := at.Zone(); time.Duration(now)*time.Second != offset {
			if at.After(before) {
				before = at
			}
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if first.IsZero() {
		change, _ := before.ZoneBounds()
		return change, change
	}
	return first, last
}

// offsetsNear lists the offsets of a zone within a day of a time.
func offsetsNear(shown time.Time, zone *time.Location) []time.Duration {
	var list []time.Duration
	for at := shown.Add(-36 * time.Hour); ; {
		_, seconds := at.In(zone).Zone()
		list = append(list, time.Duration(seconds)*time.Second)
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() || end.Sub(shown) > 36*time.Hour {
			return list
		}
		at = end
	}
}
