package deliver

import (
	"math/rand/v2"
	"time"

	"fanfare.dev/fanfare"
)

// Retry is the schedule of one channel: the wait after the first, the second
// and each further attempt. When it is used up, the delivery has failed.
type Retry []time.Duration

// jitter spreads retries over a fifth of their wait, so that what failed
// together does not come back together.
const jitter = 0.2

// next returns when the attempt after the given one is due, on a whole second;
// false if there is none.
func (r Retry) next(attempt uint16, now time.Time) (time.Time, bool) {
	if int(attempt) > len(r) {
		return time.Time{}, false
	}
	wait := r[attempt-1]
	wait += time.Duration(float64(wait) * jitter * rand.Float64())
	return now.Add(wait).Truncate(time.Second).Add(time.Second), true
}

// follow says what state an outcome leads to, and when the next attempt is due
// if it is Deferred.
func (r Retry) follow(outcome *fanfare.Outcome, job *Job) (fanfare.State, time.Time, string) {
	switch outcome.Verdict {
	case fanfare.Taken:
		return fanfare.Accepted, time.Time{}, outcome.Text
	case fanfare.Permanent:
		return fanfare.Failed, time.Time{}, outcome.Text
	}
	next, ok := r.next(job.Attempt, outcome.At)
	switch {
	case !ok:
		return fanfare.Failed, time.Time{}, "attempts exhausted: " + outcome.Text
	case !job.Expires.IsZero() && next.After(job.Expires):
		return fanfare.Expired, time.Time{}, "would expire before the next attempt: " + outcome.Text
	}
	return fanfare.Deferred, next, outcome.Text
}
