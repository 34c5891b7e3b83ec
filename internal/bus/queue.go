package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// Queue hands out the messages of one subject, each to one holder at a time.
type Queue struct {
	bus      *Bus
	messages jetstream.MessagesContext
}

// maxHeld is how many messages of one queue may be taken and unfinished; the
// server holds back the rest.
const maxHeld = 256

// Events returns the queue of event groups of a lane.
func (b *Bus) Events(ctx context.Context, lane fanfare.Lane) (*Queue, error) {
	return b.queue(ctx, b.events, eventsSubject(lane), 64)
}

// Batches returns the queue of batches of a channel and lane. Few are fetched
// ahead, so that batches spread over the nodes.
func (b *Bus) Batches(ctx context.Context, channel uint16, lane fanfare.Lane) (*Queue, error) {
	return b.queue(ctx, b.batches, batchesSubject(channel, lane), 4)
}

func consumerName(subject string) string { return strings.ReplaceAll(subject, ".", "-") }

func (b *Bus) queue(ctx context.Context, stream jetstream.Stream, subject string, ahead int) (*Queue, error) {
	name := consumerName(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	if q, ok := b.queues[name]; ok {
		return q, nil
	}
	config := jetstream.ConsumerConfig{
		Durable: name, FilterSubject: subject,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.options.Lease,
		MaxDeliver: -1, MaxAckPending: maxHeld,
	}
	consumer, err := b.consumer(ctx, stream, config)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(ahead),
		jetstream.WithMessagesErrOnMissingHeartbeat(false)) // a stall is no end: it pulls again by itself
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	q := &Queue{bus: b, messages: messages}
	b.queues[name] = q
	return q, nil
}

// consumer makes sure of a durable consumer. On the embedded bus this process
// is the only client, so leases of an earlier run hold nothing: the consumer is
// made anew from its floor, and what was under way comes at once instead of
// after the lease.
func (b *Bus) consumer(ctx context.Context, stream jetstream.Stream, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if b.embedded == nil {
		return stream.CreateOrUpdateConsumer(ctx, config)
	}
	old, err := stream.Consumer(ctx, config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		// One that a kill left half made is not found, and yet its leases hold.
		old, err = stream.CreateConsumer(ctx, config)
	}
	if err != nil {
		return nil, err
	}
	info := old.CachedInfo()
	if info.NumAckPending == 0 {
		config.DeliverPolicy, config.OptStartSeq = info.Config.DeliverPolicy, info.Config.OptStartSeq // where it began is not ours to change
		return stream.CreateOrUpdateConsumer(ctx, config)
	}
	if err := stream.DeleteConsumer(ctx, config.Durable); err != nil {
		return nil, err
	}
	if stream == b.events {
		config.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
		config.OptStartSeq = info.AckFloor.Stream + 1
	}
	return stream.CreateConsumer(ctx, config)
}

// ErrClosed is returned by a queue whose bus was closed.
var ErrClosed = errors.New("bus is closed")

// Next blocks until there is a message, ctx ends or the bus closes.
func (q *Queue) Next(ctx context.Context) (*Lease, error) {
	msg, err := q.messages.Next(jetstream.NextContext(ctx))
	if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return q.lease(msg)
}

// Poll returns a message that is already here, or nil.
func (q *Queue) Poll() (*Lease, error) {
	msg, err := q.messages.Next(jetstream.NextMaxWait(time.Nanosecond))
	if err != nil {
		return nil, nil //nolint:nilerr // no message within no time is not a failure; a real one shows in Next
	}
	return q.lease(msg)
}

func (q *Queue) lease(msg jetstream.Msg) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	l := &Lease{
		bus: q.bus, msg: msg,
		Data: msg.Data(), Seq: meta.Sequence.Stream, Kept: meta.Timestamp.UTC(), Deliveries: int(meta.NumDelivered),
	}
	l.until.Store(time.Now().Add(q.bus.options.Lease).UnixNano())
	q.bus.mu.Lock()
	q.bus.leases[l] = struct{}{}
	q.bus.mu.Unlock()
	return l, nil
}

func (q *Queue) close() { q.messages.Stop() }
