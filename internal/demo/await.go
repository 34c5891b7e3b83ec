package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

const (
	lookEvery = 200 * time.Millisecond
	patience  = 5 * time.Minute
)

// await waits until all deliveries of the events are settled, and returns the broadcasts in the
// order of the events.
func (h *host) await(ctx context.Context, ids []string, show *screen) (all []fanfare.Broadcast, err error) {
	s := show.begin(ctx, "deliver", "messages", 0)
	before := count(len(ids)) + " events are being matched"
	s.before.Store(&before)
	all = make([]fanfare.Broadcast, len(ids))
	if err := h.watch(ctx, ids, all, s); err != nil {
		s.drop()
		return nil, err
	}
	s.end("%s messages to the capture server", count(messages(all)))
	return all, nil
}

// watch asks for each event once when all are matched, to learn the number of mails, and asks
// again for the incomplete ones when no delivery waits.
func (h *host) watch(ctx context.Context, ids []string, all []fanfare.Broadcast, s *step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all messages were delivered within %v", patience))
	defer cancel()
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		s.set(h.sink.Stats().Accepted)
		status, err := h.api.Status(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		matched, quiet := status.Bus.EventsPending == 0, len(status.Broadcasts) == 0
		if matched && (quiet || !frozen(all)) {
			open, err := h.ask(ctx, ids, all)
			if err != nil {
				return ended(ctx, err)
			}
			if frozen(all) {
				s.setOf(h.sink.Stats().Accepted, messages(all))
			}
			if open == 0 {
				return nil
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended returns the reason why ctx has ended, or else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// ask asks for each incomplete event, and returns how many are still incomplete.
func (h *host) ask(ctx context.Context, ids []string, all []fanfare.Broadcast) (open int, err error) {
	for i, id := range ids {
		if all[i].State == completed {
			continue
		}
		if all[i], err = h.api.Event(ctx, id); err != nil {
			return 0, err
		}
		if all[i].State != completed {
			open++
		}
	}
	return open, nil
}

const completed = "completed" // final state of a broadcast

// frozen reports whether the number of mails is known for each event.
func frozen(all []fanfare.Broadcast) bool {
	return !slices.ContainsFunc(all, func(b fanfare.Broadcast) bool { return b.Stages.Frozen.IsZero() })
}

func messages(all []fanfare.Broadcast) (n int64) {
	for i := range all {
		n += all[i].Messages
	}
	return n
}

// A told is one mail in the history of a person.
type told struct {
	of   noted
	mail fanfare.Delivery
}

// shown is the maximum number of mails shown from a person's history.
const shown = 10

// history returns the mails to a person, the latest first.
func (h *host) history(ctx context.Context, address string) ([]told, error) {
	mails, err := h.api.History(ctx, address, shown)
	if err != nil {
		return nil, err
	}
	all := make([]told, len(mails))
	for i, m := range mails {
		b, err := h.api.Event(ctx, m.Event)
		if err != nil {
			return nil, err
		}
		n, err := h.example.note(b)
		if err != nil {
			return nil, err
		}
		all[i] = told{n, m}
	}
	return all, nil
}
