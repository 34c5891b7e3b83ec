// Package record stores the outcome of every attempt. It commits entries in groups, and
// completes a broadcast in the commit that settles its last delivery. The senders of
// package deliver and the stages that settle deliveries without a message call Recorder.
//
// State. The recorder keeps the counts of all open broadcasts in memory. The store has
// every entry, and Begin restores the counts after a restart.
//
// Failure. Record returns when its entry is durable. While the store refuses commits (the
// disk is full), callers wait and the recorder tries again: an accepted message is not
// forgotten while the process lives. If the store has removed the day, callers get that
// error. The queue of waiting entries needs no limit, because each connection waits with one
// group of messages.
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

// Store commits the entries of one day, all or none.
type Store interface {
	Commit(ctx context.Context, day fanfare.Day, group *fanfare.Commit) error
}

// Options are the dependencies of a recorder.
type Options struct {
	Store  Store
	Clock  clock.Clock
	Logger *slog.Logger
	// OnAllFailed is called once for a broadcast whose first messages all failed.
	OnAllFailed func(fanfare.EventRef)
	// WantsCallback reports whether a service gets a status callback for an outcome; nil:
	// none does. CallbacksRecorded is called when such outcomes were committed.
	WantsCallback     func(*fanfare.Entry) bool
	CallbacksRecorded func(fanfare.Day)
	// WorkDue is called with the earliest time at which committed work becomes due.
	WorkDue func(day fanfare.Day, at time.Time)
}

const (
	// allFailedAfter is the number of failures without a success after which OnAllFailed is
	// called.
	allFailedAfter = 100
	// maxGroup is the maximum number of writes in a commit.
	maxGroup = 512
	// maxGroupEntries is the maximum number of entries in a commit if messages were sent
	// together: 20 connections with 100 recipients each share one commit and one sync.
	maxGroupEntries = 2048
	// minUnsent is the number of writes in a commit that is reserved for entries without a
	// message.
	minUnsent = maxGroup / 8
	// retryPause is the time after which a refused commit is tried again.
	retryPause = 200 * time.Millisecond
	// maxGather is the maximum time for which a group waits for expected entries.
	maxGather = time.Millisecond
)

// A Recorder is the only writer of outcomes.
type Recorder struct {
	options Options

	mu         sync.Mutex
	waiting    []*pendingWrite // for messages that were sent: their connections are blocked
	unsent     []*pendingWrite // without a message; there may be thousands at once
	closed     bool
	wake       chan struct{} // holds a token while a write may be waiting
	expected   atomic.Int64  // messages in flight whose write is not waiting yet
	ignored    atomic.Int64  // how many of them the current group does not wait for
	allArrived chan struct{} // holds a token when only ignored ones are missing
	stragglers stragglers

	pool       sync.Pool // of *pendingWrite
	broadcasts *broadcasts
	waiters    waiters
	totals     [fanfare.States]atomic.Int64
	groups     atomic.Int64

	stopped sync.WaitGroup
	stop    context.CancelFunc
}

// A pendingWrite is one entry, several entries, or postponed work, with the caller that
// waits for it.
type pendingWrite struct {
	day       fanfare.Day
	entry     fanfare.Entry
	due       *fanfare.Due
	group     []fanfare.Entry // replaces entry
	postponed []fanfare.Due   // replaces due and, without group, also entry
	done      chan error
}

// size returns the number of entries, at least 1.
func (w *pendingWrite) size() int { return max(1, len(w.group)) }

// Start returns a recorder that runs until Stop.
func Start(options Options) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{options: options, wake: make(chan struct{}, 1), allArrived: make(chan struct{}, 1), broadcasts: newBoard(), stop: stop}
	r.pool.New = func() any { return &pendingWrite{done: make(chan error, 1)} }
	r.stopped.Go(func() { r.run(ctx) })
	return r
}

// Stop commits the waiting entries and returns when none is left. Record fails from then
// on.
func (r *Recorder) Stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.stopped.Wait()
}

// errStopped means that nothing more can be recorded.
var errStopped = &fanfare.Error{Code: fanfare.Unavailable, Message: "the recorder has stopped"}

// Expect announces that a message was released and that RecordExpected will follow. A group
// waits a moment for expected entries, so that one sync serves many connections.
func (r *Recorder) Expect() { r.expected.Add(1) }

