package registry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

const (
	// maxQueue is how many calls may wait for the writer; more block.
	maxQueuedJobs = 256
	// maxGroup is how many subscriptions one transaction takes, unless a single
	// call has more.
	maxGroupChanges = 16_384
	// minOverlap is from how many subscriptions on a call is worth deciding on
	// while another group is being committed. Smaller ones are better gathered.
	minOverlap = 512
	// maxJob is how many subscriptions one call hands in at a time.
	maxJobChanges = 8_192
)

// A job is what one call asks of the writer. Exactly one of the kinds is set.
type job struct {
	svc            *catalog.ServiceSnapshot
	conf           *catalog.Snapshot    // that wants were checked against
	changes        []subscriptionChange // puts, or with people only their subscribers
	recipientsOnly bool
	endRequest     *endRequest
	actor          *audit.Actor        // who asks for the puts or the end, or nil
	auditEntry     *audit.Entry        // a line of the audit about something else
	decide         func(*group) error  // a change of subscribers: all of it, or nothing
	exclusive      func(*writer) error // a change of the configuration: by itself
	undone         bool                // it failed, and what it did is undone
	dependsOn      *job                // fails with this one; nil: stands alone

	claimed atomic.Bool // by the writer, or by the caller who gave it up
	err     error
	done    chan struct{}
}

// An end asks for the end of one subscription, by place or by service and id.
type endRequest struct {
	place  fanfare.RowID // 0: by id
	id     string
	reason string
	check  func(*people.Subscription) error // nil allows all
}

// A writer is the one goroutine that decides on changes, and beside it one that
// commits what was decided, so that a long import keeps both cores busy.
//
// At most one group is in flight. While it is, the next one is decided on as if
// it had landed already, and grows by what comes until it has. If it fails, both
// are undone, and the next is decided on anew.
type writer struct {
	r          *Registry
	jobs       chan *job
	commits    chan *group
	goroutines sync.WaitGroup

	changeSeq        uint64
	nextSubscriber   [fanfare.Partitions]uint32
	nextSubscription [fanfare.Partitions]uint32
	nextFilter       uint32
	slots            plannedSlots
	lastAudit        int64 // id; of the committer, and of the writer while nothing is in flight

	groups     [2]*group
	current    *group // being decided on, or nil
	committing *group // being committed, or nil
	deferred   *job   // the one that did not fit into the last group

	// The committer changes it; the writer reads it while no group is in flight.
	usage state.Usage
}

func newWriter(r *Registry) *writer {
	w := &writer{r: r, jobs: make(chan *job, maxQueuedJobs), commits: make(chan *group, 1), usage: state.Usage{Channels: map[uint16]int64{}, Paused: map[state.TopicRule]int64{}, Waiting: map[uint32]int64{}}, slots: newPlannedSlots()}
	for i := range fanfare.Partitions {
		w.nextSubscriber[i], w.nextSubscription[i] = 1, 1 // place 0 is nobody's
	}
	for i := range w.groups {
		w.groups[i] = &group{w: w, committed: make(chan error, 1)}
	}
	return w
}

func (w *writer) start() {
	w.goroutines.Go(w.loop)
	w.goroutines.Go(w.commitLoop)
}

// dependencyError is the error of the job that j comes after, where that has failed,
// also as an orphan in the group that j is in. One that is not over yet takes j
// with it, if its commit fails: they share a transaction, or j is decided on anew.
// Only the writer's goroutine sets and asks for errors before a job is done.
func (j *job) dependencyError() error {
	if j.dependsOn == nil {
		return nil
	}
	return j.dependsOn.err
}

// loop gathers what waits, and does it, until the queue is closed and empty.
func (w *writer) loop() {
	defer close(w.commits)
	for {
		first := w.next()
		if first == nil {
			w.waitCommit()
			return
		}
		if first.exclusive != nil {
			w.waitCommit()
			first.err = first.exclusive(w)
			close(first.done)
			continue
		}
		if first.size() < minOverlap {
			w.waitCommit() // meanwhile more of the small ones come together
		}
		for jobs := w.gather(first); len(jobs) > 0; {
			jobs = w.decideGroup(jobs)
		}
	}
}

