package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

// A server that is alone becomes the first node of a cluster: the first Bus of a Member copies the streams in the folder of the earlier
// embedded bus to the cluster. EVENTS keeps its sequence numbers, which are part of the ids of events, and the consumers keep their floors.
//
// The metadata of EVENTS records the state of the copy, so that each step can be repeated after a kill, and no other node uses the
// streams before the copy is complete:
//
//	create EVENTS with copying=ID -> copy -> set copied=ID -> rename the folder
const (
	metaCopying = "fanfare-copying"
	metaCopied  = "fanfare-copied"
	// copiedHeader has the earlier sequence number of a copied message.
	copiedHeader = "Fanfare-Copied"
	// copyAhead is the number of messages in flight.
	copyAhead = 128
)

// An oldBus is the folder of an embedded bus that was alone.
type oldBus struct {
	host    *host
	conn    *nats.Conn
	id      string // of the folder
	events  jetstream.Stream
	batches jetstream.Stream // nil: the folder has no such stream
	state   jetstream.StreamState
	gaps    []uint64 // sequences in EVENTS whose messages were deleted
}

// openOld opens the folder; nil if it does not exist or has no streams.
func (b *Bus) openOld(ctx context.Context) (o *oldBus, err error) {
	if _, err := os.Lstat(b.options.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	o = &oldBus{}
	defer func() {
		if err != nil {
			o.close()
			o = nil
		}
	}()
	if o.host, err = startAlone(b.options.Dir, b.options.Sync, b.options.Logger); err != nil {
		return o, err
	}
	if o.conn, err = o.host.connect(); err != nil {
		return o, err
	}
	js, err := jetstream.New(o.conn)
	if err != nil {
		return o, err
	}
	if o.events, err = js.Stream(ctx, eventsStream); errors.Is(err, jetstream.ErrStreamNotFound) {
		return o, nil
	} else if err != nil {
		return o, err
	}
	if o.batches, err = js.Stream(ctx, batchesStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return o, err
	}
	info, err := o.events.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return o, err
	}
	o.state, o.gaps = info.State, info.State.Deleted
	o.id = fmt.Sprintf("%s %s", b.options.Member.options.Name, info.Created.UTC().Format(time.RFC3339Nano))
	return o, nil
}

func (o *oldBus) close() {
	if o == nil {
		return
	}
	if o.conn != nil {
		o.conn.Close()
	}
	if o.host != nil {
		o.host.stop()
	}
}

// unfinished counts the groups that are not known to be matched, and the batches.
func (o *oldBus) unfinished(ctx context.Context) (groups, batches uint64, err error) {
	for _, lane := range fanfare.Lanes {
		consumer, err := o.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			info, err := o.events.Info(ctx, jetstream.WithSubjectFilter(eventsSubject(lane)))
			if err != nil {
				return 0, 0, err
			}
			groups += info.State.Subjects[eventsSubject(lane)]
		case err != nil:
			return 0, 0, err
		default:
			info := consumer.CachedInfo()
			groups += info.NumPending + uint64(max(info.NumAckPending, 0))
		}
	}
	if o.batches != nil {
		batches = o.batches.CachedInfo().State.Msgs
	}
	return groups, batches, nil
}

// openMember opens the streams of a cluster of embedded servers. It creates them if they do not exist, and copies those of the
// earlier bus of this server.
func (b *Bus) openMember(ctx context.Context) error {
	old, err := b.openOld(ctx)
	if err != nil {
		return fmt.Errorf("open the earlier bus in %s: %w", b.options.Dir, err)
	}
	defer func() { old.close() }()
	events, err := b.find(ctx)
	if err != nil {
		return err
	}
	var copying, copied string
	if events != nil {
		copying, copied = events.Config.Metadata[metaCopying], events.Config.Metadata[metaCopied]
	}
	has := old != nil && old.events != nil
	switch {
	case events == nil && has, copying != "" && has && copying == old.id:
		if err := b.copyOld(ctx, old); err != nil {
			return fmt.Errorf("copy the earlier bus to the other nodes: %w", err)
		}
	case copying != "":
		node, _, _ := strings.Cut(copying, " ")
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the bus of " + node + " has not been copied to the embedded NATS servers yet", Hint: "start " + node + " with its data directory: it continues the copy when it leads"}
	case events == nil && b.options.Existing:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the database contains events, but the embedded NATS servers have no streams",
			Hint: "if this cluster was a single server, start the node that has its data directory; if the streams are lost, create an empty file bus.lost in the data directory of this node: open broadcasts then continue, and events that were not matched are lost"}
	default:
		if err := old.refuse(ctx, b.options.Dir, copied); err != nil {
			return err
		}
	}
	if err := b.whileElecting(ctx, replyWait, b.makeStreams); err != nil || old == nil {
		return err
	}
	old.close()
	old = nil
	to := b.options.Dir + ".moved-" + time.Now().UTC().Format("20060102T150405Z")
	b.options.Logger.Info("the earlier bus is no longer used", "folder", to)
	return durablefile.Rename(b.options.Dir, to)
}

