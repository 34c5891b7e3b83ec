package record

import (
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// meterSeconds is how far back the rate of a broadcast looks.
const meterSeconds = 10

// A meter counts what was settled in each of the last seconds.
type rateMeter struct {
	newest int64 // the second of the last count, of the Unix epoch
	counts [meterSeconds]uint32
}

func (m *rateMeter) add(now time.Time) {
	m.advance(now.Unix())
	m.counts[m.newest%meterSeconds]++
}

// advance empties the seconds that have gone by since the last count.
func (m *rateMeter) advance(second int64) {
	for s := max(m.newest+1, second-meterSeconds+1); s <= second; s++ {
		m.counts[s%meterSeconds] = 0
	}
	m.newest = max(m.newest, second)
}

// perSecond is the rate over the seconds that are counted, or since the first
// outcome where that is less.
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

// Estimate tells how many deliveries of an open broadcast are settled a second,
// over the last ten, and when the last one will be if that goes on, with what of it
// was put off. The zero time is: nobody can tell, since nothing moves, or some wait
// for a destination that is left alone, or for the next day's quota.
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
			// They leave beside the others from the first one's time on, and not
			// before the last one's.
			left -= w.Messages
			end = latest(end, after(w.Until, w.Messages, perSecond), w.Last)
		default: // these take their turn with the others
			end = latest(end, w.Last)
		}
	}
	end = latest(end, after(now, max(left, 0), perSecond)).Truncate(time.Second)
	if end.Sub(now) > maxEstimate {
		return perSecond, time.Time{}
	}
	return perSecond, end
}

// after is when so many are settled, from a time on.
func after(from time.Time, messages int64, perSecond float64) time.Time {
	seconds := min(float64(messages)/perSecond, 2*maxEstimate.Seconds())
	return from.Add(time.Duration(seconds * float64(time.Second)))
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// maxEstimate is how far ahead an end is told.
const maxEstimate = 100 * 24 * time.Hour
