package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	pageObjects  = 100              // objects between two times at which the position is stored
	objectLimit  = time.Minute      // time for one object, also while the server stops
	endStoreTime = 10 * time.Second // time for storing the position while the server stops
)

// Run runs the tasks until ctx ends. When it returns, no object is being acted on.
func (t *Tasks) Run(ctx context.Context) {
	var runs sync.WaitGroup
	defer runs.Wait()
	for {
		for one := t.next(); one != nil && ctx.Err() == nil; one = t.next() {
			runs.Go(func() {
				t.run(ctx, one)
				t.wake()
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		}
	}
}

// next marks the oldest task that waits for its turn as started, and returns it, or nil if there is none, or if enough
// are running. A task that was cancelled before its turn does not count.
func (t *Tasks) next() *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	under := 0
	for _, one := range t.all {
		if one.isStarted && one.State == running {
			under++
		}
	}
	for _, one := range t.all {
		if one.State == running && !one.isStarted && (under < maxRunning || one.stopped) {
			one.isStarted = true
			return one
		}
	}
	return nil
}

// errStopped means that the run ended before the task.
var errStopped = errors.New("the run was stopped")

// run acts on the objects of a task until it ends, or until ctx ends.
func (t *Tasks) run(ctx context.Context, one *task) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t.mu.Lock()
	one.stop = stop
	if one.stopped {
		stop()
	}
	t.mu.Unlock()
	err := t.pages(ctx, one)
	t.mu.Lock()
	wasCancelled := one.stopped
	t.mu.Unlock()
	switch {
	case err == nil:
		t.finish(one, completed, nil)
	case wasCancelled:
		t.finish(one, cancelled, nil)
	case ctx.Err() != nil: // the server stops; another start continues
		storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), endStoreTime)
		defer cancel()
		if err := t.put(storing, t.copyOf(one), nil); err != nil {
			t.options.Logger.Warn("the position of a task was not stored; after the next start, some of its objects are not counted", "task", one.ID, "error", err)
		}
	default:
		t.options.Logger.Error("a task failed", "task", one.ID, "action", one.Action, "error", err)
		t.finish(one, failed, err)
	}
}

// pages acts on the objects of page after page. It returns nil at the end of the list.
func (t *Tasks) pages(ctx context.Context, one *task) error {
	does := t.actions[one.Action]
	r := t.copyOf(one)
	for {
		if _, err := t.rights(&r); err != nil {
			return err
		}
		var page []object
		var next string
		err := retry.WhileAway(ctx, func() (err error) {
			if ctx.Err() != nil {
				return errStopped
			}
			page, next, err = does.list(ctx, &r, r.Position, pageObjects)
			return err
		})
		if err != nil {
			return err
		}
		t.change(func() { one.Found += int64(len(page)) })
		outcomes, err := t.act(ctx, one, &r, does, page)
		if err != nil {
			t.change(func() { one.leave(page, outcomes) })
			return err
		}
		t.change(func() { one.Position = next })
		r.Position = next
		if next == "" {
			return nil
		}
		if err := retry.WhileAway(ctx, func() error { return t.put(ctx, t.copyOf(one), nil) }); err != nil {
			return err
		}
	}
}

// An outcome is how far a run is with an object.
type outcome uint8

const (
	open outcome = iota
	done
	refused
)

// leave sets the position and the counts of a task whose page was interrupted. Objects behind the position are found again, except those that are done.
func (r *record) leave(page []object, outcomes []outcome) {
	settled := 0
	for settled < len(page) && outcomes[settled] != open && page[settled].position != "" {
		r.Position = page[settled].position
		settled++
	}
	for _, o := range outcomes[settled:] {
		if o != done {
			r.Found--
		}
		if o == refused {
			r.Failed--
		}
	}
}