// refuse returns an error if the folder has unfinished work and is not the one that the cluster has copied.
func (o *oldBus) refuse(ctx context.Context, dir, copied string) error {
	if o == nil || o.events == nil || o.id == copied {
		return nil
	}
	groups, batches, err := o.unfinished(ctx)
	if err == nil && groups+batches > 0 {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the folder %s of an earlier server contains unfinished work (event groups: %d, batches: %d), but the cluster already has a bus", dir, groups, batches),
			Hint: "start the earlier server without node and cluster_routes, and let it finish its work; or, to discard that work, move the folder away"}
	}
	return err
}

// CheckFolder refuses the folder of an earlier bus of this server if it has unfinished work, and the cluster already has another bus.
// Without a quorum within patience, it refuses nothing: Open checks the same.
func (m *Member) CheckFolder(ctx context.Context, dir string, patience time.Duration) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || m.Await(ctx, patience) != nil {
		return nil
	}
	b := &Bus{options: Options{Dir: dir, Member: m, Sync: m.options.Sync, Logger: m.options.Logger}}
	if err := b.connect(); err != nil {
		return err
	}
	defer b.conn.Close()
	events, err := b.find(ctx)
	if err != nil || events == nil || events.Config.Metadata[metaCopying] != "" {
		return err
	}
	old, err := b.openOld(ctx)
	if err != nil {
		return err
	}
	defer old.close()
	return old.refuse(ctx, dir, events.Config.Metadata[metaCopied])
}

// refuseAlone refuses the folder of a member if it has streams but no state of a cluster. It is that of an embedded bus that was alone:
// NATS would delete its streams.
func refuseAlone(dir string) error {
	streams, err := filepath.Glob(filepath.Join(dir, server.JetStreamStoreDir, "*", "streams", "*"))
	if err != nil || len(streams) == 0 {
		return err
	}
	_, err = os.Lstat(filepath.Join(dir, server.JetStreamStoreDir, server.DEFAULT_SYSTEM_ACCOUNT, "_js_", "_meta_"))
	if errors.Is(err, fs.ErrNotExist) {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the folder " + dir + " is the bus of a single server, not of a node of a cluster",
			Hint: "move it back to the folder `bus` in the data directory of that server, then start that server as a node: it will copy its bus to the cluster"}
	}
	return err
}

// find returns the state of the stream EVENTS of the cluster; nil if it does not exist.
func (b *Bus) find(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = b.whileElecting(ctx, replyWait, func(ctx context.Context) error {
		info = nil
		stream, err := b.js.Stream(ctx, eventsStream)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil
		case err == nil:
			info = stream.CachedInfo()
		}
		return err
	})
	return info, err
}

// copyOld copies the streams, or continues to.
func (b *Bus) copyOld(ctx context.Context, old *oldBus) error {
	groups, batches, err := old.unfinished(ctx)
	if err != nil {
		return err
	}
	b.options.Logger.Info("copying the earlier bus to the embedded NATS servers of the cluster", "from", b.options.Dir, "messages", old.state.Msgs, "unmatched_groups", groups, "batches", batches)
	b.options.FirstSeq, b.metadata = old.state.FirstSeq, map[string]string{metaCopying: old.id}
	if err := b.whileElecting(ctx, replyWait, b.makeStreams); err != nil {
		return err
	}
	if err := b.copyEvents(ctx, old); err != nil {
		return err
	}
	if old.batches != nil {
		if err := b.copyBatches(ctx, old); err != nil {
			return err
		}
	}
	return b.whileElecting(ctx, replyWait, func(ctx context.Context) error {
		config := b.events.CachedInfo().Config
		config.Metadata = map[string]string{metaCopied: old.id}
		_, err := b.js.UpdateStream(ctx, config)
		return err
	})
}

