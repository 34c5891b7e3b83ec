// Package record keeps what came of every attempt: entries are appended in
// groups, and with the group that settles a broadcast's last delivery its
// completion.
//
// State. The recorder holds the counts of all open broadcasts in memory; the
// store has every entry, and Begin is told the counts again after a restart.
//
// Failure. Record returns when its entry is durable. While the store refuses
// (a full disk), callers wait and the recorder tries again: what the next hop
// took is never forgotten while the process lives. Where the store has no such
// day any more, since it was removed, callers get that error. The queue of waiting entries
// needs no limit of its own: each connection waits with at most one message.
package record

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
)

// Store keeps a group of entries of one day, all or nothing.
type Store interface {
	Commit(ctx context.Context, day fanfare.Day, group *fanfare.Commit) error
}

// Options are the parts that a recorder works with.
type Options struct {
	Store  Store
	Clock  clock.Clock
	Logger *slog.Logger
	// Sour is told once of a broadcast whose first messages all failed.
	OnAllFailed func(fanfare.EventRef)
	// Hears says whether anybody hears of an outcome: services are told of those. nil:
	// nobody does. Told is called when such ones were kept.
	WantsCallback     func(*fanfare.Entry) bool
	CallbacksRecorded func(fanfare.Day)
	// Due is told of the earliest time at which kept work becomes due.
	WorkDue func(day fanfare.Day, at time.Time)
}

const (
	// sourAfter is how many failures without a success make a broadcast sour.
	allFailedAfter = 100
	// maxGroup bounds the entries of one commit.
	maxGroup = 512
	// maxTogether bounds them where letters left together: 20 connections at 100
	// recipients each have one commit, and one sync.
	maxGroupEntries = 2048
	// leastBehind is how many of them are for what was settled without a letter.
	minUnsent = maxGroup / 8
	// retryPause is how long a refused commit waits before it is tried again.
	retryPause = 200 * time.Millisecond
	// gatherAtMost is how long a group stays open for answers that are still on
	// their way.
	maxGather = time.Millisecond
)

// Recorder is the one write path of outcomes.
type Recorder struct {
	options Options

	mu         sync.Mutex
	waiting    []*pendingWrite // of letters that have left: a connection stands still for each
	unsent     []*pendingWrite // of what was settled without one, of which there may be thousands at once
	closed     bool
	wake       chan struct{} // holds one token while waiting may be non-empty
	expected   atomic.Int64  // messages on the wire whose entry is not waiting yet
	ignored    atomic.Int64  // how many of them the group that is open does not wait for
	allArrived chan struct{} // holds one token when no more than these are coming
	stragglers stragglers

	pool       sync.Pool // of *slip
	broadcasts *broadcasts
	waiters    waiters
	totals     [fanfare.States]atomic.Int64
	groups     atomic.Int64

	stopped sync.WaitGroup
	stop    context.CancelFunc
}

// pendingWrite is one entry on its way, or several together, or work that is put off
// without one, and the caller who waits for it.
type pendingWrite struct {
	day       fanfare.Day
	entry     fanfare.Entry
	due       *fanfare.Due
	group     []fanfare.Entry // instead of entry
	postponed []fanfare.Due   // instead of due; without together instead of entry, too
	done      chan error
}

// size is how many entries it has, 1 at least.
func (s *pendingWrite) size() int { return max(1, len(s.group)) }

// Start returns a recorder that runs until Stop.
func Start(options Options) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{options: options, wake: make(chan struct{}, 1), allArrived: make(chan struct{}, 1), broadcasts: newBoard(), stop: stop}
	r.pool.New = func() any { return &pendingWrite{done: make(chan error, 1)} }
	r.stopped.Go(func() { r.run(ctx) })
	return r
}

// Stop keeps what is waiting and returns when no entry is under way. Record
// fails from then on.
func (r *Recorder) Stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.stopped.Wait()
}

// errStopped tells a connection that nothing can be kept any more.
var errStopped = &fanfare.Error{Code: fanfare.Unavailable, Message: "the recorder has stopped"}

// Expect tells that a message has left and that RecordExpected will follow. A
// group stays open a moment for what is expected, so that one sync serves all
// connections.
func (r *Recorder) Expect() { r.expected.Add(1) }

