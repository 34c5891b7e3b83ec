package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// rewrittenSubject is where groups lie that were rewritten: a replay of EVENTS
// finds them, and no queue does.
const rewrittenSubject = "fanfare.events.rewritten"

// matchedEvery is how often it is asked whether a group is matched.
const matchedEvery = 50 * time.Millisecond

// AwaitMatched returns when all groups that EVENTS has at this moment are taken
// off their queues, or ctx ends.
func (b *Bus) AwaitMatched(ctx context.Context) error {
	info, err := b.events.Info(ctx)
	if err != nil {
		return err
	}
	for _, lane := range fanfare.Lanes {
		if err := b.awaitFloor(ctx, lane, info.State.LastSeq); err != nil {
			return err
		}
	}
	return nil
}

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
		if state.AckFloor.Stream >= seq || state.NumPending == 0 && state.NumAckPending == 0 {
			return nil
		}
		select {
		case <-time.After(matchedEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RewriteGroup puts another text in the place of a group that is matched, and
// overwrites the old one. What reads EVENTS from its beginning finds the new one
// at the end. One that EVENTS has not is no error.
func (b *Bus) RewriteGroup(ctx context.Context, seq uint64, group []byte) error {
	old, _, err := b.EventGroup(ctx, seq)
	if err != nil || old == nil {
		return err
	}
	if err := fits(group); err != nil {
		return err
	}
	if _, err := b.js.Publish(ctx, rewrittenSubject, group); err != nil {
		return fmt.Errorf("append to %s: %w", eventsStream, err)
	}
	if err := b.events.SecureDeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("delete from %s: %w", eventsStream, err)
	}
	return nil
}
