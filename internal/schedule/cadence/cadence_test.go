package cadence

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestSpellingsAreReadAndSpelledInOneWay(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "immediate",
		"Immediate":                           "immediate",
		"window 60s":                          "window 1m",
		"window 90s":                          "window 1m30s",
		"window 3600s":                        "window 1h",
		"window 24h":                          "window 24h",
		"  daily   08:00 ":                    "daily 08:00",
		"daily 08:00 OF STATE":                "daily 08:00 of state",
		"weekly sat 09:30":                    "weekly saturday 09:30",
		"Weekly Saturday 09:30":               "weekly saturday 09:30",
		"cron 0  8 * * MON-FRI":               "cron 0 8 * * mon-fri",
		"daily 08:00 in Europe/London":        "daily 08:00 in Europe/London",
		"daily 08:00 in UTC of state":         "daily 08:00 of state in UTC",
		"cron 0 8 * * 1-5 of state in UTC":    "cron 0 8 * * 1-5 of state in UTC",
		"window 5s of state":                  "window 5s of state",
		"cron */5 0-6/2,22 1,15 jan-mar,12 7": "cron */5 0-6/2,22 1,15 jan-mar,12 7",
	} {
		c, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := c.String(); got != want {
			t.Errorf("%q is spelled %q, want %q", text, got, want)
		}
		if again, err := Parse(c.String()); err != nil || again != c {
			t.Errorf("%q is another one when it is read again: %v", text, err)
		}
		if c.OfState() != strings.Contains(want, "of state") || c.Immediate() != (want == "immediate") {
			t.Errorf("%q: of state %v, immediate %v", text, c.OfState(), c.Immediate())
		}
	}
}

func TestAWrongCadenceSaysWhatIsWrongAndWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"hourly":                              `unknown cadence "hourly"`,
		"immediate 08:00":                     "immediate must not be followed by other words",
		"immediate of state":                  "immediate must not be followed by other words",
		"window":                              "a window needs exactly one length",
		"window 5 minutes":                    "a window needs exactly one length",
		"window soon":                         `"soon" is not a duration`,
		"window 500ms":                        "a window cannot last 500ms",
		"window 1.5s":                         "a window cannot last 1.5s",
		"window -5s":                          "a window cannot last -5s",
		"window 25h":                          "a window cannot last 25h",
		"window 60s in Europe/London":         "a window cannot have a time zone",
		"daily":                               "daily needs exactly one time of day",
		"daily 8:00":                          `"8:00" is not a time of day`,
		"daily 24:00":                         `"24:00" is not a time of day`,
		"daily +8:00":                         `"+8:00" is not a time of day`,
		"daily 08:00 in Atlantis":             `unknown time zone "Atlantis"`,
		"daily 08:00 in Local":                `unknown time zone "Local"`,
		"daily 08:00 in UTC in UTC":           "daily needs exactly one time of day",
		"daily 08:00 of state of state":       "daily needs exactly one time of day",
		"weekly 08:00":                        "weekly needs a day",
		"weekly caturday 08:00":               `"caturday" is not a day`,
		"cron * * * *":                        "a cron cadence must have five fields, not 4",
		"cron 0 0 8 * * *":                    "a cron cadence must have five fields, not 6",
		"cron @daily":                         "a cron cadence must have five fields, not 1",
		"cron 60 * * * *":                     `the cron field minute must not be "60"`,
		"cron 0 24 * * *":                     `the cron field hour must not be "24"`,
		"cron 0 0 0 * *":                      `the cron field day of the month must not be "0"`,
		"cron 0 0 * 13 *":                     `the cron field month must not be "13"`,
		"cron 0 0 * * 8":                      `the cron field day of the week must not be "8"`,
		"cron 0 0 * * fri-mon":                `"fri-mon" ends before it begins`,
		"cron */0 * * * *":                    "the step must be from 1 to 59",
		"cron */99999999999999999999 * * * *": "the step must be from 1 to 59",
		"cron 1,,2 * * * *":                   `"" is not a value of this field`,
		"cron 0 0 30 2 *":                     "day 30 of the month never occurs in month 2",
		"cron 0 0 31 4,6,sep,nov *":           "never occurs",
		"daily " + strings.Repeat("8", 64):    "88…",
		strings.Repeat("daily ", 64):          "at most 256",
	} {
		_, err := Parse(text)
		e, ok := errors.AsType[*fanfare.Error](err)
		switch {
		case !ok:
			t.Errorf("%q: %v, want an error for users", text, err)
		case !strings.Contains(e.Message, want):
			t.Errorf("%q: %q, want %q in it", text, e.Message, want)
		case e.Hint == "" && e.Code != fanfare.TooLarge:
			t.Errorf("%q: no hint", text)
		}
	}
}

func TestWindowsAreTheSameEverywhereAndStrictlyAfter(t *testing.T) {
	for _, c := range []struct {
		text, after, want string
	}{
		{"window 1m", "2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z"},
		{"window 1m", "2026-03-01T12:00:59.999Z", "2026-03-01T12:01:00Z"},
		{"window 7s", "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z"},
		{"window 7s", "1970-01-01T00:00:06.5Z", "1970-01-01T00:00:07Z"},
		{"window 24h", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"window 1h", "1969-12-31T23:30:00Z", "1970-01-01T00:00:00Z"},
	} {
		after, _ := time.Parse(time.RFC3339, c.after)
		parsed, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, zone := range []string{"UTC", "Asia/Kathmandu", "Australia/Lord_Howe"} {
			at, _ := time.LoadLocation(zone)
			if got := parsed.Next(after, at).Format(time.RFC3339); got != c.want {
				t.Errorf("%s after %s in %s is %s, want %s", c.text, c.after, zone, got, c.want)
			}
		}
	}
}

func TestChangesOfTheClock(t *testing.T) {
	for _, c := range []struct{ text, zone, after, want string }{
		{"daily 01:30", "Europe/London", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z"}, // left out: at 02:00 BST
		{"daily 01:30", "Europe/London", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}, // and not again at 02:30
		{"daily 01:30", "Europe/London", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // twice: the first
		{"daily 01:30", "Europe/London", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}, // and once
		{"daily 08:00", "Europe/London", "2026-10-25T00:00:00Z", "2026-10-25T08:00:00Z"},
		{"daily 08:00", "Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-30T10:00:00Z"},     // the 30th was left out
		{"cron 0 * * * *", "Europe/London", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"}, // each hour that passes
		{"cron 0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"cron 0 0 29 2 */6", "UTC", "2080-03-01T00:00:00Z", "2088-02-29T00:00:00Z"},
	} {
		after, _ := time.Parse(time.RFC3339, c.after)
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Next(after, zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s after %s is %s, want %s", c.text, c.zone, c.after, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "window 60s", "daily 08:00 of state in Europe/London", "weekly sat 09:30", "cron */5 0-6/2,22 1,15 jan-mar,12 7", "cron 0 0 29 2 */6"} {
		f.Add(seed, int64(1_790_000_000))
	}
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		c, err := Parse(text)
		if err != nil {
			if _, ok := errors.AsType[*fanfare.Error](err); !ok {
				t.Fatalf("%q: %v is no error for users", text, err)
			}
			return
		}
		if again, err := Parse(c.String()); err != nil || again != c {
			t.Fatalf("%q is spelled %q, which is another: %v", text, c, err)
		}
		after := time.Unix(seconds%(1<<33), 0)
		if due := c.Next(after, london); !c.Immediate() && (!due.After(after) || due.Nanosecond() != 0) {
			t.Fatalf("%q after %s is %s", text, after, due)
		}
	})
}