// RecordGroup is Record for letters of one day that left as one message, of
// which some were expected. All is durable when it returns, or nothing. The slices
// are the caller's again then.
func (r *Recorder) RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error {
	s := r.pool.Get().(*pendingWrite)
	s.day, s.group, s.postponed = entries[0].Delivery.Day, entries, dues
	return r.submit(s, int64(expected))
}

// RecordExpected is Record for a message that was expected.
func (r *Recorder) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	return r.record(entry, due, 1)
}

// Record appends an entry, and with it the work that becomes due where it is
// Deferred. It blocks until both are durable.
func (r *Recorder) Record(entry *fanfare.Entry, due *fanfare.Due) error {
	return r.record(entry, due, 0)
}

func (r *Recorder) record(entry *fanfare.Entry, due *fanfare.Due, expected int64) error {
	s := r.pool.Get().(*pendingWrite)
	s.day, s.entry, s.due = entry.Delivery.Day, *entry, due
	return r.submit(s, expected)
}

// submit gives a slip in and waits until it is kept.
func (r *Recorder) submit(s *pendingWrite, expected int64) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.expected.Add(-expected)
		return errStopped
	}
	if expected > 0 {
		r.waiting = append(r.waiting, s)
	} else {
		r.unsent = append(r.unsent, s)
	}
	r.mu.Unlock()
	if r.expected.Add(-expected) <= r.ignored.Load() {
		signal(r.allArrived)
	}
	signal(r.wake)
	err := <-s.done
	s.due, s.group, s.postponed = nil, nil, nil
	r.pool.Put(s)
	return err
}

// run commits groups. A group closes when everything that is on the wire has
// been answered, or a moment after its first entry.
func (r *Recorder) run(ctx context.Context) {
	var group []*pendingWrite
	moment := time.NewTimer(0)
	defer moment.Stop()
	for {
		select {
		case <-r.wake:
			r.gather(ctx, moment)
		case <-ctx.Done():
			for group = r.take(group); len(group) > 0; group = r.take(group) {
				r.commitGroup(ctx, group)
			}
			return
		}
		if group = r.take(group); len(group) > 0 {
			r.commitGroup(ctx, group)
		}
		if r.hasWaiting() {
			signal(r.wake)
		}
	}
}

// gather waits until nothing more is on its way, but for what is late with every
// group; at most a moment.
func (r *Recorder) gather(ctx context.Context, moment *time.Timer) {
	spared := r.stragglers.ignore()
	r.ignored.Store(spared)
	select {
	case <-r.allArrived: // of a group before
	default:
	}
	if r.expected.Load() > spared {
		moment.Reset(maxGather)
		select {
		case <-r.allArrived:
		case <-moment.C:
		case <-ctx.Done():
		}
	}
	r.stragglers.groupClosed(r.expected.Load())
}

// signal leaves a token where there is none.
func signal(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}

func (r *Recorder) hasWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)+len(r.unsent) > 0
}

func (r *Recorder) take(group []*pendingWrite) []*pendingWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, size := 0, 0
	for most := min(len(r.waiting), maxGroup-min(len(r.unsent), minUnsent)); first < most; first++ {
		if size += r.waiting[first].size(); size > maxGroupEntries && first > 0 {
			break
		}
	}
	then := min(len(r.unsent), maxGroup-first)
	group = append(append(group[:0], r.waiting[:first]...), r.unsent[:then]...)
	r.waiting = append(r.waiting[:0], r.waiting[first:]...)
	r.unsent = append(r.unsent[:0], r.unsent[then:]...)
	return group
}

// commitGroup commits a group, one transaction for each day in it.
func (r *Recorder) commitGroup(ctx context.Context, group []*pendingWrite) {
	for len(group) > 0 {
		day := group[0].day
		same := 1
		for i := 1; i < len(group); i++ {
			if group[i].day == day {
				group[same], group[i] = group[i], group[same]
				same++
			}
		}
		r.commitDay(ctx, day, group[:same])
		group = group[same:]
	}
}

