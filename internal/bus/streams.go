package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

const (
	eventsStream  = "EVENTS"
	batchesStream = "BATCHES"
	batchesPrefix = "fanfare.batches."
)

func eventsSubject(lane fanfare.Lane) string { return "fanfare.events." + lane.String() }

func batchesSubject(channel uint16, lane fanfare.Lane) string {
	return fmt.Sprintf(batchesPrefix+"%d.%s", channel, lane)
}

// makeStreams creates the streams if they do not exist. EVENTS keeps matched groups until
// TrimEvents, so that ingestion can rebuild its memory of ids; BATCHES removes a batch when it is
// done.
func (b *Bus) makeStreams(ctx context.Context) (err error) {
	b.events, err = b.makeStream(ctx, jetstream.StreamConfig{
		Name: eventsStream, Subjects: []string{"fanfare.events.*"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		FirstSeq: max(1, b.options.FirstSeq), Metadata: b.metadata,
	})
	if err != nil {
		return err
	}
	b.batches, err = b.makeStream(ctx, jetstream.StreamConfig{
		Name: batchesStream, Subjects: []string{batchesPrefix + ">"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	return err
}

// makeStream creates a stream if it does not exist. It changes an existing stream only in the number
// of replicas, and only if the options name one.
func (b *Bus) makeStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	config.Replicas = max(1, b.options.Replicas)
	stream, err := b.js.Stream(ctx, config.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		stream, err = b.js.CreateStream(ctx, config)
	case err == nil && b.options.Replicas > 0 && stream.CachedInfo().Config.Replicas != b.options.Replicas:
		changed := stream.CachedInfo().Config
		changed.Replicas = b.options.Replicas
		stream, err = b.js.UpdateStream(ctx, changed)
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", config.Name, err)
	}
	return stream, nil
}

// Copies describes how a cluster stores the streams. Of both streams, it reports the one with fewer current copies.
type Copies struct {
	Replicas int // copies that the streams are configured to have
	Current  int // copies that respond and are complete
}

// Copies returns how many servers store the streams.
func (b *Bus) Copies(ctx context.Context) (c Copies, err error) {
	for i, stream := range []jetstream.Stream{b.events, b.batches} {
		info, err := b.infoOf(ctx, stream)
		if err != nil {
			return c, err
		}
		of := Copies{Replicas: max(1, info.Config.Replicas), Current: 1}
		if of.Replicas > 1 && info.Cluster != nil {
			for _, r := range info.Cluster.Replicas {
				if r.Current && !r.Offline {
					of.Current++
				}
			}
		}
		if i == 0 || of.Current < c.Current || of.Replicas < c.Replicas {
			c = of
		}
	}
	return c, nil
}

// AppendEvents stores one group of events and returns its sequence. It returns when the group is
// durable.
func (b *Bus) AppendEvents(ctx context.Context, lane fanfare.Lane, group []byte) (uint64, error) {
	if err := b.embedded.full(); err != nil {
		return 0, err
	}
	if err := fits(group); err != nil {
		return 0, err
	}
	ack, err := b.publish(ctx, eventsSubject(lane), group)
	if full := b.embedded.full(); err != nil && full != nil {
		return 0, full
	}
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", eventsStream, err)
	}
	if err := errors.Join(b.eventNames.sync(), b.syncPoints.reserve(ack.Sequence)); err != nil {
		return 0, fmt.Errorf("append to %s: %w", eventsStream, err)
	}
	return ack.Sequence, nil
}

// EventGroup reads a group that is still in EVENTS; nil if there is none with that sequence.
func (b *Bus) EventGroup(ctx context.Context, seq uint64) (group []byte, kept time.Time, err error) {
	if seq == 0 {
		return nil, time.Time{}, nil // sequences begin at 1; NATS calls 0 a bad request
	}
	var msg *jetstream.RawStreamMsg
	err = b.whileElecting(ctx, replyWait, func(ctx context.Context) (err error) {
		msg, err = b.events.GetMsg(ctx, seq)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", eventsStream, err)
	}
	if msg.Subject == skippedSubject {
		return nil, time.Time{}, nil
	}
	return msg.Data, msg.Time.UTC(), nil
}

// stallWait limits the wait of a batch for its turn while the disk is slow.
const stallWait = 10 * time.Second

// batchesAhead is the number of batches in flight to the server. It syncs them one after the
// other, so more would not be faster, and a batch of another lane would wait behind all of them.
const batchesAhead = 16

// A Batch is one message for the work queue.
type Batch struct {
	Channel uint16
	Lane    fanfare.Lane
	Data    []byte
}

// fits returns an error for a message that is too large for the server.
func fits(data []byte) error {
	if len(data) > MaxPayload {
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("a message for the bus has %d bytes; the maximum is %d", len(data), MaxPayload)}
	}
	return nil
}

// PublishBatches stores the batches. All are durable if it returns no error; after an error, any
// of them may be.
func (b *Bus) PublishBatches(ctx context.Context, batches []Batch) error {
	if err := b.embedded.full(); err != nil {
		return err
	}
	for i := range batches {
		if err := fits(batches[i].Data); err != nil {
			return err
		}
	}
	if len(batches) == 1 {
		if _, err := b.publish(ctx, batchesSubject(batches[0].Channel, batches[0].Lane), batches[0].Data); err != nil {
			return err
		}
		return b.batchNames.sync()
	}
	ids := b.messageIDs()
	if err := b.whileElecting(ctx, 0, func(ctx context.Context) error { return b.publishAhead(ctx, batches, ids) }); err != nil {
		return err
	}
	return b.batchNames.sync()
}

// publishAhead publishes batches, several at a time.
func (b *Bus) publishAhead(ctx context.Context, batches []Batch, ids func(i int) []jetstream.PublishOpt) error {
	ahead := make(chan jetstream.PubAckFuture, batchesAhead)
	for i := range batches {
		if len(ahead) == cap(ahead) {
			if err := published(ctx, <-ahead); err != nil {
				return err
			}
		}
		future, err := b.js.PublishAsync(batchesSubject(batches[i].Channel, batches[i].Lane), batches[i].Data, append(ids(i), jetstream.WithStallWait(stallWait))...)
		if err != nil {
			return fmt.Errorf("publish a batch: %w", err)
		}
		ahead <- future
	}
	for range len(ahead) {
		if err := published(ctx, <-ahead); err != nil {
			return err
		}
	}
	return nil
}

// published waits until a batch is stored.
func published(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return fmt.Errorf("publish a batch: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReplayEvents visits the groups in EVENTS that were stored since a time, oldest first.
func (b *Bus) ReplayEvents(ctx context.Context, since time.Time, visit func(seq uint64, kept time.Time, group []byte) error) error {
	if err := b.embedded.full(); err != nil {
		return err
	}
	info, err := b.infoOf(ctx, b.events)
	if err != nil {
		return err
	}
	if info.State.Msgs == 0 || info.State.LastTime.Before(since) {
		return nil
	}
	consumer, err := b.read(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since,
	})
	if err != nil {
		return err
	}
	if first := consumer.CachedInfo(); first != nil && first.NumPending == 0 { // the last groups were removed
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if msg.Subject() != skippedSubject {
			if err := visit(meta.Sequence.Stream, meta.Timestamp, msg.Data()); err != nil {
				return err
			}
		}
		if meta.Sequence.Stream >= info.State.LastSeq || meta.NumPending == 0 { // the last groups may have been removed
			return nil
		}
	}
}

// TrimEvents removes groups that are both matched and older than a time.
func (b *Bus) TrimEvents(ctx context.Context, before time.Time) error {
	info, err := b.infoOf(ctx, b.events)
	if err != nil || info.State.Msgs == 0 || !info.State.FirstTime.Before(before) {
		return err
	}
	floor := info.State.LastSeq + 1
	for _, lane := range fanfare.Lanes {
		consumer, err := b.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		state := consumer.CachedInfo()
		if state.NumPending > 0 || state.NumAckPending > 0 {
			floor = min(floor, state.AckFloor.Stream+1)
		}
	}
	first, err := b.firstSince(ctx, before, floor)
	if err != nil {
		return err
	}
	return b.events.Purge(ctx, jetstream.WithPurgeSequence(first))
}

// firstSince returns the first sequence in [FirstSeq, floor) that was stored at or after a time,
// or floor. It uses a binary search, because the times in a stream ascend.
func (b *Bus) firstSince(ctx context.Context, since time.Time, floor uint64) (uint64, error) {
	info, err := b.infoOf(ctx, b.events)
	if err != nil {
		return 0, err
	}
	low, high := info.State.FirstSeq, floor
	for low < high {
		middle := low + (high-low)/2
		msg, err := b.events.GetMsg(ctx, middle)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, err
		}
		if err == nil && !msg.Time.Before(since) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// Backlog is the number of messages in each stream that are waiting or leased.
type Backlog struct {
	EventGroups uint64 // not yet matched and frozen
	Batches     uint64 // not yet done
}

// Waiting returns the channels that have batches on the bus.
func (b *Bus) Waiting(ctx context.Context) (map[uint16]bool, error) {
	info, err := b.batches.Info(ctx, jetstream.WithSubjectFilter(batchesPrefix+">"))
	if err != nil {
		return nil, err
	}
	waiting := map[uint16]bool{}
	for subject := range info.State.Subjects {
		number, _, _ := strings.Cut(strings.TrimPrefix(subject, batchesPrefix), ".")
		if channel, err := strconv.ParseUint(number, 10, 16); err == nil {
			waiting[uint16(channel)] = true
		}
	}
	return waiting, nil
}

// WaitingEventGroups counts the event groups of each lane that are not yet matched and frozen.
func (b *Bus) WaitingEventGroups(ctx context.Context) (byLane [len(fanfare.Lanes)]uint64, err error) {
	for _, lane := range fanfare.Lanes {
		consumer, err := b.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return byLane, err
		}
		info := consumer.CachedInfo()
		byLane[lane] = info.NumPending + uint64(max(info.NumAckPending, 0))
	}
	return byLane, nil
}

// Backlog counts the messages of both streams.
func (b *Bus) Backlog(ctx context.Context) (Backlog, error) {
	var backlog Backlog
	byLane, err := b.WaitingEventGroups(ctx)
	if err != nil {
		return backlog, err
	}
	for _, waiting := range byLane {
		backlog.EventGroups += waiting
	}
	info, err := b.infoOf(ctx, b.batches)
	if err != nil {
		return backlog, err
	}
	backlog.Batches = info.State.Msgs
	return backlog, nil
}
