package bus

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// An order keeps the messages of a queue in the order of their stream when a connection to NATS is lost. NATS delivers the
// messages that were on their way again only after their lease, but later messages at once. The queue therefore creates its
// consumer again from the first message that is not done, and its order drops the messages that this process has had: they
// are held or done. Messages that were returned (Later) may come after the next ones.
type order struct {
	mu       sync.Mutex
	next     uint64              // consumer sequence of the next delivery
	last     uint64              // greatest stream sequence that was delivered
	held     map[uint64]*Lease   // by stream sequence
	returned map[uint64]struct{} // stream sequences
}

// errGap is the error if messages were lost between NATS and this process.
var errGap = errors.New("messages were lost on the way from the bus; they are requested again")

// had says whether this process has had a message.
type had int

const (
	hadNot had = iota
	hadHeld
	hadDone
)

func newOrder(c jetstream.Consumer) *order {
	o := &order{held: map[uint64]*Lease{}, returned: map[uint64]struct{}{}}
	o.follow(c)
	return o
}

// follow continues with a consumer whose information was just read.
func (o *order) follow(c jetstream.Consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = c.CachedInfo().Delivered.Consumer + 1
}

// take takes a delivery with a consumer sequence. A lease that is held continues under the new delivery.
func (o *order) take(l *Lease, sequence uint64) (had, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sequence != o.next {
		return hadNot, errGap
	}
	o.next++
	if known := o.held[l.Seq]; known != nil {
		known.reply.Store(l.reply.Load())
		known.until.Store(l.until.Load())
		return hadHeld, nil
	}
	if _, again := o.returned[l.Seq]; !again && l.Seq <= o.last {
		return hadDone, nil
	}
	delete(o.returned, l.Seq)
	o.held[l.Seq] = l
	o.last = max(o.last, l.Seq)
	return hadNot, nil
}

// finish ends a lease, whose message is done or returned.
func (o *order) finish(l *Lease, returned bool) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held[l.Seq] != l {
		return
	}
	delete(o.held, l.Seq)
	if returned {
		o.returned[l.Seq] = struct{}{}
	}
}

// floor returns the sequence up to which all messages are done, or 0 if none was delivered. It forgets everything if the
// stream, whose last sequence is given, was replaced by a new one.
func (o *order) floor(streamLast uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if streamLast < o.last {
		clear(o.held)
		clear(o.returned)
		o.last = 0
	}
	floor := o.last
	for seq := range o.held {
		floor = min(floor, seq-1)
	}
	for seq := range o.returned {
		floor = min(floor, seq-1)
	}
	return floor
}

// remake creates the consumer of a queue again. If the queue has an order, the consumer starts with the first message that is
// not done.
func (q *Queue) remake(ctx context.Context, stream jetstream.Stream, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if q.order == nil {
		return q.bus.consumer(ctx, stream, config)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	var made jetstream.Consumer
	if floor := q.order.floor(info.State.LastSeq); floor == 0 {
		made, err = q.bus.consumer(ctx, stream, config)
	} else {
		if err := stream.DeleteConsumer(ctx, config.Durable); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil, err
		}
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, floor+1
		made, err = stream.CreateConsumer(ctx, config)
	}
	if err == nil {
		q.order.follow(made)
	}
	return made, err
}