// next waits for a job. It is nil when there will be none.
func (w *writer) next() *job {
	if first := w.deferred; first != nil {
		w.deferred = nil
		return first
	}
	for w.committing != nil {
		select {
		case first := <-w.jobs:
			if first == nil || first.claim() {
				return first
			}
		case err := <-w.committing.committed:
			w.finishCommit(err)
		}
	}
	for {
		if first := <-w.jobs; first == nil || first.claim() {
			return first
		}
	}
}

// gather takes what waits and fits into one group with first.
func (w *writer) gather(first *job) []*job {
	jobs, size := []*job{first}, first.size()
	for size < maxGroupChanges {
		select {
		case next := <-w.jobs:
			if next == nil { // closed
				return jobs
			}
			if !next.claim() {
				continue
			}
			if next.exclusive != nil || size+next.size() > maxGroupChanges {
				w.deferred = next
				return jobs
			}
			jobs, size = append(jobs, next), size+next.size()
		default:
			return jobs
		}
	}
	return jobs
}

func (j *job) size() int { return max(1, len(j.changes)) }

// decideGroup decides on jobs and hands them to the committer. If the group in flight
// failed meanwhile, nothing was done, and it returns what is to be changed anew.
func (w *writer) decideGroup(jobs []*job) (again []*job) {
	g := w.groups[0]
	if g == w.committing {
		g = w.groups[1]
	}
	g.begin()
	w.current = g
	err := g.decide(jobs)
	for err == nil && !g.aborted {
		next := w.gatherDuringCommit(g)
		if next == nil {
			break
		}
		err = g.decide([]*job{next})
	}
	w.waitCommit()
	w.current = nil
	switch {
	case g.aborted:
		again = g.jobs
		g.release()
		return again
	case err != nil:
		g.undo()
		g.answer(w.r.readError(err))
		g.release()
	case !g.finish():
		g.answer(nil) // all was as asked already
		g.release()
	default:
		w.changeSeq = g.batch.ChangeSeq
		w.committing = g
		w.commits <- g
	}
	return nil
}

// gatherDuringCommit waits for a job to go along with g while another group is in flight: g has to
// wait anyway, and one large transaction costs less than two, which write the ends of
// all partitions twice. It is nil when the flight is over, or g is full.
func (w *writer) gatherDuringCommit(g *group) *job {
	for w.committing != nil && w.deferred == nil && g.size < maxGroupChanges {
		select {
		case next := <-w.jobs:
			switch {
			case next == nil: // closed
				return nil
			case !next.claim():
			case next.exclusive != nil || g.size+next.size() > maxGroupChanges:
				w.deferred = next
			default:
				return next
			}
		case err := <-w.committing.committed:
			w.finishCommit(err)
		}
	}
	return nil
}

// waitCommit waits for the group in flight, if there is one.
func (w *writer) waitCommit() {
	if w.committing != nil {
		w.finishCommit(<-w.committing.committed)
	}
}

// finishCommit ends a flight. If it failed, it is as if nothing of it, nor of the group
// that is being decided on, had been asked.
func (w *writer) finishCommit(err error) {
	g := w.committing
	w.committing = nil
	if err != nil {
		if w.current != nil {
			w.current.undo()
			w.current.aborted = true
		}
		g.undo()
		w.changeSeq = g.batch.ChangeSeq - 1
		g.answer(err)
	}
	g.release()
}

// commitLoop makes groups durable, then seen, and then answers.
func (w *writer) commitLoop() {
	for g := range w.commits {
		err := w.r.commit(&g.batch)
		if err == nil {
			w.publish(g)
			g.answer(nil)
		}
		g.committed <- err
	}
}

