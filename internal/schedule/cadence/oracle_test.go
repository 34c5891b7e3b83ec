package cadence

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// years are what clocks of the world have done: a zone, and a year of it.
var years = []struct {
	zone string
	year int
}{
	{"UTC", 2027}, {"Europe/London", 2026}, {"Europe/Dublin", 2027}, {"Europe/Berlin", 2028}, {"Europe/Moscow", 2014},
	{"America/New_York", 2026}, {"America/St_Johns", 2010}, {"America/Sao_Paulo", 2018}, {"America/Havana", 2026},
	{"America/Santiago", 2026}, {"America/Asuncion", 2023}, {"America/Caracas", 2016}, {"America/Nuuk", 2023},
	{"Australia/Lord_Howe", 2026}, {"Australia/Sydney", 2026}, {"Pacific/Chatham", 2026}, {"Pacific/Apia", 2011},
	{"Pacific/Kiritimati", 1994}, {"Pacific/Kwajalein", 1993}, {"Antarctica/Troll", 2026}, {"Africa/Casablanca", 2026},
	{"Africa/Cairo", 2026}, {"Asia/Gaza", 2026}, {"Asia/Beirut", 2026}, {"Asia/Tehran", 2022}, {"Asia/Pyongyang", 2018},
	{"Asia/Kathmandu", 2026}, {"Asia/Kolkata", 2026},
}

// asked are cadences, and whether they are due at what a clock shows, said anew.
var asked = []struct {
	text string
	due  func(shown time.Time) bool
}{
	{"daily 08:00", func(s time.Time) bool { return s.Hour() == 8 && s.Minute() == 0 }},
	{"daily 00:00", func(s time.Time) bool { return s.Hour() == 0 && s.Minute() == 0 }},
	{"daily 00:30", func(s time.Time) bool { return s.Hour() == 0 && s.Minute() == 30 }},
	{"daily 01:30", func(s time.Time) bool { return s.Hour() == 1 && s.Minute() == 30 }},
	{"daily 02:15", func(s time.Time) bool { return s.Hour() == 2 && s.Minute() == 15 }},
	{"daily 23:59", func(s time.Time) bool { return s.Hour() == 23 && s.Minute() == 59 }},
	{"weekly sunday 02:30", func(s time.Time) bool { return s.Weekday() == time.Sunday && s.Hour() == 2 && s.Minute() == 30 }},
	{"weekly fri 00:00", func(s time.Time) bool { return s.Weekday() == time.Friday && s.Hour() == 0 && s.Minute() == 0 }},
	{"cron */20 1-3 * * *", func(s time.Time) bool { return s.Hour() >= 1 && s.Hour() <= 3 && s.Minute()%20 == 0 }},
	{"cron 59 23 31 * *", func(s time.Time) bool { return s.Day() == 31 && s.Hour() == 23 && s.Minute() == 59 }},
	{"cron 5 0 1,15 * mon", func(s time.Time) bool {
		return (s.Day() == 1 || s.Day() == 15 || s.Weekday() == time.Monday) && s.Hour() == 0 && s.Minute() == 5
	}},
	{"cron 0 12 */2 mar-oct 7", func(s time.Time) bool {
		return s.Day()%2 == 1 && s.Weekday() == time.Sunday && s.Month() >= 3 && s.Month() <= 10 && s.Hour() == 12 && s.Minute() == 0
	}},
}

// passing are those that go by the minutes as they pass.
var passing = []struct {
	text string
	due  func(shown time.Time) bool
}{
	{"cron */15 * * * *", func(s time.Time) bool { return s.Minute()%15 == 0 }},
	{"cron 1 * * * sat,sun", func(s time.Time) bool {
		return s.Minute() == 1 && (s.Weekday() == time.Saturday || s.Weekday() == time.Sunday)
	}},
}

// TestDueTimesOfAYearMatchTheClock walks through the year minute by minute. A local time that
// occurs twice counts once, the first time; a local time that is skipped counts with the first
// minute after the gap.
func TestDueTimesOfAYearMatchTheClock(t *testing.T) {
	for _, y := range years {
		t.Run(fmt.Sprint(y.zone, " ", y.year), func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(y.zone)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Date(y.year, 1, 1, 0, 0, 0, 0, zone).UTC().Truncate(time.Minute)
			want := make([][]time.Time, len(asked)+len(passing))
			shown := wall(begin.Add(-time.Minute), zone)
			latest := shown
			for at, end := begin, begin.AddDate(1, 0, 3); at.Before(end); at = at.Add(time.Minute) {
				shown = wall(at, zone)
				for i, a := range passing {
					if a.due(shown) {
						want[len(asked)+i] = append(want[len(asked)+i], at)
					}
				}
				for i, a := range asked {
					for reached := latest.Add(time.Minute); !reached.After(shown); reached = reached.Add(time.Minute) {
						if a.due(reached) {
							want[i] = append(want[i], at)
							break
						}
					}
				}
				if shown.After(latest) {
					latest = shown
				}
			}
			for i, a := range append(asked[:len(asked):len(asked)], passing...) {
				c, err := Parse(a.text)
				if err != nil {
					t.Fatal(err)
				}
				at := begin.Add(-time.Second)
				for n, due := range want[i] {
					got := c.Next(at, zone)
					if !got.Equal(due) {
						t.Fatalf("%s: time %d after %s is %s, want %s", a.text, n, at.In(zone), got.In(zone), due.In(zone))
					}
					// From any instant between two of them on, it is the second.
					within := at.Add(time.Duration(rand.Int64N(int64(due.Sub(at)))))
					if again := c.Next(within, zone); !again.Equal(due) {
						t.Fatalf("%s: after %s is %s, want %s", a.text, within.In(zone), again.In(zone), due.In(zone))
					}
					at = due
				}
			}
		})
	}
}

// wall is what a clock shows, as if it were in UTC.
func wall(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
