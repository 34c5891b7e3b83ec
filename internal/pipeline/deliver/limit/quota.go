package limit

import (
	"sync"
	"time"
)

const (
	// A day has at least quotaBlocks blocks of at most quotaBlock messages, unless a group
	// is larger. The rest of a block is lost for the day if the process dies.
	quotaBlocks = 100
	quotaBlock  = 1000
	// quotaPoll is the time after which to ask again while a block is being reserved, and
	// quotaRetry the time after a failure.
	quotaPoll  = 10 * time.Millisecond
	quotaRetry = time.Second
)

// A Quota limits the messages of a day. It uses blocks that its owner reserves durably
// before a message of them is sent, so that no crash or restart exceeds the quota. It is
// safe for concurrent use.
type Quota struct {
	reserve func(day string, block int64) // must not block

	mu        sync.Mutex
	most      int64
	zone      *time.Location
	day       string // in the zone, as 2006-01-02
	dayStart  time.Time
	dayEnd    time.Time
	left      int64     // of the reserved blocks
	reserving bool      // a block is being reserved
	retryAt   time.Time // no reservation before that
	exhausted bool      // nothing is left to reserve on this day
}

// NewQuota returns a quota that reserves blocks of a day with the function ask. The caller
// passes the result to Grant or Fail.
func NewQuota(most int64, zone *time.Location, ask func(day string, block int64)) *Quota {
	return &Quota{reserve: ask, most: most, zone: zone}
}

// Set changes the number of messages per day, and the time zone of the day.
func (q *Quota) Set(most int64, zone *time.Location) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most == q.most && zone.String() == q.zone.String() {
		return
	}
	q.most, q.zone, q.dayStart, q.dayEnd = most, zone, time.Time{}, time.Time{}
}

// Most returns the number of messages per day.
func (q *Quota) Most() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.most
}

// Take counts n messages, or as many as are left of the day, or returns how long none may
// be sent. urgent is ignored.
func (q *Quota) Take(now time.Time, n int, _ bool) (taken int, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startDay(now)
	block := max(q.block(), int64(n))
	if (q.left <= q.block()/2 || q.left < int64(n)) && !q.reserving && !q.exhausted && !now.Before(q.retryAt) {
		q.reserving = true
		q.reserve(q.day, block)
	}
	switch {
	case q.left >= int64(n), q.left > 0 && q.exhausted:
		taken = int(min(q.left, int64(n)))
		q.left -= int64(taken)
		return taken, 0
	case q.exhausted:
		return 0, q.dayEnd.Sub(now)
	}
	return 0, quotaPoll
}

// GroupSize returns most.
func (q *Quota) GroupSize(most int) int { return most }

// Refund takes back n messages that were counted at a time and not sent. It ignores those
// of another day.
func (q *Quota) Refund(spent time.Time, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !spent.Before(q.dayStart) && spent.Before(q.dayEnd) {
		q.left += int64(n)
	}
}

// ExhaustedUntil returns until when no message may be sent, or zero if messages may be sent or
// none were requested today.
func (q *Quota) ExhaustedUntil(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.exhausted || q.left > 0 || now.Before(q.dayStart) || !now.Before(q.dayEnd) {
		return time.Time{}
	}
	return q.dayEnd
}

// Left returns how many reserved messages of the current day are unused, the day and its
// end.
func (q *Quota) Left(now time.Time) (left int64, day string, ends time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startDay(now)
	return q.left, q.day, q.dayEnd
}

// CountsAtSend returns false: messages may be counted in advance.
func (q *Quota) CountsAtSend() bool { return false }

// Grant adds messages that were reserved for a day. If fewer than requested were granted,
// nothing is left to reserve.
func (q *Quota) Grant(day string, asked, granted int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if day == q.day {
		q.left += granted
		q.reserving, q.exhausted = false, granted < asked
	}
}

// Fail notes that a block could not be reserved.
func (q *Quota) Fail(day string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if day == q.day {
		q.reserving, q.retryAt = false, now.Add(quotaRetry)
	}
}

// Release gives up the unused messages of the blocks, so that they can be reserved again.
func (q *Quota) Release() (day string, left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	day, left = q.day, q.left
	q.left, q.exhausted = 0, true
	return day, left
}

// startDay starts the next day when it has come. If the clock goes back to a previous day,
// that day starts again with the messages that are not reserved.
func (q *Quota) startDay(now time.Time) {
	if !now.Before(q.dayStart) && now.Before(q.dayEnd) {
		return
	}
	at := now.In(q.zone)
	year, month, date := at.Date()
	q.dayStart, q.dayEnd = startOfDay(year, month, date, q.zone), startOfDay(year, month, date+1, q.zone)
	q.day, q.left, q.reserving, q.exhausted, q.retryAt = at.Format(time.DateOnly), 0, false, false, time.Time{}
}

// startOfDay returns when a day begins in a zone: at the clock change if that skips
// midnight.
func startOfDay(year int, month time.Month, date int, zone *time.Location) time.Time {
	at := time.Date(year, month, date, 0, 0, 0, 0, zone)
	if at.Day() != time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Day() {
		_, at = at.ZoneBounds()
	}
	return at
}

// block returns how many messages are reserved at once.
func (q *Quota) block() int64 { return max(1, min(quotaBlock, q.most/quotaBlocks)) }
