package registry

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// submit hands j in and waits until it is done, at most as long as
// Options.Patience says. When ctx ends before the writer took it, nothing of it
// happens; afterwards its outcome is waited for.
func (w *writer) submit(ctx context.Context, j *job) error {
	over, stop := w.r.patience()
	defer stop()
	if err := w.enqueue(ctx, j, over); err != nil {
		return err
	}
	return j.await(over)
}

// patience gives a word when a call has waited long enough for the store; nil
// never does.
func (r *Registry) patience() (over <-chan time.Time, stop func() bool) {
	if r.opt.Patience == 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(r.opt.Patience)
	return timer.C, timer.Stop
}

var (
	errNotTaken = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not answer, nothing was kept", Hint: "send it again in a moment"}
	errUnknown  = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database does not answer, this may still be kept",
		Hint: "send it again in a moment: what was kept is not made twice where it has an id or a name; else look first"}
)

// enqueue is submit without the wait for the outcome.
func (w *writer) enqueue(ctx context.Context, j *job, over <-chan time.Time) error {
	if err := w.r.opt.Away(); err != nil {
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
		return errNotTaken
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
	if j.take() {
		return errNotTaken
	}
	return errUnknown
}

// take is true once: for the writer, or for the caller who gives j up.
func (j *job) take() bool { return j.taken.CompareAndSwap(false, true) }
