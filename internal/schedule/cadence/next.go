package cadence

import "time"

// Next returns the first due time after an instant, in whole seconds and UTC, or the zero Time
// if the cadence is immediate. zone is the time zone of the reader; a window does not use it.
func (c Cadence) Next(after time.Time, zone *time.Location) time.Time {
	switch {
	case c.window != 0:
		seconds := int64(c.window / time.Second)
		past := ((after.Unix() % seconds) + seconds) % seconds
		return time.Unix(after.Unix()-past+seconds, 0).UTC()
	case c.Local():
		return c.calendar.next(after, zone).UTC()
	}
	return time.Time{}
}

// A calendar has the minutes, hours and days on which something is due, as sets of bits. The
// zero calendar has none.
type calendar struct {
	minutes  uint64 // 0 to 59
	hours    uint32 // 0 to 23
	days     uint32 // of the month, 1 to 31
	months   uint16 // 1 to 12
	weekdays uint8  // 0 to 6, from Sunday

	// either: a day needs to be in only one of days and weekdays, because a cron limits both.
	either bool
}

// Every hour, day, month and day of the week.
const (
	allHours    = 1<<24 - 1
	allDays     = 1<<32 - 2
	allMonths   = 1<<13 - 2
	allWeekdays = 1<<7 - 1
)

// on reports whether the calendar has times on a date.
func (c *calendar) on(month time.Month, day int, weekday time.Weekday) bool {
	if c.months>>month&1 == 0 {
		return false
	}
	date, week := c.days>>day&1 != 0, c.weekdays>>weekday&1 != 0
	if c.either {
		return date || week
	}
	return date && week
}

// passing reports whether the calendar follows the minutes as they pass.
func (c *calendar) passing() bool { return c.hours == allHours }

// horizon is the number of days to look ahead: the 29th of February recurs after eight years at
// most, and on a certain day of the week after forty.
const horizon = 41 * 366

// next returns the first time after an instant, or the zero Time if there is none.
func (c *calendar) next(after time.Time, zone *time.Location) time.Time {
	local := after.In(zone)
	if c.passing() {
		return c.nextPassing(local)
	}
	year, month, day := local.Date()
	for ahead := range horizon {
		// Noon in UTC keeps the date apart from changes of a local clock.
		date := time.Date(year, month, day+ahead, 12, 0, 0, 0, time.UTC)
		if !c.on(date.Month(), date.Day(), date.Weekday()) {
			continue
		}
		for hour := range 24 {
			if c.hours>>hour&1 == 0 {
				continue
			}
			for minute := range 60 {
				if c.minutes>>minute&1 == 0 {
					continue
				}
				if at := first(date.Year(), date.Month(), date.Day(), hour, minute, zone); at.After(after) {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// nextPassing steps through the minutes as they pass. It skips a day in one step unless the clock
// changes on it.
func (c *calendar) nextPassing(local time.Time) time.Time {
	until := local.AddDate(0, 0, horizon)
	for t := nextMinute(local); t.Before(until); {
		switch {
		case !c.on(t.Month(), t.Day(), t.Weekday()):
			t = nextDay(t)
		case c.minutes>>t.Minute()&1 == 0 || t.Second() != 0:
			t = nextMinute(t)
		default:
			return t
		}
	}
	return time.Time{}
}

// nextDay returns the next midnight on the local clock, or the change of the clock before it.
func nextDay(t time.Time) time.Time {
	year, month, day := t.Date()
	next := first(year, month, day+1, 0, 0, t.Location())
	if !next.After(t) { // the clock was put back over midnight
		return nextMinute(t)
	}
	if _, change := t.ZoneBounds(); !change.IsZero() && change.Before(next) {
		next = change
	}
	return next.In(t.Location())
}

// nextMinute returns the next full minute on the local clock.
func nextMinute(t time.Time) time.Time {
	next := t.Add(time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	// The clock may change within the minute, and a minute may begin at that instant.
	if _, change := t.ZoneBounds(); !change.IsZero() && change.Before(next) {
		return change.In(t.Location())
	}
	return next
}

// first returns the first instant at which a local clock shows a time. If it never shows the time,
// first returns the instant at which the clock skips it.
func first(year int, month time.Month, day, hour, minute int, zone *time.Location) time.Time {
	shown := time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix()
	about := time.Date(year, month, day, hour, minute, 0, 0, zone) // near a change, it has one of the two offsets
	from, until := about.ZoneBounds()
	found := time.Time{}
	for _, near := range [...]time.Time{from.Add(-time.Second), about, until} {
		if near.IsZero() || from.IsZero() && near.Before(about) {
			continue
		}
		_, offset := near.In(zone).Zone()
		at := time.Unix(shown-int64(offset), 0).In(zone)
		if _, is := at.Zone(); is == offset && (found.IsZero() || at.Before(found)) {
			found = at
		}
	}
	switch _, offset := about.Zone(); {
	case !found.IsZero():
		return found
	case about.Unix()+int64(offset) > shown:
		return from
	}
	return until
}
