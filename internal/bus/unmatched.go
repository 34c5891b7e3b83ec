package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// UnmatchedEvents visits the groups in EVENTS, at the time of the call, that are not known to be
// matched and frozen, oldest first. It may also visit matched groups that follow an unmatched one,
// because the consumer only knows the sequence up to which all are acknowledged.
func (b *Bus) UnmatchedEvents(ctx context.Context, visit func(seq uint64, group []byte) error) error {
	if err := b.embedded.full(); err != nil {
		return err
	}
	open, err := b.openLanes(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	info, err := b.infoOf(ctx, b.events)
	if err != nil {
		return fmt.Errorf("read %s: %w", eventsStream, err)
	}
	config := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: info.State.LastSeq + 1}
	for subject, first := range open {
		config.FilterSubjects = append(config.FilterSubjects, subject)
		config.OptStartSeq = min(config.OptStartSeq, first)
	}
	consumer, err := b.read(ctx, config)
	if err != nil {
		return fmt.Errorf("read %s: %w", eventsStream, err)
	}
	waiting, err := consumer.Info(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", eventsStream, err)
	}
	if waiting.NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read %s: %w", eventsStream, err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("read %s: %w", eventsStream, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		seq := meta.Sequence.Stream
		if first := open[msg.Subject()]; seq >= first && seq <= info.State.LastSeq {
			if err := visit(seq, msg.Data()); err != nil {
				return err
			}
		}
		if meta.NumPending == 0 || seq >= info.State.LastSeq {
			return nil
		}
	}
}

// openLanes returns, for the subject of each lane with unmatched groups, the sequence at which
// they begin.
func (b *Bus) openLanes(ctx context.Context) (map[string]uint64, error) {
	open := map[string]uint64{}
	for _, lane := range fanfare.Lanes {
		subject := eventsSubject(lane)
		consumer, err := b.events.Consumer(ctx, consumerName(subject))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			open[subject] = 1 // matching has not begun
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", eventsStream, err)
		}
		last, err := b.lastGroup(ctx, lane)
		if err != nil {
			return nil, err
		}
		if floor := consumer.CachedInfo().AckFloor.Stream; floor < last {
			open[subject] = floor + 1
		}
	}
	return open, nil
}

// NextEvent returns the lowest possible sequence of the next group.
func (b *Bus) NextEvent(ctx context.Context) (uint64, error) {
	info, err := b.infoOf(ctx, b.events)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", eventsStream, err)
	}
	return info.State.LastSeq + 1, nil
}
