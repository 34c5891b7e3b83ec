// Package bus provides the two durable streams of Fanfare on NATS JetStream: EVENTS
// between ingestion and matching, and the work queue BATCHES between planning and
// delivery. No other package uses NATS.
//
// State. By default the server runs inside this process, without a network
// port, with its files in the data directory; with a URL the same streams live
// on a cluster. The server of a Member runs inside this process, too, and is one of a cluster of
// such servers. An append returns only after the stream has stored the message; with durability
// fsync, the message is then synced.
//
// Failure. A message that a consumer received but did not finish is delivered again: after the
// lease if the consumer stopped responding, and immediately if it returned the message or if an
// embedded bus was restarted, because no other process can hold the message then. The
// same applies to EVENTS on a cluster if the caller guarantees that no other process matches
// events. Duplicates are therefore normal, and no guarantee of Fanfare depends on their absence.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare/internal/failpoint"
)

// MaxPayload is the largest size of a message in bytes: the default limit of a NATS
// server, less space for headers.
const MaxPayload = 1<<20 - 16<<10

// Options specify the location and the durability of the bus.
type Options struct {
	Dir      string        // directory of the embedded server's files; for a Member: of the earlier bus of this server, which a new cluster takes over
	URL      string        // of a cluster; empty for an embedded server
	Member   *Member       // the embedded server of a cluster; nil: an embedded server of its own, or the one at URL
	Sync     bool          // embedded: sync each append to the disk; otherwise SyncPoint does it from time to time
	Lease    time.Duration // how long a message stays with a consumer that does not respond; at least 1 s
	Replicas int           // of each stream on a cluster; 0: unchanged
	Matches  bool          // with a cluster: no other process matches events at this time
	Existing bool          // with a Member: the streams must exist, because the store has events
	LastSeq  uint64        // of EVENTS, as far as the store knows; 0: unknown
	FirstSeq uint64        // lowest sequence that a new EVENTS stream may use, above all that the store knows
	Logger   *slog.Logger

	// PowerLost is the result of PowerLost. The caller has recorded durably that the batches have to be created again.
	PowerLost bool
}

// Bus is an open bus.
type Bus struct {
	options  Options
	embedded *host // nil with an external cluster
	alone    bool  // this process is the only client of its embedded server
	conn     *nats.Conn
	js       jetstream.JetStream
	events   jetstream.Stream
	batches  jetstream.Stream
	metadata map[string]string // of a new stream EVENTS

	eventNames, batchNames *blockNames
	syncPoints             *syncPoints

	mu     sync.Mutex
	leases map[*Lease]struct{}
	queues map[string]*Queue

	background context.Context // until Close
	stop       context.CancelFunc
	stopped    sync.WaitGroup
	once       sync.Once
}

// Open starts or connects the bus and creates missing streams.
func Open(ctx context.Context, options Options) (*Bus, error) {
	if options.Lease < time.Second {
		return nil, fmt.Errorf("bus: the lease must be at least 1s, not %v", options.Lease)
	}
	b := &Bus{options: options, leases: map[*Lease]struct{}{}, queues: map[string]*Queue{}}
	b.background, b.stop = context.WithCancel(context.Background())
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.stopped.Go(func() { b.keepLeases(b.background) })
	if b.alone {
		b.stopped.Go(func() { b.embedded.revive(b.background) })
	}
	return b, nil
}

func (b *Bus) open(ctx context.Context) error {
	if err := b.connect(); err != nil {
		return err
	}
	if b.options.Member != nil {
		return b.openMember(ctx)
	}
	if err := b.whileElecting(ctx, replyWait, b.makeStreams); err != nil {
		return err
	}
	b.eventNames, b.batchNames = b.namesOf(eventsStream), b.namesOf(batchesStream)
	if err := b.syncTree(); err != nil {
		return err
	}
	return b.openSyncPoints(ctx)
}

// connect starts or connects the bus.
func (b *Bus) connect() (err error) {
	options := []jetstream.JetStreamOpt{jetstream.WithPublishAsyncMaxPending(1024)}
	switch {
	case b.options.Member != nil:
		b.embedded = b.options.Member.host
		b.conn, err = b.embedded.connect(nats.UserInfo(memberUser, b.options.Member.password))
	case b.options.URL == "":
		if b.embedded, err = startAlone(b.options.Dir, b.options.Sync && !failpoint.Fault("bus-without-sync"), b.options.Logger); err != nil {
			return err
		}
		b.alone = true
		b.conn, err = b.embedded.connect()
	default:
		b.conn, err = nats.Connect(b.options.URL, nats.Name("fanfare"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(false),
			nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings))
	}
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	if !b.alone { // the reply of a server that fails is lost
		options = append(options, jetstream.WithPublishAsyncTimeout(replyWait))
	}
	b.js, err = jetstream.New(b.conn, options...)
	return err
}

// Close ends the consumers and, unless it belongs to a Member, the embedded server. Messages that were received but
// not finished are delivered again after the next start.
func (b *Bus) Close() (err error) {
	b.once.Do(func() {
		b.mu.Lock()
		b.stop() // no queue can be opened after this
		b.mu.Unlock()
		b.stopped.Wait()
		if b.conn != nil {
			b.conn.Close()
		}
		if b.alone {
			b.embedded.stop()
			err = b.syncPoints.end()
		}
	})
	return err
}

// Connected reports whether appends and leases can succeed now.
func (b *Bus) Connected() bool { return b.conn.IsConnected() }
