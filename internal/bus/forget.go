package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// rewrittenSubject is the subject of rewritten groups: a replay of EVENTS visits them, and no
// queue delivers them.
const rewrittenSubject = "fanfare.events.rewritten"

// matchedEvery is the interval at which a wait checks whether a group is matched.
const matchedEvery = 50 * time.Millisecond

// AwaitMatched waits until all groups that are now in EVENTS have left their queues, or ctx ends.
func (b *Bus) AwaitMatched(ctx context.Context) error {
	for _, lane := range fanfare.Lanes {
		last, err := b.lastGroup(ctx, lane)
		if err == nil && last != 0 {
			err = b.awaitFloor(ctx, lane, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastGroup returns the sequence of the last group of a lane, 0 if it has none. It asks the
// stream, because a consumer learns of a group only after its append was acknowledged, and reports
// until then that nothing is pending.
func (b *Bus) lastGroup(ctx context.Context, lane fanfare.Lane) (uint64, error) {
	last, err := b.events.GetLastMsgForSubject(ctx, eventsSubject(lane))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read %s: %w", eventsStream, err)
	}
	return last.Sequence, nil
}

// awaitFloor waits until a lane has finished all groups up to one of its own, or until that group
// no longer exists.
func (b *Bus) awaitFloor(ctx context.Context, lane fanfare.Lane, seq uint64) error {
	for {
		consumer, err := b.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		state := consumer.CachedInfo()
		if state.AckFloor.Stream >= seq {
			return nil
		}
		if state.NumPending == 0 && state.NumAckPending == 0 {
			if last, err := b.lastGroup(ctx, lane); err != nil || last < seq {
				return err // trimmed in the meantime
			}
		}
		select {
		case <-time.After(matchedEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RewriteGroup replaces a matched group with a new text and overwrites the old one. A reader of
// EVENTS finds the new text at the end of the stream. A missing group is not an error.
func (b *Bus) RewriteGroup(ctx context.Context, seq uint64, group []byte) error {
	old, _, err := b.EventGroup(ctx, seq)
	if err != nil || old == nil {
		return err
	}
	if err := fits(group); err != nil {
		return err
	}
	if _, err := b.publish(ctx, rewrittenSubject, group); err != nil {
		return fmt.Errorf("append to %s: %w", eventsStream, err)
	}
	if err := b.eventNames.sync(); err != nil {
		return fmt.Errorf("append to %s: %w", eventsStream, err)
	}
	if err := b.events.SecureDeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("delete from %s: %w", eventsStream, err)
	}
	return nil
}
