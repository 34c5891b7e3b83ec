package deliver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestRetryFollowsTheOutcome tries every verdict, every attempt beyond the end of the
// schedule, and every kind of expiry.
func TestRetryFollowsTheOutcome(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 59, 58, 700_000_000, time.UTC)
	verdicts := []driver.Verdict{driver.Accepted, driver.Temporary, driver.Permanent, driver.Lost}
	schedules := []Retry{nil, {0}, {time.Second}, {time.Second, time.Minute, 24 * time.Hour}}
	for _, verdict := range verdicts {
		for _, schedule := range schedules {
			for attempt := 1; attempt <= len(schedule)+2; attempt++ {
				wait := time.Duration(0)
				if attempt <= len(schedule) {
					wait = schedule[attempt-1]
				}
				for name, expires := range map[string]time.Time{
					"never":              {},
					"before the retry":   now.Add(wait),
					"behind any retry":   now.Add(2*wait + 2*time.Second),
					"before the attempt": now.Add(-time.Hour),
				} {
					t.Run(fmt.Sprintf("verdict %d of attempt %d with %d retries expires %s", verdict, attempt, len(schedule), name), func(t *testing.T) {
						outcome := driver.Outcome{Verdict: verdict, Text: "what it said", At: now}
						state, next, text := schedule.follow(&outcome, &Job{Attempt: uint16(attempt), Expires: expires}, rand.Float64())
						want := fanfare.Deferred
						switch {
						case verdict == driver.Accepted:
							want = fanfare.Accepted
						case verdict == driver.Permanent, attempt > len(schedule):
							want = fanfare.Failed
						case !expires.IsZero() && !expires.After(now.Add(wait)):
							want = fanfare.Expired
						}
						if state != want {
							t.Fatalf("got %s, want %s", state, want)
						}
						if !strings.Contains(text, "what it said") {
							t.Errorf("the text %q lost what the next hop said", text)
						}
						if state != fanfare.Deferred {
							if !next.IsZero() {
								t.Errorf("a settled delivery has a next attempt at %v", next)
							}
							return
						}
						if next.Nanosecond() != 0 || next.Before(now.Add(wait)) || next.After(now.Add(wait+wait/5+time.Second)) {
							t.Errorf("the next attempt is at %v, %v after the outcome; the schedule says %v", next, next.Sub(now), wait)
						}
					})
				}
			}
		}
	}
}

func TestRetriesAreSpread(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	seen := map[time.Time]bool{}
	for range 1000 {
		next, _ := Retry{time.Hour}.next(1, &driver.Outcome{At: now}, rand.Float64())
		seen[next] = true
	}
	if len(seen) < 100 {
		t.Errorf("1000 retries after an hour come back in %d different seconds", len(seen))
	}
}

// TestTheNextAttemptIsExact: the schedule of the class, a longer wish of the peer, and the
// jitter determine one time.
func TestTheNextAttemptIsExact(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 250_000_000, time.UTC)
	settings := Settings{
		Retry:   Retry{30 * time.Second, 10 * time.Minute},
		RetryBy: map[fanfare.Class]Retry{fanfare.ClassThrottled: {time.Minute, time.Hour, 6 * time.Hour}, fanfare.ClassInvalid: {}},
	}
	for _, c := range []struct {
		name    string
		class   fanfare.Class
		attempt uint16
		after   time.Duration
		share   float64
		state   fanfare.State
		next    string
	}{
		{"no class", "", 1, 0, 0, fanfare.Deferred, "12:00:31"},
		{"no class, half of the jitter", "", 1, 0, 0.5, fanfare.Deferred, "12:00:34"},
		{"no class, all jitter", "", 1, 0, 1, fanfare.Deferred, "12:00:37"},
		{"second attempt", "", 2, 0, 0, fanfare.Deferred, "12:10:01"},
		{"used up", "", 3, 0, 0, fanfare.Failed, ""},
		{"a class without a schedule", fanfare.ClassBusy, 2, 0, 0, fanfare.Deferred, "12:10:01"},
		{"a class with one", fanfare.ClassThrottled, 1, 0, 0, fanfare.Deferred, "12:01:01"},
		{"a class with a longer one", fanfare.ClassThrottled, 3, 0, 0, fanfare.Deferred, "18:00:01"},
		{"a class whose schedule is used up", fanfare.ClassThrottled, 4, 0, 0, fanfare.Failed, ""},
		{"a class without retries", fanfare.ClassInvalid, 1, 0, 0, fanfare.Failed, ""},
		{"the peer asks for less", "", 2, time.Minute, 0, fanfare.Deferred, "12:10:01"},
		{"the peer asks for more", "", 1, 5 * time.Minute, 0, fanfare.Deferred, "12:05:01"},
		{"the peer asks for more, all jitter", "", 1, 5 * time.Minute, 1, fanfare.Deferred, "12:06:01"},
		{"the peer asks after the last", "", 3, 5 * time.Minute, 0, fanfare.Failed, ""},
		{"the peer asks for more than there is", "", 1, 9 * time.Hour, 0, fanfare.Expired, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			outcome := driver.Outcome{Verdict: driver.Temporary, Class: c.class, RetryAfter: c.after, At: now}
			job := Job{Attempt: c.attempt, Expires: now.Add(8 * time.Hour)}
			state, next, _ := settings.retryOf(c.class).follow(&outcome, &job, c.share)
			told := ""
			if !next.IsZero() {
				told = next.Format(time.TimeOnly)
			}
			if state != c.state || told != c.next {
				t.Errorf("%s at %q, want %s at %q", state, told, c.state, c.next)
			}
		})
	}
}