// act acts on the objects of a page, some at the same time. When it returns, none is being acted on. With an error, some may be open.
func (t *Tasks) act(ctx context.Context, one *task, r *record, does action, page []object) ([]outcome, error) {
	outcomes := make([]outcome, len(page))
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, does.atOnce)
	for i := range page {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return outcomes, errStopped
		}
		by, err := t.rights(r)
		if err != nil {
			return outcomes, err
		}
		group.Go(func() {
			defer func() { <-slots }()
			t.actOn(ctx, one, r, by, &page[i], &outcomes[i])
		})
	}
	group.Wait()
	if slices.Contains(outcomes, open) {
		return outcomes, errStopped
	}
	return outcomes, nil
}

// actOn acts on one object, and counts it. The end of ctx does not interrupt it, but ends the wait for a database that cannot be reached.
func (t *Tasks) actOn(ctx context.Context, one *task, r *record, by catalog.Principal, o *object, result *outcome) {
	acting := audit.WithActor(context.WithoutCancel(ctx), actorOf(r, by))
	err := retry.WhileAway(ctx, func() error {
		limited, cancel := context.WithTimeout(acting, objectLimit)
		defer cancel()
		return o.do(limited, by)
	})
	if retry.IsAway(err) || retry.IsFull(err) {
		return
	}
	t.change(func() {
		if err == nil || fanfare.CodeOf(err) == fanfare.NotFound { // somebody else was faster
			one.Done++
			*result = done
			return
		}
		one.Failed++
		one.LastError = o.name + ": " + textOf(err, o.private)
		*result = refused
	})
}

func actorOf(r *record, by catalog.Principal) audit.Actor {
	return audit.Actor{KeyID: by.KeyID, KeyName: by.Name, Request: r.Request, Tenant: by.Service}
}

// textOf returns the text of an error for operators. It contains nothing internal and, of a private error, only what cannot name a person.
func textOf(err error, private bool) string {
	e, ok := errors.AsType[*fanfare.Error](err)
	switch {
	case !ok:
		return "an internal error occurred; the log of the server says more"
	case private && e.Code != fanfare.Conflict && e.Code != fanfare.Forbidden:
		return string(e.Code)
	}
	return e.Message
}

// rights returns what the starter of a task may do now, or an error if they may not do what the task does.
func (t *Tasks) rights(r *record) (catalog.Principal, error) {
	by, ok := t.options.Rights(r.By)
	if !ok {
		return by, &fanfare.Error{Code: fanfare.Forbidden, Message: cmp.Or(r.By.KeyID, r.By.Name) + ", which started the task, is disabled, has expired, or was deleted", Hint: "start the task again with another key"}
	}
	return by, t.allowed(by, r.Action, r.Service, r.Filter.AllServices)
}

// finish ends a task. The audit log gets one entry with its counts.
func (t *Tasks) finish(one *task, state string, err error) {
	t.change(func() {
		now := t.options.Clock.Now().UTC().Truncate(time.Microsecond)
		one.State, one.EndedAt, one.Position = state, &now, ""
		if err != nil {
			one.LastError = textOf(err, false)
		}
	})
	r := t.copyOf(one)
	ctx, cancel := context.WithTimeout(context.Background(), objectLimit)
	defer cancel()
	if err := retry.WhileAway(ctx, func() error { return t.put(ctx, r, nil) }); err != nil {
		t.options.Logger.Error("the end of a task could not be stored; the next start runs the task again", "task", r.ID, "error", err)
	}
	counts := &audit.Detail{Counts: map[string]int64{"found": r.Found, "done": r.Done, "failed": r.Failed}}
	if err := t.options.Audit.Record(audit.WithActor(ctx, actorOf(&r, r.By)), audit.Operation{Service: r.Service, Action: "end", Kind: "task", Name: r.ID}, counts); err != nil {
		t.options.Logger.Error("the end of a task could not be recorded in the audit log", "task", r.ID, "error", err)
	}
	close(one.ended)
}

// change changes a task.
func (t *Tasks) change(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}

// copyOf returns the record of a task as it is now.
func (t *Tasks) copyOf(one *task) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return one.record
}