// copyEvents copies EVENTS from the last copied message on, and the floors of its consumers. Deleted messages leave a gap: an
// empty message takes their sequence, and is deleted in the end.
func (b *Bus) copyEvents(ctx context.Context, old *oldBus) error {
	next := func(ctx context.Context, last uint64) (*nats.Msg, uint64, error) {
		seq := last + 1
		if seq > old.state.LastSeq {
			return nil, 0, nil
		}
		if _, deleted := slices.BinarySearch(old.gaps, seq); deleted {
			return &nats.Msg{Subject: rewrittenSubject}, seq, nil
		}
		msg, err := old.events.GetMsg(ctx, seq)
		if err != nil {
			return nil, 0, err
		}
		return &nats.Msg{Subject: msg.Subject, Header: portable(msg.Header), Data: msg.Data}, seq, nil
	}
	from := func(_ context.Context, info *jetstream.StreamInfo) (uint64, error) {
		return max(info.State.LastSeq, old.state.FirstSeq-1), nil
	}
	if err := b.copyMessages(ctx, b.events, from, next); err != nil {
		return err
	}
	for _, seq := range old.gaps {
		if err := b.whileElecting(ctx, replyWait, func(ctx context.Context) error {
			_, err := b.events.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil // an earlier attempt has deleted it
			}
			if err != nil {
				return err
			}
			return b.events.DeleteMsg(ctx, seq)
		}); err != nil {
			return err
		}
	}
	for _, lane := range fanfare.Lanes {
		consumer, err := old.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		config := b.consumerConfig(eventsSubject(lane))
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, max(consumer.CachedInfo().AckFloor.Stream+1, old.state.FirstSeq)
		if err := b.whileElecting(ctx, replyWait, func(ctx context.Context) error {
			_, err := b.events.CreateOrUpdateConsumer(ctx, config)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// copyBatches copies BATCHES. The last copied message has its earlier sequence in a header.
func (b *Bus) copyBatches(ctx context.Context, old *oldBus) error {
	next := func(ctx context.Context, last uint64) (*nats.Msg, uint64, error) {
		msg, err := old.batches.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(batchesPrefix+">")) // the next one
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		header := portable(msg.Header)
		header.Set(copiedHeader, fmt.Sprint(msg.Sequence))
		return &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}, msg.Sequence, nil
	}
	from := func(ctx context.Context, info *jetstream.StreamInfo) (seq uint64, err error) {
		if info.State.Msgs == 0 {
			return 0, nil
		}
		msg, err := b.batches.GetMsg(ctx, info.State.LastSeq)
		if err == nil {
			_, err = fmt.Sscan(msg.Header.Get(copiedHeader), &seq)
		}
		return seq, err
	}
	return b.copyMessages(ctx, b.batches, from, next)
}

// portable returns the headers of a message without those of NATS, which were instructions to the earlier stream.
func portable(h nats.Header) nats.Header {
	kept := nats.Header{}
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-") {
			kept[name] = values
		}
	}
	return kept
}

// copyMessages appends messages to a stream until next has no more, in order and each once: a message is refused unless its
// predecessor is the last one of the stream. from returns, from the state of the stream, the earlier sequence of the last message in it.
func (b *Bus) copyMessages(ctx context.Context, to jetstream.Stream, from func(context.Context, *jetstream.StreamInfo) (uint64, error), next func(ctx context.Context, last uint64) (*nats.Msg, uint64, error)) error {
	for deadline := time.Now().Add(electionPatience); ; {
		info, err := b.infoOf(ctx, to)
		if err != nil {
			return err
		}
		last, err := from(ctx, info)
		if err == nil {
			var progress bool
			if progress, err = b.copyFrom(ctx, info.State.LastSeq, last, next); err == nil {
				return nil
			}
			if progress {
				deadline = time.Now().Add(electionPatience)
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(electionPoll):
		case <-ctx.Done():
			return err
		}
	}
}

// copyFrom copies the messages after the earlier sequence last, of which the first becomes the one after seq. It reports whether it copied any.
func (b *Bus) copyFrom(ctx context.Context, seq, last uint64, next func(ctx context.Context, last uint64) (*nats.Msg, uint64, error)) (progress bool, err error) {
	ahead := make(chan jetstream.PubAckFuture, copyAhead)
	await := func() error {
		err := published(ctx, <-ahead)
		progress = progress || err == nil
		return err
	}
	for {
		msg, earlier, err := next(ctx, last)
		if err != nil {
			return progress, err
		}
		if msg == nil {
			break
		}
		if len(ahead) == cap(ahead) {
			if err := await(); err != nil {
				return progress, err
			}
		}
		future, err := b.js.PublishMsgAsync(msg, jetstream.WithExpectLastSequence(seq), jetstream.WithStallWait(stallWait))
		if err != nil {
			return progress, err
		}
		ahead <- future
		seq, last = seq+1, earlier
	}
	for range len(ahead) {
		if err := await(); err != nil {
			return progress, err
		}
	}
	return progress, nil
}
