package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// Queue delivers the messages of one subject, each to one holder at a time. It fetches a few in
// advance, which it leases and renews too, because the server counts a lease from the moment it
// sends the message.
type Queue struct {
	bus   *Bus
	ready chan *Lease   // closed when the bus closes
	taken chan struct{} // has a token if a message was taken from ready since the last token
	order *order        // nil if messages may overtake each other after a lost connection
}

// MaxHeld limits the unfinished messages of one queue; the server holds back the rest. A lease
// needs a few hundred bytes and is renewed six times within its length.
const MaxHeld = 32_768

// Events returns the queue of event groups of a lane.
func (b *Bus) Events(ctx context.Context, lane fanfare.Lane) (*Queue, error) {
	return b.queue(ctx, b.events, eventsSubject(lane), 64)
}

// Batches returns the queue of batches of a channel and lane.
func (b *Bus) Batches(ctx context.Context, channel uint16, lane fanfare.Lane) (*Queue, error) {
	return b.queue(ctx, b.batches, batchesSubject(channel, lane), 64)
}

func consumerName(subject string) string { return strings.ReplaceAll(subject, ".", "-") }

func (b *Bus) queue(ctx context.Context, stream jetstream.Stream, subject string, ahead int) (*Queue, error) {
	name := consumerName(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	if q, ok := b.queues[name]; ok {
		return q, nil
	}
	if b.background.Err() != nil {
		return nil, ErrClosed
	}
	config := b.consumerConfig(subject)
	var consumer jetstream.Consumer
	err := b.whileElecting(ctx, replyWait, func(ctx context.Context) (err error) {
		consumer, err = b.consumer(ctx, stream, config)
		return err
	})
	if err == nil {
		err = b.syncTree()
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	q := &Queue{bus: b, ready: make(chan *Lease, ahead), taken: make(chan struct{}, 1)}
	if !b.alone && b.options.Matches && stream == b.events {
		q.order = newOrder(consumer)
	}
	b.stopped.Go(func() {
		q.run(b.background, consumer, func(ctx context.Context) (jetstream.Consumer, error) { return q.remake(ctx, stream, config) })
	})
	b.queues[name] = q
	return q, nil
}

// consumerConfig returns the configuration of the consumer of a subject.
func (b *Bus) consumerConfig(subject string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: consumerName(subject), FilterSubject: subject,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.options.Lease,
		MaxDeliver: -1, MaxAckPending: MaxHeld,
	}
}

// consumer creates a durable consumer if it is missing. On an embedded bus outside a cluster, this
// process is the only client, so leases of an earlier run are void: it creates the consumer again from its floor,
// and unfinished messages are delivered at once instead of after the lease. With the option Matches,
// the same applies to EVENTS on a cluster. It also creates the consumer of batches again if the stream has a batch that the
// consumer takes for done: a loss of power undid the removal. The batch is then delivered once more, and removed.
func (b *Bus) consumer(ctx context.Context, stream jetstream.Stream, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if !b.alone && (!b.options.Matches || stream != b.events) {
		return stream.CreateOrUpdateConsumer(ctx, config)
	}
	stored, err := b.storedBatches(ctx, stream, config.FilterSubject)
	if err != nil {
		return nil, err
	}
	old, err := stream.Consumer(ctx, config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		// A consumer that a kill left incomplete is not found, but its leases are active.
		old, err = stream.CreateConsumer(ctx, config)
	}
	if err != nil {
		return nil, err
	}
	info := old.CachedInfo()
	if info.NumAckPending == 0 && stored <= info.NumPending {
		config.DeliverPolicy, config.OptStartSeq = info.Config.DeliverPolicy, info.Config.OptStartSeq // the start position cannot be changed
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

// storedBatches counts the batches with a subject; it returns 0 for a stream of events, which keeps what is done.
func (b *Bus) storedBatches(ctx context.Context, stream jetstream.Stream, subject string) (uint64, error) {
	if stream != b.batches {
		return 0, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	return info.State.Subjects[subject], nil
}

// ErrClosed is returned by a queue whose bus was closed.
var ErrClosed = errors.New("the bus is closed")

// fetchPause is the pause of a queue after an error of the bus.
const fetchPause = 100 * time.Millisecond

// run fetches messages until ctx ends, and then returns the messages that were not consumed. It requests
// no more than it can lease at once, because messages in a buffer of the client are not renewed.
// It creates the consumer again if it was deleted, or if messages can have been lost on the way and must not be overtaken.
func (q *Queue) run(ctx context.Context, consumer jetstream.Consumer, again func(context.Context) (jetstream.Consumer, error)) {
	var p *pull
	defer func() {
		close(q.ready)
		for l := range q.ready {
			_ = l.Later(0) // otherwise it is delivered again after its lease
		}
		p.end()
	}()
	logged := ""
	for ctx.Err() == nil {
		var err error
		if p == nil {
			p, err = newPull(q.bus.conn, consumer)
		}
		if err == nil {
			err = q.fetch(ctx, p)
		}
		if err == nil {
			logged = ""
			continue
		}
		if text := err.Error(); text != logged {
			q.bus.options.Logger.Warn("cannot fetch messages from the bus; retrying", "error", err)
			logged = text
		}
		select {
		case <-time.After(fetchPause):
		case <-ctx.Done():
		}
		if q.order != nil || errors.Is(err, jetstream.ErrConsumerDeleted) {
			if made, err := again(ctx); err == nil {
				p.drop() // the new consumer delivers everything that is not done
				consumer, p = made, nil
			}
		}
	}
}

// fetch makes one request for as many messages as the queue has capacity for, and receives what it brings.
func (q *Queue) fetch(ctx context.Context, p *pull) error {
	for len(q.ready) == cap(q.ready) {
		select {
		case <-q.taken:
		case <-ctx.Done():
			return nil
		}
	}
	if err := p.request(cap(q.ready) - len(q.ready)); err != nil {
		return err
	}
	beat := time.NewTimer(fetchBeat)
	defer beat.Stop()
	for missed := 0; p.expected > 0; beat.Reset(fetchBeat) {
		select {
		case msg := <-p.messages:
			missed = 0
			isMessage, err := p.take(msg)
			if isMessage {
				err = q.receive(ctx, msg)
			}
			if err != nil {
				return err
			}
		case <-beat.C: // once after a pause of this process
			if missed++; missed == maxMissed {
				return errSilent
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// receive leases a message and makes it ready. It waits while the queue is full, because the bus has answered a request that was given up.
func (q *Queue) receive(ctx context.Context, msg *nats.Msg) error {
	l, err := q.lease(msg)
	if l == nil || err != nil {
		return err
	}
	select {
	case q.ready <- l:
		return nil
	case <-ctx.Done():
		return l.Later(0)
	}
}

// Next waits until there is a message, ctx ends or the bus closes.
func (q *Queue) Next(ctx context.Context) (*Lease, error) { return q.NextOr(ctx, nil) }

// NextOr is Next, but returns nil when another channel is closed.
func (q *Queue) NextOr(ctx context.Context, other <-chan struct{}) (*Lease, error) {
	select {
	case l, ok := <-q.ready:
		return q.hand(l, ok)
	case <-other:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Poll returns a message that has arrived, or nil.
func (q *Queue) Poll() (*Lease, error) {
	select {
	case l, ok := <-q.ready:
		return q.hand(l, ok)
	default:
		return nil, nil
	}
}

func (q *Queue) hand(l *Lease, ok bool) (*Lease, error) {
	if !ok {
		return nil, ErrClosed
	}
	select {
	case q.taken <- struct{}{}:
	default:
	}
	return l, nil
}

// lease returns the lease of a message, or nil if this process has had the message.
func (q *Queue) lease(msg *nats.Msg) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	l := &Lease{
		bus: q.bus, order: q.order,
		Data: msg.Data, Seq: meta.Sequence.Stream, Kept: meta.Timestamp.UTC(), Deliveries: int(meta.NumDelivered),
	}
	reply := msg.Reply // a lease may be held for longer than its data
	l.reply.Store(&reply)
	l.until.Store(time.Now().Add(q.bus.options.Lease).UnixNano())
	if q.order != nil {
		had, err := q.order.take(l, meta.Sequence.Consumer)
		switch {
		case err != nil:
			return nil, err
		case had == hadDone:
			return nil, l.say("+ACK")
		case had == hadHeld:
			return nil, nil
		}
	}
	q.bus.mu.Lock()
	q.bus.leases[l] = struct{}{}
	q.bus.mu.Unlock()
	return l, nil
}
