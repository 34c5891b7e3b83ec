// Package ingest accepts events: it validates them, rejects duplicates, and appends the others to
// the stream EVENTS before it answers. The API, the notifier and direct messages call it.
//
// State. The ids of at least the last hour, or of the last ten million events, are in memory. A
// start reads them from EVENTS. Requests that arrive together share one append, and therefore one
// sync of the disk: while one group is being appended, the next group is collected.
//
// Failure. An error means that the event was not appended or, if the append itself failed, may have
// been. Sending it again with the same id is safe: after a failed append, the log is read back
// before the next append.
package ingest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

// MaxDataBytes is the maximum size of the data of an event.
const MaxDataBytes = 256 << 10

const (
	// maxGroupBytes is below the maximum message of the bus, by the size of one more event.
	maxGroupBytes = 600 << 10
	// maxWaiting and maxWaitingBytes bound the events that wait for an append. Beyond that,
	// Post returns Unavailable.
	maxWaiting      = 100_000
	maxWaitingBytes = 64 << 20
	// One in urgentReserve of them is reserved for urgent events.
	urgentReserve = 8
	// readBackTime bounds the reading of the log after a failed append, and clockSlack the
	// difference between the clocks of the log and of the server.
	readBackTime = 10 * time.Second
	clockSlack   = time.Minute
)

// Log is the durable stream of event groups.
type Log interface {
	AppendEvents(ctx context.Context, lane fanfare.Lane, group []byte) (seq uint64, err error)
	// ReplayEvents visits the groups that were appended since a time, oldest first.
	ReplayEvents(ctx context.Context, since time.Time, visit func(seq uint64, kept time.Time, group []byte) error) error
}

// Topics provides the configuration that ingestion needs.
type Topics interface {
	// Intake returns the lane of a topic and a check of its events' data.
	Intake(service, topic string) (lane fanfare.Lane, validate func(json.RawMessage) error, err error)
	// CheckAudience returns an error for an audience filter that does not compile.
	CheckAudience(service, filter string) error
	// ChangeSeq returns the number of the last change of a subscription.
	ChangeSeq() uint64
}

// Options are the parts that an Ingester works with.
type Options struct {
	Log    Log
	Topics Topics
	Clock  clock.Clock
	Floor  func() error // returns an error while the disk is too full
}

// Result is the result of one event.
type Result struct {
	Ref       fanfare.EventRef // the event, or the first one with its id
	Duplicate bool
	Err       error
}

// An Ingester accepts events. It is safe for concurrent use.
type Ingester struct {
	options Options
	known   *recentIDs

	mu      sync.Mutex
	waiting [len(fanfare.Lanes)][]*entry
	count   int // of waiting events
	bytes   int
	closed  bool
	wake    chan struct{}

	accepted [len(fanfare.Lanes)]atomic.Int64

	uncertainSince time.Time // when an append failed that was not read back yet; used by run

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// An entry is an event that waits for its append.
type entry struct {
	posted  *fanfare.AcceptedEvent
	encoded []byte
	id      identity
	result  *Result
	group   *sync.WaitGroup
}

// Start returns an Ingester that accepts events until Stop. Call LoadIDs before the first Post.
func Start(options Options) *Ingester {
	ctx, stop := context.WithCancel(context.Background())
	in := &Ingester{options: options, known: newRecentIDs(), wake: make(chan struct{}, 1), stop: stop}
	in.stopped.Go(func() { in.run(ctx) })
	return in
}

// Stop appends the waiting events and returns when all are done. Post fails from then on.
func (in *Ingester) Stop() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.stop()
	in.stopped.Wait()
}

// Accepted counts the events that were accepted since the start, by lane.
func (in *Ingester) Accepted() (byLane [len(fanfare.Lanes)]int64) {
	for lane := range byLane {
		byLane[lane] = in.accepted[lane].Load()
	}
	return byLane
}

// Post appends events and returns when they are durable. Each event has its own result, in order.
// The error means that the server accepts no events at all.
func (in *Ingester) Post(ctx context.Context, events []fanfare.AcceptedEvent) ([]Result, error) {
	if err := in.options.Floor(); err != nil {
		return nil, err
	}
	results := make([]Result, len(events))
	entries := make([]*entry, 0, len(events))
	var group sync.WaitGroup
	now := in.options.Clock.Now()
	change := in.options.Topics.ChangeSeq()
	for i := range events {
		e, err := in.validate(&events[i], now, change)
		if err != nil {
			results[i].Err = err
			continue
		}
		e.result, e.group = &results[i], &group
		entries = append(entries, e)
	}
	if err := in.enqueue(entries, &group); err != nil {
		return nil, err
	}
	group.Wait()
	return results, nil
}

// validate checks an event and fills in missing values.
func (in *Ingester) validate(p *fanfare.AcceptedEvent, now time.Time, change uint64) (*entry, error) {
	if len(p.Event.Data) > MaxDataBytes {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/data",
			Message: fmt.Sprintf("the data has %d bytes; at most %d are allowed", len(p.Event.Data), MaxDataBytes), Hint: "send a link instead of large data"}
	}
	if p.Direct == nil { // a direct send has no topic, and is checked by package messages
		if err := in.checkTopic(p); err != nil {
			return nil, err
		}
	}
	if p.Lane > fanfare.Bulk {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown lane %d", p.Lane), Hint: "use urgent, normal or bulk"}
	}
	if err := CheckTimes(p, now); err != nil {
		return nil, err
	}
	if p.Event.Time.IsZero() {
		p.Event.Time = now
	}
	p.ReceivedAt, p.ChangeSeq = now, change
	encoded, err := eventgroup.EncodeEvent(p)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "the data is not valid JSON"}
	}
	if len(encoded) > maxGroupBytes {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the event has %d bytes; at most %d are allowed", len(encoded), maxGroupBytes), Hint: "shorten id, source and subject"}
	}
	return &entry{posted: p, encoded: encoded, id: identify(p)}, nil
}

