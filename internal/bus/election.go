package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// electionPatience is how long an operation waits until the servers of a cluster have elected the leader of a stream or a
	// consumer. After the failure of a server, this takes 4 to 9 s.
	electionPatience = 20 * time.Second
	// electionPoll is the pause between two attempts, and replyWait the time limit of one.
	electionPoll = 250 * time.Millisecond
	replyWait    = 5 * time.Second
	// A connection to an external server without a reply to maxPings pings is lost: the client connects to another server. By default,
	// it would notice after four minutes that the machine of its server has failed.
	pingEvery = 2 * time.Second
	maxPings  = 2
)

// Codes of the API of JetStream.
const (
	unavailable                     = 503   // a server has no leader, or does not have all of its data yet
	noPeers     jetstream.ErrorCode = 10005 // too few servers respond for a new stream
)

// electing reports whether an operation failed because servers of a cluster are electing a leader, or because a server failed
// before it answered: the operation may have been carried out.
func electing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == unavailable || api.ErrorCode == noPeers
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrAsyncPublishTimeout)
}

// whileElecting repeats an operation, which can be repeated, while the servers of a cluster elect a leader. A limit other than
// 0 is the time limit of one attempt.
func (b *Bus) whileElecting(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if b.alone {
		return do(ctx)
	}
	deadline := time.Now().Add(electionPatience)
	for {
		err := once(ctx, limit, do)
		if err == nil || ctx.Err() != nil || !electing(err) || !b.conn.IsConnected() || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(electionPoll):
		case <-ctx.Done():
			return err
		}
	}
}

// once calls do with a time limit.
func once(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return do(ctx)
}

// publish stores a message. In a cluster, it repeats the message with the same id until it is stored, because a reply is lost
// if a server fails: a stream stores an id once.
func (b *Bus) publish(ctx context.Context, subject string, data []byte) (ack *jetstream.PubAck, err error) {
	if b.alone {
		return b.js.Publish(ctx, subject, data)
	}
	id := rand.Text()
	err = b.whileElecting(ctx, replyWait, func(ctx context.Context) (err error) {
		ack, err = b.js.Publish(ctx, subject, data, jetstream.WithMsgID(id))
		return err
	})
	return ack, err
}

// messageIDs returns the option that makes a repeated message harmless; none for a server that is alone.
func (b *Bus) messageIDs() func(i int) []jetstream.PublishOpt {
	if b.alone {
		return func(int) []jetstream.PublishOpt { return nil }
	}
	id := rand.Text()
	return func(i int) []jetstream.PublishOpt {
		return []jetstream.PublishOpt{jetstream.WithMsgID(id + "-" + strconv.Itoa(i))}
	}
}

// infoOf returns the state of a stream.
func (b *Bus) infoOf(ctx context.Context, stream jetstream.Stream) (info *jetstream.StreamInfo, err error) {
	err = b.whileElecting(ctx, replyWait, func(ctx context.Context) (err error) {
		info, err = stream.Info(ctx)
		return err
	})
	return info, err
}

// resetAttempts bounds how often a consumer that reads EVENTS is created again after its connection broke. Without a bound, nats.go
// goes on for ever after the connection is closed, and does not look at the context of Next.
const resetAttempts = 3

// read creates a consumer that reads EVENTS in order.
func (b *Bus) read(ctx context.Context, config jetstream.OrderedConsumerConfig) (consumer jetstream.Consumer, err error) {
	config.MaxResetAttempts = resetAttempts
	err = b.whileElecting(ctx, 0, func(ctx context.Context) (err error) { // the context is used for as long as the consumer
		consumer, err = b.js.OrderedConsumer(ctx, eventsStream, config)
		return err
	})
	return consumer, err
}
