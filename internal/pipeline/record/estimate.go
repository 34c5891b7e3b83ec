package record

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// meterSeconds is the number of seconds over which the rate of a broadcast is measured.
const meterSeconds = 10

// A rateMeter counts the settled deliveries of each of the last seconds.
type rateMeter struct {
	newest int64 // Unix time of the last count
	counts [meterSeconds]uint32
}

func (m *rateMeter) add(now time.Time) {
	m.advance(now.Unix())
	m.counts[m.newest%meterSeconds]++
}

// advance clears the seconds that have passed since the last count.
func (m *rateMeter) advance(second int64) {
	for s := max(m.newest+1, second-meterSeconds+1); s <= second; s++ {
		m.counts[s%meterSeconds] = 0
	}
	m.newest = max(m.newest, second)
}

// perSecond returns the rate over the counted seconds, or since the first outcome if that
// is later.
func (m *rateMeter) perSecond(now, first time.Time) float64 {
	m.advance(now.Unix())
	var sum float64
	for _, n := range m.counts {
		sum += float64(n)
	}
	begun := time.Unix(m.newest-meterSeconds+1, 0)
	if first.After(begun) {
		begun = first
	}
	return sum / max(now.Sub(begun), time.Second).Seconds()
}

// Estimate returns how many deliveries of an open broadcast are settled per second, over
// the last ten seconds, and when the last one will be settled at that rate; waits are its
// postponed deliveries. The time is zero if it cannot be estimated: nothing progresses, or
// deliveries wait for a suspended destination or for the quota of the next day.
func (r *Recorder) Estimate(ref fanfare.EventRef, waits []fanfare.Waiting) (perSecond float64, end time.Time) {
	now := r.options.Clock.Now()
	r.broadcasts.mu.Lock()
	defer r.broadcasts.mu.Unlock()
	b := r.broadcasts.begun[ref]
	if b == nil {
		return 0, time.Time{}
	}
	perSecond = b.rate.perSecond(now, b.recorded.First)
	if perSecond == 0 {
		return 0, time.Time{}
	}
	left := b.total - b.recorded.Counts.Settled()
	for i := range waits {
		switch w := &waits[i]; w.For {
		case fanfare.WaitDestinationSuspended.String(), fanfare.WaitDailyQuota:
			return perSecond, time.Time{}
		case fanfare.WaitNotBefore.String(), fanfare.WaitQuiet.String():
			// They are sent in parallel with the others, from the time of the first and not
			// before the time of the last.
			left -= w.Messages
			end = latest(end, after(w.Until, w.Messages, perSecond), w.Last)
		default: // these take turns with the others
			end = latest(end, w.Last)
		}
	}
	end = latest(end, after(now, max(left, 0), perSecond)).Truncate(time.Second)
	if end.Sub(now) > maxEstimate {
		return perSecond, time.Time{}
	}
	return perSecond, end
}

// after returns when the given number of messages will be settled, counted from a time.
func after(from time.Time, messages int64, perSecond float64) time.Time {
	seconds := min(float64(messages)/perSecond, 2*maxEstimate.Seconds())
	return from.Add(time.Duration(seconds * float64(time.Second)))
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// maxEstimate is the maximum time until an estimated end.
const maxEstimate = 100 * 24 * time.Hour
