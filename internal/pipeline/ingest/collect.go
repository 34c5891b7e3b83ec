// Package collect is the intake: it validates events, refuses those it knows
// already, and keeps the rest before it answers.
//
// State. The ids of the last hour at least (or the last ten million) are in
// memory, rebuilt from the kept groups at start. Requests that arrive together
// share one append, so that a sync of the disk costs the group and not the
// request: while one group is being appended, the next gathers.
//
// Failure. An error means that the event was not kept, or, where the append
// itself failed, may have been. Sending it again with the same id is safe: after
// a failed append the log is read back before anything else is appended.
package ingest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

// MaxDataBytes is the most that the data of one event may have.
const MaxDataBytes = 256 << 10

const (
	// maxGroupBytes leaves room below the bus's limit for one more event.
	maxGroupBytes = 600 << 10
	// maxWaiting and maxWaitingBytes are what may wait for its append; beyond
	// that intake answers Unavailable.
	maxWaiting      = 100_000
	maxWaitingBytes = 64 << 20
	// keptForUrgent is which part of them is kept for urgent events.
	keptForUrgent = 8
	// readBackTime bounds how long the log is read after a failed append, and
	// clockSlack by how much the log's clock may differ from ours.
	readBackTime = 10 * time.Second
	clockSlack   = time.Minute
)

// Log is the durable stream of event groups.
type Log interface {
	AppendEvents(ctx context.Context, lane fanfare.Lane, group []byte) (seq uint64, err error)
	// ReplayEvents visits the groups that were kept since a time, oldest first.
	ReplayEvents(ctx context.Context, since time.Time, visit func(seq uint64, kept time.Time, group []byte) error) error
}

// Topics is what intake needs to know of what people configured.
type Topics interface {
	// Intake returns the lane of a topic and a check of its events' data.
	Intake(service, topic string) (lane fanfare.Lane, validate func(json.RawMessage) error, err error)
	// CheckAudience refuses a sender's condition over people that is none.
	CheckAudience(service, filter string) error
	// ChangeSeq returns the last change of a subscription.
	ChangeSeq() uint64
}

// Options are the parts that a collector works with.
type Options struct {
	Log    Log
	Topics Topics
	Clock  clock.Clock
	Floor  func() error // an error while the disk is too full to take more
}

// Result is what came of one event.
type Result struct {
	Ref       fanfare.EventRef // of this event, or of the first one with its id
	Duplicate bool
	Err       error
}

// Collector takes events.
type Collector struct {
	options Options
	known   *memory

	mu      sync.Mutex
	waiting [len(fanfare.Lanes)][]*entry
	count   int // of all that waits
	bytes   int
	closed  bool
	wake    chan struct{}

	unsure time.Time // of an append that failed and was not read back yet; belongs to run

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// entry is one event on its way into the log.
type entry struct {
	posted  *fanfare.AcceptedEvent
	encoded []byte
	id      identity
	result  *Result
	group   *sync.WaitGroup
}

// Start returns a collector that takes events until Stop. Known ids are learned
// by Remember before the first Post.
func Start(options Options) *Collector {
	ctx, stop := context.WithCancel(context.Background())
	c := &Collector{options: options, known: newMemory(), wake: make(chan struct{}, 1), stop: stop}
	c.stopped.Go(func() { c.run(ctx) })
	return c
}

// Stop keeps what is waiting and returns when nothing is under way. Post fails
// from then on.
func (c *Collector) Stop() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.stopped.Wait()
}

// Post keeps events. Each has its own result, in order; the error is set where
// nothing could be taken at all. It returns when all that it took is durable.
func (c *Collector) Post(ctx context.Context, events []fanfare.AcceptedEvent) ([]Result, error) {
	if err := c.options.Floor(); err != nil {
		return nil, err
	}
	results := make([]Result, len(events))
	entries := make([]*entry, 0, len(events))
	var group sync.WaitGroup
	now := c.options.Clock.Now()
	change := c.options.Topics.ChangeSeq()
	for i := range events {
		e, err := c.admit(&events[i], now, change)
		if err != nil {
			results[i].Err = err
			continue
		}
		e.result, e.group = &results[i], &group
		entries = append(entries, e)
	}
	if err := c.enqueue(entries, &group); err != nil {
		return nil, err
	}
	group.Wait()
	return results, nil
}

// admit checks one event and completes what its sender left out.
func (c *Collector) admit(p *fanfare.AcceptedEvent, now time.Time, change uint64) (*entry, error) {
	if len(p.Event.Data) > MaxDataBytes {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/data",
			Message: fmt.Sprintf("the data has %d bytes, more than %d", len(p.Event.Data), MaxDataBytes), Hint: "send a link to what is large"}
	}
	if p.Direct == nil { // a direct send has no topic, and was checked by who made it
		if err := c.checkTopic(p); err != nil {
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
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the event has %d bytes, more than %d", len(encoded), maxGroupBytes), Hint: "shorten id, source and subject"}
	}
	return &entry{posted: p, encoded: encoded, id: identify(p)}, nil
}

