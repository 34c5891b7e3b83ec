package limit

import (
	"sync"
	"time"
)

const (
	// quotaBlocks is into how many blocks a day is cut at least, and quotaBlock how
	// large one is at most, unless a group is larger. What is left of one when the process dies is lost for
	// that day.
	quotaBlocks = 100
	quotaBlock  = 1000
	// quotaPoll is how soon somebody asks again who waits for a block, and
	// quotaRetry after how long one is asked for again that could not be reserved.
	quotaPoll  = 10 * time.Millisecond
	quotaRetry = time.Second
)

// A Quota is how many messages may leave on one day. It spends blocks that its
// owner reserves where they outlive the process, before a message of them leaves,
// so that no crash and no restart lets more of them out. It is safe for
// concurrent use.
type Quota struct {
	reserve func(day string, block int64) // must not block

	mu        sync.Mutex
	most      int64
	zone      *time.Location
	day       string // in the zone, as 2006-01-02
	dayStart  time.Time
	dayEnd    time.Time
	left      int64     // of the blocks that were reserved
	reserving bool      // for a block
	retryAt   time.Time // not to be asked for before
	exhausted bool      // there is nothing more to reserve on this day
}

// NewQuota returns a quota that asks for blocks of a day with a function; the
// answer goes to Grant, or to Fail.
func NewQuota(most int64, zone *time.Location, ask func(day string, block int64)) *Quota {
	return &Quota{reserve: ask, most: most, zone: zone}
}

// Set changes how many there are on a day, and where days begin.
func (q *Quota) Set(most int64, zone *time.Location) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most == q.most && zone.String() == q.zone.String() {
		return
	}
	q.most, q.zone, q.dayStart, q.dayEnd = most, zone, time.Time{}, time.Time{}
}

// Most is how many there are on a day.
func (q *Quota) Most() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.most
}

// Take spends n messages, or as many as are left of the day, or says how long none may
// leave. Whether they are urgent makes no difference.
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

// GroupSize returns the size of the next group, where most messages may leave together.
func (q *Quota) GroupSize(most int) int { return most }

// Refund returns n messages that were spent at a time and did not leave. Those of
// another day are gone.
func (q *Quota) Refund(spent time.Time, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !spent.Before(q.dayStart) && spent.Before(q.dayEnd) {
		q.left += int64(n)
	}
}

// ExhaustedUntil is until when nothing more may leave, the zero time where something may, or
// nobody has asked today.
func (q *Quota) ExhaustedUntil(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.exhausted || q.left > 0 || now.Before(q.dayStart) || !now.Before(q.dayEnd) {
		return time.Time{}
	}
	return q.dayEnd
}

// Left is how many of those that are reserved are not used yet of the day that it
// is, which it returns with its end.
func (q *Quota) Left(now time.Time) (left int64, day string, ends time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startDay(now)
	return q.left, q.day, q.dayEnd
}

// CountsAtSend reports that messages may be counted ahead.
func (q *Quota) CountsAtSend() bool { return false }

// Grant takes up what was reserved of a day: less than was asked for is the last
// of it.
func (q *Quota) Grant(day string, asked, granted int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if day == q.day {
		q.left += granted
		q.reserving, q.exhausted = false, granted < asked
	}
}

// Fail says that a block could not be reserved now.
func (q *Quota) Fail(day string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if day == q.day {
		q.reserving, q.retryAt = false, now.Add(quotaRetry)
	}
}

// Release gives up what is left of the blocks: it may be reserved again.
func (q *Quota) Release() (day string, left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	day, left = q.day, q.left
	q.left, q.exhausted = 0, true
	return day, left
}

// startDay begins another day where that has come. A clock that goes back to a day
// before begins that one again, of which as much is left as is not reserved.
func (q *Quota) startDay(now time.Time) {
	if !now.Before(q.dayStart) && now.Before(q.dayEnd) {
		return
	}
	at := now.In(q.zone)
	year, month, date := at.Date()
	q.dayStart, q.dayEnd = startOfDay(year, month, date, q.zone), startOfDay(year, month, date+1, q.zone)
	q.day, q.left, q.reserving, q.exhausted, q.retryAt = at.Format(time.DateOnly), 0, false, false, time.Time{}
}

// startOfDay is when a day begins in a zone: with the change of the clock that leaves
// its midnight out, where one does.
func startOfDay(year int, month time.Month, date int, zone *time.Location) time.Time {
	at := time.Date(year, month, date, 0, 0, 0, 0, zone)
	if at.Day() != time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Day() {
		_, at = at.ZoneBounds()
	}
	return at
}

// block is how many are reserved at once.
func (q *Quota) block() int64 { return max(1, min(quotaBlock, q.most/quotaBlocks)) }