// checkTopic checks an event against its topic, and sets its lane.
func (in *Ingester) checkTopic(p *fanfare.AcceptedEvent) error {
	lane, validate, err := in.options.Topics.Intake(p.Service, p.Topic)
	if err != nil {
		return err
	}
	if validate != nil {
		if err := validate(p.Event.Data); err != nil {
			return err
		}
	}
	if p.Audience != nil {
		if err := in.options.Topics.CheckAudience(p.Service, p.Audience.Filter); err != nil {
			return err
		}
	}
	if p.Lane == fanfare.TopicLane {
		p.Lane = lane
	}
	return nil
}

func (in *Ingester) enqueue(entries []*entry, group *sync.WaitGroup) error {
	if len(entries) == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "send the event to another node, or retry in a moment"}
	}
	events, size := maxWaiting, maxWaitingBytes
	if !slices.ContainsFunc(entries, func(e *entry) bool { return e.posted.Lane == fanfare.Urgent }) {
		events, size = events-events/urgentReserve, size-size/urgentReserve
	}
	if in.count >= events || in.bytes >= size {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "too many events are waiting to be written to the disk", Hint: "retry in a moment"}
	}
	group.Add(len(entries))
	for _, e := range entries {
		in.waiting[e.posted.Lane] = append(in.waiting[e.posted.Lane], e)
		in.bytes += len(e.encoded)
	}
	in.count += len(entries)
	select {
	case in.wake <- struct{}{}:
	default:
	}
	return nil
}

func (in *Ingester) run(ctx context.Context) {
	for {
		select {
		case <-in.wake:
		case <-ctx.Done():
			in.drain(ctx)
			return
		}
		in.drain(ctx)
	}
}

// drain appends the waiting events, one group of each lane in turn. A new urgent event waits for at
// most one group of each other lane.
func (in *Ingester) drain(ctx context.Context) {
	for busy := true; busy; {
		busy = false
		for _, lane := range fanfare.Lanes {
			if group := in.take(lane); len(group) > 0 {
				in.appendGroup(ctx, lane, group)
				busy = true
			}
		}
	}
}

// take removes the next group of a lane: as many events as fit.
func (in *Ingester) take(lane fanfare.Lane) []*entry {
	in.mu.Lock()
	defer in.mu.Unlock()
	waiting := in.waiting[lane]
	n, size := 0, 0
	for n < min(len(waiting), fanfare.MaxGroup) && (n == 0 || size+len(waiting[n].encoded) <= maxGroupBytes) {
		size += len(waiting[n].encoded)
		n++
	}
	in.waiting[lane] = waiting[n:]
	if n == len(waiting) {
		in.waiting[lane] = nil
	}
	in.count -= n
	in.bytes -= size
	return waiting[:n]
}

// appendGroup drops duplicates, appends the other events as one message and sets all results.
func (in *Ingester) appendGroup(ctx context.Context, lane fanfare.Lane, group []*entry) {
	if err := in.readBack(ctx); err != nil {
		for _, e := range group {
			e.result.Err = appendError(err)
			e.group.Done()
		}
		return
	}
	var payload []byte
	fresh := make([]*entry, 0, len(group))
	firsts := make(map[identity]*entry, len(group))
	var duplicates []*entry
	for _, e := range group {
		if ref, ok := in.known.find(e.id); ok {
			*e.result = Result{Ref: ref, Duplicate: true}
			e.group.Done()
			continue
		}
		if firsts[e.id] != nil {
			duplicates = append(duplicates, e)
			continue
		}
		firsts[e.id] = e
		fresh = append(fresh, e)
		payload = binary.AppendUvarint(payload, uint64(len(e.encoded)))
		payload = append(payload, e.encoded...)
	}
	if len(fresh) > 0 {
		background.EventArrived()
		failpoint.Hit("before-append")
		begun := in.options.Clock.Now()
		seq, err := in.options.Log.AppendEvents(context.WithoutCancel(ctx), lane, payload)
		failpoint.Hit("after-append")
		if err != nil {
			in.uncertainSince = begun
		} else {
			in.accepted[lane].Add(int64(len(fresh)))
		}
		for i, e := range fresh {
			if err != nil {
				e.result.Err = appendError(err)
			} else {
				e.posted.Seq = fanfare.NewEventSeq(seq, i)
				e.result.Ref = e.posted.Ref()
				in.known.add(e.id, e.result.Ref, e.posted.ReceivedAt)
			}
		}
	}
	for _, e := range duplicates {
		first := firsts[e.id].result
		*e.result = Result{Ref: first.Ref, Duplicate: first.Err == nil, Err: first.Err}
	}
	for _, e := range append(fresh, duplicates...) {
		e.group.Done()
	}
}

// readBack reads the ids of events that a failed append has left in the log.
func (in *Ingester) readBack(ctx context.Context) error {
	if in.uncertainSince.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackTime)
	defer cancel()
	err := in.options.Log.ReplayEvents(ctx, in.uncertainSince.Add(-clockSlack), func(seq uint64, _ time.Time, group []byte) error {
		events, err := eventgroup.Decode(group, seq)
		in.LoadIDs(events)
		return err
	})
	if err == nil {
		in.uncertainSince = time.Time{}
	}
	return err
}

func appendError(err error) error {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e
	}
	return fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "the event could not be stored", Hint: "send it again with the same id"}, err)
}
