package quiethours

import (
	"math/rand/v2"
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func clock(t testing.TB, text string) int {
	t.Helper()
	m, err := ParseClock(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func days(list ...time.Weekday) (set [7]bool) {
	for _, d := range list {
		set[d] = true
	}
	return set
}

// TestQuietHoursAreThoseOfTheLocalClock covers both changes of the clock, and zones whose changes
// are not one hour or not at night.
func TestQuietHoursAreThoseOfTheLocalClock(t *testing.T) {
	const form = "2006-01-02 15:04:05 -0700"
	for _, c := range []struct {
		name, zone, from, to string
		days                 [7]bool
		now, begin, end      string
	}{
		{"in the evening", "Europe/London", "21:00", "08:00", days(), "2026-11-20 20:59:59 +0000", "2026-11-20 21:00:00 +0000", "2026-11-21 08:00:00 +0000"},
		{"in the night", "Europe/London", "21:00", "08:00", days(), "2026-11-21 03:00:00 +0000", "2026-11-20 21:00:00 +0000", "2026-11-21 08:00:00 +0000"},
		{"when it ends", "Europe/London", "21:00", "08:00", days(), "2026-11-21 08:00:00 +0000", "2026-11-21 21:00:00 +0000", "2026-11-22 08:00:00 +0000"},
		{"the short night", "Europe/London", "21:00", "08:00", days(), "2026-03-28 22:00:00 +0000", "2026-03-28 21:00:00 +0000", "2026-03-29 08:00:00 +0100"},
		{"the long night", "Europe/London", "21:00", "08:00", days(), "2026-10-24 22:00:00 +0100", "2026-10-24 21:00:00 +0100", "2026-10-25 08:00:00 +0000"},
		{"ends in the hour that is left out", "Europe/London", "21:00", "01:30", days(), "2026-03-28 22:00:00 +0000", "2026-03-28 21:00:00 +0000", "2026-03-29 02:00:00 +0100"},
		{"begins in the hour that is left out", "Europe/London", "01:30", "04:00", days(), "2026-03-29 00:00:00 +0000", "2026-03-29 02:00:00 +0100", "2026-03-29 04:00:00 +0100"},
		{"is the hour that is left out", "Europe/London", "01:15", "01:45", days(), "2026-03-29 00:00:00 +0000", "2026-03-30 01:15:00 +0100", "2026-03-30 01:45:00 +0100"},
		{"ends in the hour that comes twice", "Europe/London", "21:00", "01:30", days(), "2026-10-24 23:00:00 +0100", "2026-10-24 21:00:00 +0100", "2026-10-25 01:30:00 +0000"},
		{"begins in the hour that comes twice", "Europe/London", "01:30", "04:00", days(), "2026-10-25 00:00:00 +0100", "2026-10-25 01:30:00 +0100", "2026-10-25 04:00:00 +0000"},
		{"a change of half an hour", "Australia/Lord_Howe", "20:00", "07:00", days(), "2026-04-04 23:00:00 +1100", "2026-04-04 20:00:00 +1100", "2026-04-05 07:00:00 +1030"},
		{"a midnight that is left out", "America/Havana", "20:00", "24:00", days(), "2026-03-07 22:00:00 -0500", "2026-03-07 20:00:00 -0500", "2026-03-08 01:00:00 -0400"},
		{"across the date line", "Pacific/Kiritimati", "22:00", "06:00", days(), "2026-06-01 23:00:00 +1400", "2026-06-01 22:00:00 +1400", "2026-06-02 06:00:00 +1400"},
		{"on Fridays only", "UTC", "21:00", "08:00", days(time.Friday), "2026-11-21 09:00:00 +0000", "2026-11-27 21:00:00 +0000", "2026-11-28 08:00:00 +0000"},
		{"it began on Friday", "UTC", "21:00", "08:00", days(time.Friday), "2026-11-21 07:00:00 +0000", "2026-11-20 21:00:00 +0000", "2026-11-21 08:00:00 +0000"},
		{"a whole weekend", "UTC", "00:00", "24:00", days(time.Saturday, time.Sunday), "2026-11-21 12:00:00 +0000", "2026-11-21 00:00:00 +0000", "2026-11-23 00:00:00 +0000"},
		{"at noon", "UTC", "12:00", "13:00", days(), "2026-11-20 13:00:00 +0000", "2026-11-21 12:00:00 +0000", "2026-11-21 13:00:00 +0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(form, c.now)
			if err != nil {
				t.Fatal(err)
			}
			loc := zone(t, c.zone)
			got := Next(now, loc, Quiet{From: clock(t, c.from), To: clock(t, c.to), Days: c.days})
			if begin, end := got.From.In(loc).Format(form), got.Until.In(loc).Format(form); begin != c.begin || end != c.end {
				t.Errorf("%s to %s, want %s to %s", begin, end, c.begin, c.end)
			}
		})
	}
}

func TestSpansThatTouchAreOne(t *testing.T) {
	night, weekend := Quiet{From: 21 * 60, To: 8 * 60}, Quiet{From: 0, To: dayMinutes, Days: days(time.Saturday, time.Sunday)}
	now := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC) // a Friday
	got := Next(now, time.UTC, weekend, night)
	if want := (Span{now.Add(-2 * time.Hour), time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Next(now, time.UTC); got != (Span{}) {
		t.Errorf("without quiet hours: %v", got)
	}
}

// TestNobodyWhoseClockShowsAQuietHourIsWrittenTo compares random hours in random zones around
// changes of the clock with the time that the local clock shows.
func TestNobodyWhoseClockShowsAQuietHourIsWrittenTo(t *testing.T) {
	zones := []string{"Europe/London", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Africa/Casablanca", "Asia/Gaza", "America/St_Johns",
		"Pacific/Chatham", "Antarctica/Troll", "Asia/Kolkata", "Pacific/Apia", "America/Asuncion", "UTC"}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		loc := zone(t, zones[r.IntN(len(zones))])
		q := Quiet{From: 15 * r.IntN(96), To: 15 * (1 + r.IntN(96))}
		if q.From == q.To%dayMinutes {
			continue
		}
		for d := range q.Days {
			q.Days[d] = r.IntN(3) > 0
		}
		at := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(30*365*24)) * time.Hour)
		if _, end := at.In(loc).ZoneBounds(); r.IntN(4) > 0 && !end.IsZero() {
			at = end.Add(time.Duration(r.IntN(48*60)-24*60) * time.Minute)
		}
		span := Next(at, loc, q)
		quiet := !span.From.IsZero() && !span.From.After(at)
		if q.shows(at.In(loc)) && !quiet {
			t.Fatalf("seed %d: %s shows %v, which is quiet by %+v, but the next span is %v", seed, loc, at.In(loc), q, span)
		}
		if quiet && !q.shows(at.In(loc)) && !changedNear(at, loc) {
			t.Fatalf("seed %d: %s shows %v, which is not quiet by %+v, but the span is %v", seed, loc, at.In(loc), q, span)
		}
		if quiet && !span.Until.After(at) || !quiet && span.Until.Before(span.From) {
			t.Fatalf("seed %d: the span of %v is %v", seed, at, span)
		}
		if end := span.Until; quiet && q.shows(end.In(loc)) && !q.Days[(end.In(loc).Weekday())] && !q.Days[(end.In(loc).Weekday()+6)%7] {
			t.Fatalf("seed %d: it ends at %v, when the clock shows a quiet hour", seed, end.In(loc))
		}
	}
}

