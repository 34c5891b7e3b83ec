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
	// maxQueuedJobs is the number of calls that may wait for the writer; further calls block.
	maxQueuedJobs = 256
	// maxGroupChanges is the maximum number of subscriptions in a transaction, unless a single
	// call has more.
	maxGroupChanges = 16_384
	// minOverlap is the minimum number of subscriptions of a call that is decided while another
	// group is being committed. Smaller calls are collected first.
	minOverlap = 512
	// maxJobChanges is the maximum number of subscriptions in a job.
	maxJobChanges = 8_192
)

// A job is a request to the writer. Exactly one of changes, endRequest, auditEntry, decide and
// exclusive is set.
type job struct {
	svc            *catalog.ServiceSnapshot
	conf           *catalog.Snapshot    // used to check the changes
	changes        []subscriptionChange // puts, or with recipientsOnly their subscribers
	recipientsOnly bool
	endRequest     *endRequest
	actor          *audit.Actor        // of the puts or the end, or nil
	auditEntry     *audit.Entry        // about an action elsewhere
	decide         func(*group) error  // changes subscribers or subscriptions, all or nothing
	exclusive      func(*writer) error // changes the configuration, in a transaction of its own
	undone         bool                // it failed and was undone
	dependsOn      *job                // fails with this one; may be nil

	claimed atomic.Bool // by the writer, or by the caller that gave up
	err     error
	done    chan struct{}
}

// An endRequest asks for the end of a subscription, by row or by service and id.
type endRequest struct {
	place  fanfare.RowID // 0: by id
	id     string
	reason string
	check  func(*people.Subscription) error // nil allows all
}

// A writer has one goroutine that decides on changes and one that commits them, so that a long
// import uses both cores.
//
// At most one group is being committed. Meanwhile the next one is decided as if the commit had
// succeeded, and takes arriving jobs until it ends. If the commit fails, both are undone and the
// next group is decided again.
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
	lastAudit        int64 // id; the committer uses it, and the writer only between commits

	groups     [2]*group
	current    *group // being decided on, or nil
	committing *group // being committed, or nil
	deferred   *job   // did not fit into the last group

	// The committer changes it; the writer reads it between commits.
	usage state.Usage
}

func newWriter(r *Registry) *writer {
	w := &writer{r: r, jobs: make(chan *job, maxQueuedJobs), commits: make(chan *group, 1), usage: state.Usage{Channels: map[uint16]int64{}, Paused: map[state.TopicRule]int64{}, Waiting: map[uint32]int64{}}, slots: newPlannedSlots()}
	for i := range fanfare.Partitions {
		w.nextSubscriber[i], w.nextSubscription[i] = 1, 1 // row id 0 is never used
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

// dependencyError returns the error of the job on which j depends. A dependency that has not
// finished either shares the transaction of j, or its failure causes j to be decided again. Only
// the goroutine of the writer uses errors of unfinished jobs.
func (j *job) dependencyError() error {
	if j.dependsOn == nil {
		return nil
	}
	return j.dependsOn.err
}

// loop processes jobs until the queue is closed and empty.
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
			w.waitCommit() // meanwhile more small jobs arrive
		}
		for jobs := w.gather(first); len(jobs) > 0; {
			jobs = w.decideGroup(jobs)
		}
	}
}

// next waits for a job. It returns nil when the queue is closed.
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

// gather returns first and the waiting jobs that fit into one group with it.
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

// decideGroup decides on jobs and hands them to the committer. If the commit in progress failed,
// it does nothing and returns the jobs that have to be decided again.
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
		g.answer(nil) // nothing had to change
		g.release()
	default:
		w.changeSeq = g.batch.ChangeSeq
		w.committing = g
		w.commits <- g
	}
	return nil
}

// gatherDuringCommit waits for a further job for g while another group is being committed. One
// large transaction costs less than two, which write the ends of all partitions twice. It returns
// nil when the commit has ended or g is full.
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

// waitCommit waits for the group that is being committed, if any.
func (w *writer) waitCommit() {
	if w.committing != nil {
		w.finishCommit(<-w.committing.committed)
	}
}

// finishCommit ends a commit. If it failed, its group and the group being decided are undone.
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

// commitLoop commits groups, publishes them, and then answers.
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
		// The entries were checked before. If the index rejects an entry, it lacks that entry until the
		// next start.
		w.r.opt.Logger.Error("registry: the match index rejected a committed subscription", "error", err)
	}
	w.r.changeSeq.Store(g.batch.ChangeSeq)
	if len(g.batch.Notices) > 0 {
		select {
		case w.r.newNotices <- struct{}{}:
		default:
		}
	}
}

// commit stores b. The returned error is for users; the log has the cause.
func (r *Registry) commit(b *control.Batch) error {
	r.writer.assignAuditIDs(b)
	err := r.opt.Store.Commit(b)
	if err == nil {
		return nil
	}
	r.opt.Logger.Error("registry: a transaction was rolled back", "error", err)
	return control.UserError(err, "the control store could not be written; nothing was stored")
}

// readError returns the error for users of a failed read.
func (r *Registry) readError(err error) error {
	if errors.Is(err, errAborted) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.opt.Logger.Error("registry: cannot read the store", "error", err)
	return control.UserError(err, "the control store could not be read")
}

// assignAuditIDs sets the ids of the audit entries. It runs where batches are committed.
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

// submit enqueues j and waits until it is done, at most Options.MaxWait. If ctx ends before the
// writer claims j, j is not processed; after that submit waits for the result.
func (w *writer) submit(ctx context.Context, j *job) error {
	over, stop := w.r.maxWaitTimer()
	defer stop()
	if err := w.enqueue(ctx, j, over); err != nil {
		return err
	}
	return j.await(over)
}

// maxWaitTimer returns a timer for MaxWait; nil never fires.
func (r *Registry) maxWaitTimer() (over <-chan time.Time, stop func() bool) {
	if r.opt.MaxWait == 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(r.opt.MaxWait)
	return timer.C, timer.Stop
}

var (
	errNotStored      = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not respond; nothing was stored", Hint: "send the request again shortly"}
	errOutcomeUnknown = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not respond; it may still store the request",
		Hint: "if the request has an id or a name, send it again: it is not stored twice; otherwise, first check whether it was stored"}
)

// enqueue is submit without waiting for the result.
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

// await returns when j is done or the time is over. A job that the writer has not taken then never
// happens. The outcome of a job that it has taken is unknown, and its fields must not be read.
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

// claim returns true once: to the writer, or to the caller that gives up.
func (j *job) claim() bool { return j.claimed.CompareAndSwap(false, true) }