func (r *Recorder) commitDay(ctx context.Context, day fanfare.Day, group []*pendingWrite) {
	commit := fanfare.Commit{Entries: make([]fanfare.Entry, 0, len(group))}
	var earliest time.Time
	for _, s := range group {
		commit.Dues = append(commit.Dues, s.postponed...)
		switch {
		case s.group != nil:
			commit.Entries = append(commit.Entries, s.group...)
		case s.postponed == nil:
			commit.Entries = append(commit.Entries, s.entry)
		}
		if s.due != nil {
			commit.Dues = append(commit.Dues, *s.due)
		}
	}
	for i := range commit.Dues {
		if at := commit.Dues[i].At; earliest.IsZero() || at.Before(earliest) {
			earliest = at
		}
	}
	told := r.markCallbacks(commit.Entries)
	failpoint.Hit("before-outcome")
	sour := r.broadcasts.apply(commit.Entries, &commit, r.options.Clock.Now())
	err := r.commit(ctx, day, &commit)
	failpoint.Hit("after-outcome")
	if err == nil {
		r.groups.Add(1)
		for i := range commit.Entries {
			r.totals[commit.Entries[i].State].Add(1)
		}
		r.broadcasts.committed(day, commit.Completions)
		r.waiters.notify(day, commit.Completions)
	} else if fanfare.CodeOf(err) == fanfare.NotFound {
		r.broadcasts.drop(day)
	}
	for _, s := range group {
		s.done <- err
	}
	if err != nil {
		return
	}
	if !earliest.IsZero() {
		r.options.WorkDue(day, earliest)
	}
	if told {
		r.options.CallbacksRecorded(day)
	}
	for _, ref := range sour {
		r.stopped.Go(func() { r.options.OnAllFailed(ref) })
	}
}

// markCallbacks marks the entries that services are told of.
func (r *Recorder) markCallbacks(entries []fanfare.Entry) (told bool) {
	if r.options.WantsCallback == nil {
		return false
	}
	for i := range entries {
		entries[i].Told = r.options.WantsCallback(&entries[i])
		told = told || entries[i].Told
	}
	return told
}

// commit tries until the store takes the group, or the recorder stops. A day
// that is gone does not come back.
func (r *Recorder) commit(ctx context.Context, day fanfare.Day, commit *fanfare.Commit) error {
	for try := 0; ; try++ {
		err := r.options.Store.Commit(context.WithoutCancel(ctx), day, commit)
		if err == nil || fanfare.CodeOf(err) == fanfare.NotFound {
			return err
		}
		if try%50 == 0 {
			r.options.Logger.Error("outcomes cannot be kept, sending waits", "error", err, "entries", len(commit.Entries))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// Totals counts the entries kept since the start by state, and the groups they
// came in.
func (r *Recorder) Totals() (counts fanfare.Counts, groups int64) {
	for s := range r.totals {
		counts[s] = r.totals[s].Load()
	}
	return counts, r.groups.Load()
}

// RecordAll appends entries that need no retry. It blocks until all are durable
// and returns the first error.
func (r *Recorder) RecordAll(entries []fanfare.Entry) error {
	all := make([]*pendingWrite, len(entries))
	for i := range entries {
		all[i] = r.pool.Get().(*pendingWrite)
		all[i].day, all[i].entry = entries[i].Delivery.Day, entries[i]
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errStopped
	}
	r.unsent = append(r.unsent, all...)
	r.mu.Unlock()
	signal(r.wake)
	var first error
	for _, s := range all {
		if err := <-s.done; err != nil && first == nil {
			first = err
		}
		r.pool.Put(s)
	}
	return first
}

// Postpone keeps work of one day for later, without an entry: nothing was tried,
// and nothing is counted. It shares the commits of entries, and blocks until it is
// durable. Work that is put off twice for the same second is kept once.
func (r *Recorder) Postpone(day fanfare.Day, dues []fanfare.Due) error {
	if len(dues) == 0 {
		return nil
	}
	s := r.pool.Get().(*pendingWrite)
	s.day, s.postponed = day, dues
	failpoint.Hit("before-postpone")
	err := r.submit(s, 0)
	failpoint.Hit("after-postpone")
	return err
}