// RecordGroup records entries of one day of messages that were sent together; expected of
// them were announced. When it returns, all entries are durable or none, and the caller may
// reuse the slices.
func (r *Recorder) RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error {
	w := r.pool.Get().(*pendingWrite)
	w.day, w.group, w.postponed = entries[0].Delivery.Day, entries, dues
	return r.submit(w, int64(expected))
}

// RecordExpected is Record for an announced entry.
func (r *Recorder) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	return r.record(entry, due, 1)
}

// Record commits an entry, together with the retry that becomes due if the entry is
// Deferred. It blocks until both are durable.
func (r *Recorder) Record(entry *fanfare.Entry, due *fanfare.Due) error {
	return r.record(entry, due, 0)
}

func (r *Recorder) record(entry *fanfare.Entry, due *fanfare.Due, expected int64) error {
	w := r.pool.Get().(*pendingWrite)
	w.day, w.entry, w.due = entry.Delivery.Day, *entry, due
	return r.submit(w, expected)
}

// submit enqueues a write and waits until it is committed.
func (r *Recorder) submit(w *pendingWrite, expected int64) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.expected.Add(-expected)
		return errStopped
	}
	if expected > 0 {
		r.waiting = append(r.waiting, w)
	} else {
		r.unsent = append(r.unsent, w)
	}
	r.mu.Unlock()
	if r.expected.Add(-expected) <= r.ignored.Load() {
		signal(r.allArrived)
	}
	signal(r.wake)
	err := <-w.done
	w.due, w.group, w.postponed = nil, nil, nil
	r.pool.Put(w)
	return err
}

// run commits groups. A group closes when all expected entries have arrived, or a moment
// after its first entry.
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

// gather waits at most a moment for expected entries, except for stragglers.
func (r *Recorder) gather(ctx context.Context, moment *time.Timer) {
	spared := r.stragglers.ignore()
	r.ignored.Store(spared)
	select {
	case <-r.allArrived: // from an earlier group
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

// signal sends a token unless there is one.
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

// commitGroup commits a group with one transaction per day.
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
	for _, w := range group {
		commit.Dues = append(commit.Dues, w.postponed...)
		switch {
		case w.group != nil:
			commit.Entries = append(commit.Entries, w.group...)
		case w.postponed == nil:
			commit.Entries = append(commit.Entries, w.entry)
		}
		if w.due != nil {
			commit.Dues = append(commit.Dues, *w.due)
		}
	}
	for i := range commit.Dues {
		if at := commit.Dues[i].At; earliest.IsZero() || at.Before(earliest) {
			earliest = at
		}
	}
	told := r.markCallbacks(commit.Entries)
	failpoint.Hit("before-outcome")
	allFailed := r.broadcasts.apply(commit.Entries, &commit, r.options.Clock.Now())
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
	for _, w := range group {
		w.done <- err
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
	for _, ref := range allFailed {
		r.stopped.Go(func() { r.options.OnAllFailed(ref) })
	}
}

// markCallbacks marks the entries for which services get a callback.
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

// commit tries until the store accepts the group, the recorder stops, or the day was
// removed.
func (r *Recorder) commit(ctx context.Context, day fanfare.Day, commit *fanfare.Commit) error {
	for try := 0; ; try++ {
		err := r.options.Store.Commit(context.WithoutCancel(ctx), day, commit)
		if err == nil || fanfare.CodeOf(err) == fanfare.NotFound {
			return err
		}
		if try%50 == 0 {
			r.options.Logger.Error("cannot record outcomes; sending is paused until the store accepts them", "error", err, "entries", len(commit.Entries))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// Totals counts the entries committed since the start by state, and their commits.
func (r *Recorder) Totals() (counts fanfare.Counts, groups int64) {
	for s := range r.totals {
		counts[s] = r.totals[s].Load()
	}
	return counts, r.groups.Load()
}

// RecordAll records entries that need no retry. It blocks until all are durable and returns
// the first error.
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
	for _, w := range all {
		if err := <-w.done; err != nil && first == nil {
			first = err
		}
		r.pool.Put(w)
	}
	return first
}

// Postpone records that work of one day becomes due later, without an entry. It shares the
// commits of entries, and blocks until the work is durable. Work that is postponed twice to
// the same second is stored once.
func (r *Recorder) Postpone(day fanfare.Day, dues []fanfare.Due) error {
	if len(dues) == 0 {
		return nil
	}
	w := r.pool.Get().(*pendingWrite)
	w.day, w.postponed = day, dues
	failpoint.Hit("before-postpone")
	err := r.submit(w, 0)
	failpoint.Hit("after-postpone")
	return err
}
