package deliver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// TestWhatFollowsFromAnOutcome goes through every verdict, every attempt up to
// behind the end of the schedule, and every kind of expiry.
func TestWhatFollowsFromAnOutcome(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 59, 58, 700_000_000, time.UTC)
	verdicts := []fanfare.Verdict{fanfare.Taken, fanfare.Temporary, fanfare.Permanent, fanfare.Lost}
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
						outcome := fanfare.Outcome{Verdict: verdict, Text: "what it said", At: now}
						state, next, text := schedule.follow(&outcome, &Job{Attempt: uint16(attempt), Expires: expires})
						want := fanfare.Deferred
						switch {
						case verdict == fanfare.Taken:
							want = fanfare.Accepted
						case verdict == fanfare.Permanent, attempt > len(schedule):
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

func TestRetriesOfWhatFailedTogetherAreSpread(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	seen := map[time.Time]bool{}
	for range 1000 {
		next, _ := Retry{time.Hour}.next(1, now)
		seen[next] = true
	}
	if len(seen) < 100 {
		t.Errorf("1000 retries after an hour come back in %d different seconds", len(seen))
	}
}
