package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// releasing does what follows from a switch that was kept: batches that are held for
// nothing any more go back to the bus, and what waits of a cancelled broadcast is
// due. The switch says what is true from the moment on at which it is durable. So
// what follows is done until it is done, and is looked for by each start: a process
// may have ended in between.
type releasing struct {
	due      *due.Scheduler
	store    *deliveries.Store
	switches *switches
	logger   *slog.Logger

	mu     sync.Mutex // held by the one who releases
	hasten []fanfare.EventRef
	again  chan struct{} // holds a token when something is left to do
}

func newReleasing(scheduler *due.Scheduler, store *deliveries.Store, logger *slog.Logger) *releasing {
	return &releasing{due: scheduler, store: store, logger: logger, again: make(chan struct{}, 1)}
}

// release puts back to work what a switch holds no more, and has due what waits of
// broadcasts that are cancelled. What fails is done again beside the caller, who may
// have gone.
func (r *releasing) release(ctx context.Context, cancelled ...fanfare.EventRef) {
	failpoint.Hit("before-release")
	if err := r.try(context.WithoutCancel(ctx), cancelled); err != nil {
		r.logger.Log(ctx, retry.LogLevel(err), "what is resumed could not be put back to work, it is tried again", "error", err)
		r.soon()
	}
}

// soon is release beside the caller.
func (r *releasing) soon() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *releasing) try(ctx context.Context, cancelled []fanfare.EventRef) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hasten = append(r.hasten, cancelled...)
	for len(r.hasten) > 0 {
		ref := r.hasten[0]
		if err := r.store.HastenDue(ctx, ref); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		if err := r.due.Load(ctx, ref.Day); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		r.hasten = slices.Delete(r.hasten, 0, 1)
	}
	return r.due.ReleaseHeld(ctx, r.switches.Holds)
}

// run looks for what the run before has left to do, and repeats what failed.
func (r *releasing) run(ctx context.Context) {
	left := r.switches.cancelledAndOpen()
	for {
		for r.try(ctx, left) != nil {
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
		case <-r.again:
		}
	}
}

// Holds reports whether all of a batch is stopped at this moment. What is for a
// channel that is gone is not: it is settled.
func (s *switches) Holds(batch *fanfare.Batch) bool {
	channel, ok := s.registry.Channel(batch.Channel)
	if !ok {
		return false
	}
	return s.now.Load().holds(batch, channel)
}

// cancelledAndOpen lists the broadcasts that are cancelled and not settled yet.
func (s *switches) cancelledAndOpen() (refs []fanfare.EventRef) {
	for p, sw := range s.now.Load().broadcasts {
		if _, open := s.recorder.Progress(p.event); open && sw.State == fanfare.SwitchCancelled {
			refs = append(refs, p.event)
		}
	}
	return refs
}
