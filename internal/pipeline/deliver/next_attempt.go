package deliver

import (
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Retry is a retry schedule: the wait after the first, the second and each further attempt.
// After the last one the delivery has failed.
type Retry []time.Duration

// jitter spreads retries over a fifth of their wait, so that messages that failed together are
// not retried together.
const jitter = 0.2

// retryOf returns the schedule for a class of replies. All schedules use the same attempt
// number.
func (s *Settings) retryOf(class fanfare.Class) Retry {
	if own, ok := s.RetryBy[class]; ok {
		return own
	}
	return s.Retry
}

// next returns when the attempt after the given one is due, rounded up to a second; false
// if there is none. It is the wait of the schedule, or what the peer asked for if that is
// longer, plus a share (0 to 1) of the jitter.
func (r Retry) next(attempt uint16, outcome *driver.Outcome, share float64) (time.Time, bool) {
	if int(attempt) > len(r) {
		return time.Time{}, false
	}
	wait := max(r[attempt-1], outcome.RetryAfter)
	wait += time.Duration(float64(wait) * jitter * share)
	return outcome.At.Add(wait).Truncate(time.Second).Add(time.Second), true
}

// follow returns the state that an outcome leads to, and the time of the next attempt if
// that is Deferred.
func (r Retry) follow(outcome *driver.Outcome, job *Job, share float64) (fanfare.State, time.Time, string) {
	switch outcome.Verdict {
	case driver.Accepted:
		if outcome.Delivered {
			return fanfare.Delivered, time.Time{}, outcome.Text
		}
		return fanfare.Accepted, time.Time{}, outcome.Text
	case driver.Permanent:
		return fanfare.Failed, time.Time{}, outcome.Text
	}
	next, ok := r.next(job.Attempt, outcome, share)
	switch {
	case !ok:
		return fanfare.Failed, time.Time{}, "attempts exhausted: " + outcome.Text
	case !job.Expires.IsZero() && next.After(job.Expires):
		return fanfare.Expired, time.Time{}, "would expire before the next attempt: " + outcome.Text
	}
	return fanfare.Deferred, next, outcome.Text
}