// checkTopic checks an event against its topic, which also gives its lane.
func (c *Collector) checkTopic(p *fanfare.AcceptedEvent) error {
	lane, validate, err := c.options.Topics.Intake(p.Service, p.Topic)
	if err != nil {
		return err
	}
	if validate != nil {
		if err := validate(p.Event.Data); err != nil {
			return err
		}
	}
	if p.Audience != nil {
		if err := c.options.Topics.CheckAudience(p.Service, p.Audience.Filter); err != nil {
			return err
		}
	}
	if p.Lane == fanfare.TopicLane {
		p.Lane = lane
	}
	return nil
}

func (c *Collector) enqueue(entries []*entry, group *sync.WaitGroup) error {
	if len(entries) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "send again to another node, or in a moment"}
	}
	events, size := maxWaiting, maxWaitingBytes
	if !slices.ContainsFunc(entries, func(e *entry) bool { return e.posted.Lane == fanfare.Urgent }) {
		events, size = events-events/keptForUrgent, size-size/keptForUrgent
	}
	if c.count >= events || c.bytes >= size {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "too many events wait for the disk", Hint: "send again in a moment"}
	}
	group.Add(len(entries))
	for _, e := range entries {
		c.waiting[e.posted.Lane] = append(c.waiting[e.posted.Lane], e)
		c.bytes += len(e.encoded)
	}
	c.count += len(entries)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (c *Collector) run(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.drain(ctx)
			return
		}
		c.drain(ctx)
	}
}

// drain appends what waits, one group of each lane in turn, until nothing does:
// an urgent event that comes waits for one group of each other lane at most.
func (c *Collector) drain(ctx context.Context) {
	for busy := true; busy; {
		busy = false
		for _, lane := range fanfare.Lanes {
			if group := c.take(lane); len(group) > 0 {
				c.appendGroup(ctx, lane, group)
				busy = true
			}
		}
	}
}

// take cuts the next group of a lane: as many events as fit.
func (c *Collector) take(lane fanfare.Lane) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[lane]
	n, size := 0, 0
	for n < min(len(waiting), fanfare.MaxGroup) && (n == 0 || size+len(waiting[n].encoded) <= maxGroupBytes) {
		size += len(waiting[n].encoded)
		n++
	}
	c.waiting[lane] = waiting[n:]
	if n == len(waiting) {
		c.waiting[lane] = nil
	}
	c.count -= n
	c.bytes -= size
	return waiting[:n]
}

// appendGroup leaves out what is known, appends the rest as one message and
// answers all.
func (c *Collector) appendGroup(ctx context.Context, lane fanfare.Lane, group []*entry) {
	if err := c.readBack(ctx); err != nil {
		for _, e := range group {
			e.result.Err = appendError(err)
			e.group.Done()
		}
		return
	}
	var payload []byte
	fresh := make([]*entry, 0, len(group))
	firsts := make(map[identity]*entry, len(group))
	var repeats []*entry
	for _, e := range group {
		if ref, ok := c.known.find(e.id); ok {
			*e.result = Result{Ref: ref, Duplicate: true}
			e.group.Done()
			continue
		}
		if firsts[e.id] != nil {
			repeats = append(repeats, e)
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
		begun := c.options.Clock.Now()
		seq, err := c.options.Log.AppendEvents(context.WithoutCancel(ctx), lane, payload)
		failpoint.Hit("after-append")
		if err != nil {
			c.unsure = begun
		}
		for i, e := range fresh {
			if err != nil {
				e.result.Err = appendError(err)
			} else {
				e.posted.Seq = fanfare.NewEventSeq(seq, i)
				e.result.Ref = e.posted.Ref()
				c.known.learn(e.id, e.result.Ref, e.posted.ReceivedAt)
			}
		}
	}
	for _, e := range repeats {
		first := firsts[e.id].result
		*e.result = Result{Ref: first.Ref, Duplicate: first.Err == nil, Err: first.Err}
	}
	for _, e := range append(fresh, repeats...) {
		e.group.Done()
	}
}

// readBack learns what a failed append left in the log after all.
func (c *Collector) readBack(ctx context.Context) error {
	if c.unsure.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackTime)
	defer cancel()
	err := c.options.Log.ReplayEvents(ctx, c.unsure.Add(-clockSlack), func(seq uint64, _ time.Time, group []byte) error {
		events, err := eventgroup.Decode(group, seq)
		c.Remember(events)
		return err
	})
	if err == nil {
		c.unsure = time.Time{}
	}
	return err
}

func appendError(err error) error {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e
	}
	return fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "the event could not be kept", Hint: "send it again with the same id"}, err)
}