// shows reports whether the local clock and the calendar show a quiet hour.
func (q *Quiet) shows(at time.Time) bool {
	minute, day := at.Hour()*60+at.Minute(), at.Weekday()
	begins := func(d time.Weekday) bool { return q.Days == [7]bool{} || q.Days[d] }
	if q.To > q.From {
		return begins(day) && minute >= q.From && minute < q.To
	}
	return begins(day) && minute >= q.From || begins((day+6)%7) && minute < q.To
}

// changedNear reports whether the clock changes within a day, so that quiet hours may last longer
// than the clock shows.
func changedNear(at time.Time, loc *time.Location) bool {
	start, end := at.In(loc).ZoneBounds()
	return at.Sub(start) < 26*time.Hour || !end.IsZero() && end.Sub(at) < 26*time.Hour
}

func TestTimesAndDaysThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"", "8:00", "08:60", "24:01", "25:00", "-1:00", "08:00:00", "0800", "08:0x", "+8:00"} {
		if m, err := ParseClock(text); err == nil {
			t.Errorf("%q is minute %d", text, m)
		}
	}
	for text, want := range map[string]int{"00:00": 0, "08:05": 485, "24:00": dayMinutes} {
		if m, err := ParseClock(text); err != nil || m != want {
			t.Errorf("%q is %d, %v", text, m, err)
		}
	}
	if _, err := ParseDay("monday"); err == nil {
		t.Error("monday is written out")
	}
	if d, err := ParseDay("mon"); err != nil || d != time.Monday {
		t.Errorf("mon is %v, %v", d, err)
	}
}