// publish puts a committed group in force.
func (w *writer) publish(g *group) {
	g.applyRemovals()
	w.r.filters.Add(g.batch.Filters)
	w.r.filters.Erase(g.batch.ErasedFilters)
	for i := range g.slots {
		w.r.slots.add(g.slots[i].slot)
	}
	w.r.suppressions.Set(g.batch.Suppressions)
	if err := g.updateMatchIndex(); err != nil {
		// What was checked before cannot be refused now; if it is, the index
		// lacks it until the next start, and somebody must know.
		w.r.opt.Logger.Error("registry: the match index refused what is committed", "error", err)
	}
	w.r.changeSeq.Store(g.batch.ChangeSeq)
	if len(g.batch.Notices) > 0 {
		select {
		case w.r.newNotices <- struct{}{}:
		default:
		}
	}
}

// commit keeps b. What the user is told is the error; the log has its cause.
func (r *Registry) commit(b *control.Batch) error {
	r.writer.assignAuditIDs(b)
	err := r.opt.Store.Commit(b)
	if err == nil {
		return nil
	}
	r.opt.Logger.Error("registry: a transaction was rolled back", "error", err)
	return control.UserError(err, "the control store could not be written, nothing was kept")
}

// readError is the error for users of one that came from reading the store.
func (r *Registry) readError(err error) error {
	if errors.Is(err, errAborted) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.opt.Logger.Error("registry: reading the store", "error", err)
	return control.UserError(err, "the control store could not be read")
}

// assignAuditIDs gives the lines of b their ids. It runs where batches are committed.
func (w *writer) assignAuditIDs(b *control.Batch) {
	now := w.r.opt.Now().UnixMicro()
	for i := range b.Audit {
		w.lastAudit = max(w.lastAudit+1, now)
		b.Audit[i].ID = w.lastAudit
	}
}

// Run calls f while no other change is in progress.
func (w *writer) Run(ctx context.Context, f func() error) error {
	return w.submit(ctx, &job{exclusive: func(*writer) error { return f() }})
}

// Commit stores b durably. Only functions that Run calls may use it.
func (w *writer) Commit(b *control.Batch) error { return w.r.commit(b) }

// AddEntry stores an audit entry durably, in one transaction with other changes.
func (w *writer) AddEntry(ctx context.Context, e *audit.Entry) error {
	return w.submit(ctx, &job{auditEntry: e})
}

// Usage returns the numbers of subscriptions that use the configuration. Only functions that Run
// calls may read it.
func (w *writer) Usage() *state.Usage { return &w.usage }

// submit hands j in and waits until it is done, at most as long as
// Options.Patience says. When ctx ends before the writer took it, nothing of it
// happens; afterwards its outcome is waited for.
func (w *writer) submit(ctx context.Context, j *job) error {
	over, stop := w.r.maxWaitTimer()
	defer stop()
	if err := w.enqueue(ctx, j, over); err != nil {
		return err
	}
	return j.await(over)
}

// maxWaitTimer gives a word when a call has waited long enough for the store; nil
// never does.
func (r *Registry) maxWaitTimer() (over <-chan time.Time, stop func() bool) {
	if r.opt.MaxWait == 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(r.opt.MaxWait)
	return timer.C, timer.Stop
}

var (
	errNotStored      = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not answer, nothing was kept", Hint: "send it again in a moment"}
	errOutcomeUnknown = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not answer, this may still be kept",
		Hint: "send it again in a moment: what was kept is not made twice where it has an id or a name; else look first"}
)

// enqueue is submit without the wait for the outcome.
func (w *writer) enqueue(ctx context.Context, j *job, over <-chan time.Time) error {
	if err := w.r.opt.StoreOutage(); err != nil {
		return err
	}
	j.done = make(chan struct{})
	w.r.closing.RLock()
	defer w.r.closing.RUnlock()
	if w.r.closed {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping"}
	}
	select {
	case w.jobs <- j:
		return nil
	case <-over:
		return errNotStored
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await returns when j is done, or over. One that the writer has not taken then
// never happens; of one that it has taken nobody knows, and nothing that it sets
// may be read.
func (j *job) await(over <-chan time.Time) error {
	select {
	case <-j.done:
		return j.err
	case <-over:
	}
	if j.claim() {
		return errNotStored
	}
	return errOutcomeUnknown
}

// claim is true once: for the writer, or for the caller who gives j up.
func (j *job) claim() bool { return j.claimed.CompareAndSwap(false, true) }
