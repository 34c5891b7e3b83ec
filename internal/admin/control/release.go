package control

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// DueWork schedules deliveries that have a due time, and releases batches that are held.
type DueWork interface {
	Load(ctx context.Context, day fanfare.Day) error
	ReleaseHeld(ctx context.Context, held func(*fanfare.Batch) bool) error
}

// releaser does the work that follows from a change of a switch: it returns batches that no switch holds any longer to the bus, and makes
// waiting deliveries of cancelled broadcasts due. A switch takes effect once it is durable, so the releaser repeats its work until it
// succeeds, and each start checks for unfinished work.
type releaser struct {
	due    DueWork
	store  *deliveries.Store
	holds  func(*fanfare.Batch) bool
	logger *slog.Logger

	mu        sync.Mutex // held while work is done
	cancelled []fanfare.EventRef
	again     chan struct{} // holds a token if work is left
}

func newReleaser(due DueWork, store *deliveries.Store, logger *slog.Logger) releaser {
	return releaser{due: due, store: store, logger: logger, again: make(chan struct{}, 1)}
}

// Release returns batches that no switch holds any longer to the bus, and makes waiting deliveries of cancelled broadcasts due. If this fails,
// Run repeats it, because the caller may have disconnected.
func (s *Switches) Release(ctx context.Context, cancelled ...fanfare.EventRef) {
	failpoint.Hit("before-release")
	if err := s.releaser.try(context.WithoutCancel(ctx), cancelled); err != nil {
		s.options.Logger.Log(ctx, retry.LogLevel(err), "cannot release held batches; retrying", "error", err)
		s.ReleaseSoon()
	}
}

// ReleaseSoon makes Run do the work of Release.
func (s *Switches) ReleaseSoon() {
	select {
	case s.releaser.again <- struct{}{}:
	default:
	}
}

func (r *releaser) try(ctx context.Context, cancelled []fanfare.EventRef) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelled = append(r.cancelled, cancelled...)
	for len(r.cancelled) > 0 {
		ref := r.cancelled[0]
		if err := r.store.HastenDue(ctx, ref); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		if err := r.due.Load(ctx, ref.Day); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		r.cancelled = slices.Delete(r.cancelled, 0, 1)
	}
	return r.due.ReleaseHeld(ctx, r.holds)
}

// Run does the work that the server's previous run left, and repeats failed work, until ctx ends.
func (s *Switches) Run(ctx context.Context) {
	left := s.openCancelled()
	for {
		for s.releaser.try(ctx, left) != nil {
			left = nil
			select {
			case <-ctx.Done():
				return
			case <-time.After(retry.Pause):
			}
		}
		left = nil
		select {
		case <-ctx.Done():
			return
		case <-s.releaser.again:
		}
	}
}

// Holds reports whether a whole batch is paused at this moment. A batch of a deleted channel is never paused, because it is settled.
func (s *Switches) Holds(batch *fanfare.Batch) bool {
	channel, ok := s.options.Registry.Channel(batch.Channel)
	if !ok {
		return false
	}
	return s.current.Load().holds(batch, channel)
}

// openCancelled lists the broadcasts that are cancelled but not settled yet.
func (s *Switches) openCancelled() (refs []fanfare.EventRef) {
	for t, sw := range s.current.Load().broadcasts {
		if _, open := s.options.Recorder.Progress(t.event); open && sw.State == fanfare.SwitchCancelled {
			refs = append(refs, t.event)
		}
	}
	return refs
}
