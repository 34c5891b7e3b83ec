// Package delivertest is what every driver has to pass: the contract of
// driver.Driver and driver.Queue as tests, run against each way out and a real
// peer of its kind.
package delivertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Queue hands out messages and holds drivers to their side of the contract. What
// a driver does wrong is said by Check.
type Queue struct {
	// Set before the first message is handed out.
	Refuses         func(*driver.Message) bool  // what Release says no to
	OnReport        func(*driver.Message) error // what Report does before it returns
	OnRelease       func(*driver.Message)       // what Release and ReleaseAll do before they answer
	BlocksWhenEmpty bool                        // Next waits for more messages, instead of saying that there are none
	AnyContent      bool                        // messages of different shares may leave together: they replace themselves

	mu       sync.Mutex
	waiting  []*driver.Message
	held     map[*driver.Message]*holding
	outcomes map[fanfare.DeliveryRef]driver.Outcome
	returned map[fanfare.DeliveryRef]int
	refused  map[fanfare.DeliveryRef]bool
	idle     chan struct{} // gets a token when a connection waits
	failures []string
}

// A hand is a message in the hands of a connection.
type holding struct {
	connection *connection
	released   bool
}

// NewQueue returns a queue with messages.
func NewQueue(messages ...*driver.Message) *Queue {
	return &Queue{
		waiting: messages, held: map[*driver.Message]*holding{}, outcomes: map[fanfare.DeliveryRef]driver.Outcome{},
		returned: map[fanfare.DeliveryRef]int{}, refused: map[fanfare.DeliveryRef]bool{}, idle: make(chan struct{}, 1),
	}
}

// Connection is the queue as one call of Serve sees it.
func (d *Queue) Connection() driver.Queue { return &connection{d} }

var _ driver.Queue = (*connection)(nil)

type connection struct{ queue *Queue }

func (d *Queue) fail(format string, args ...any) {
	d.failures = append(d.failures, fmt.Sprintf(format, args...))
}

// Next hands out the next message.
func (s *connection) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	d := s.queue
	d.mu.Lock()
	if len(d.waiting) > 0 && ctx.Err() == nil {
		message := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.held[message] = &holding{connection: s}
		d.mu.Unlock()
		return message, nil
	}
	d.mu.Unlock()
	if wait && d.BlocksWhenEmpty {
		select {
		case d.idle <- struct{}{}:
		default:
		}
		<-ctx.Done()
	}
	return nil, nil
}

// Release lets a message go. The connection that asks may have no other one that
// was let go and not reported.
func (s *connection) Release(message *driver.Message) bool {
	d := s.queue
	if d.OnRelease != nil {
		d.OnRelease(message)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held[message]
	if held == nil || held.connection != s {
		d.fail("%s was released by a connection that does not have it", message.Delivery)
		return false
	}
	if held.released {
		d.fail("%s was released twice", message.Delivery)
		return true
	}
	for other, h := range d.held {
		if h.connection == s && h.released && (other.SharedContent == 0 || other.SharedContent != message.SharedContent) {
			d.fail("%s was released before %s was reported", message.Delivery, other.Delivery)
		}
	}
	if d.Refuses != nil && d.Refuses(message) {
		d.refused[message.Delivery] = true
		d.forget(message)
		return false
	}
	held.released = true
	return true
}

// Failover reports that there is no other next hop.
func (s *connection) Failover(*driver.Message, driver.Outcome) bool { return false }

// TakeSameContent hands out the next messages that have the same content.
func (s *connection) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	d := s.queue
	d.mu.Lock()
	defer d.mu.Unlock()
	if held := d.held[message]; held == nil || held.connection != s || message.SharedContent == 0 {
		d.fail("messages with the content of %s were requested by a connection that does not hold it, or its content is not shared", message.Delivery)
		return dst
	}
	for ; most > 0 && len(d.waiting) > 0 && d.waiting[0].SharedContent == message.SharedContent; most-- {
		d.held[d.waiting[0]] = &holding{connection: s}
		dst, d.waiting = append(dst, d.waiting[0]), d.waiting[1:]
	}
	return dst
}

// ReleaseAll lets all of them go, or none.
func (s *connection) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	d := s.queue
	if d.OnRelease != nil {
		d.OnRelease(messages[0])
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, message := range messages {
		held := d.held[message]
		oneMessage := message.SharedContent != 0 && message.SharedContent == messages[0].SharedContent
		if held == nil || held.connection != s || held.released || !oneMessage && !d.AnyContent {
			d.fail("%s was released with others and is not the connection's, or not one message with them", message.Delivery)
			return nil, false
		}
		if d.Refuses == nil || !d.Refuses(message) {
			left = append(left, message)
			continue
		}
		d.refused[message.Delivery] = true
		d.forget(message)
	}
	if released = len(left) == len(messages); released {
		for other, h := range d.held {
			if h.connection == s && h.released {
				d.fail("%s was released before %s was reported", messages[0].Delivery, other.Delivery)
			}
		}
		for _, message := range messages {
			d.held[message].released = true
		}
	}
	return left, released
}

// ReportAll keeps what came of each.
func (s *connection) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, message := range messages {
		if err := s.Report(message, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Report keeps what came of a message.
func (s *connection) Report(message *driver.Message, outcome driver.Outcome) error {
	d := s.queue
	if d.OnReport != nil {
		if err := d.OnReport(message); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held[message]
	switch {
	case held == nil || held.connection != s:
		d.fail("%s was reported by a connection that does not have it", message.Delivery)
		return nil
	case !held.released:
		d.fail("%s was reported and not released", message.Delivery)
	}
	if outcome.At.IsZero() || outcome.Relay == "" || outcome.Text == "" || len(outcome.Text) > 512 {
		d.fail("the outcome of %s does not tell when, by whom and what: %+v", message.Delivery, outcome)
	}
	d.outcomes[message.Delivery] = outcome
	d.forget(message)
	return nil
}

// Return takes back a message of which nothing was written, in front of the others.
func (s *connection) Return(message *driver.Message) {
	d := s.queue
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held[message]
	if held == nil || held.connection != s || held.released {
		d.fail("%s was returned by a connection that does not have it, or had it released", message.Delivery)
		return
	}
	d.returned[message.Delivery]++
	again := *message
	again.Body = bytes.Clone(message.Body)
	d.forget(message)
	d.waiting = append([]*driver.Message{&again}, d.waiting...)
}

// forget ends a connection's hold on a message. Its memory has another one's from here
// on, as it has in an outlet.
func (d *Queue) forget(message *driver.Message) {
	delete(d.held, message)
	for i := range message.Body {
		message.Body[i] = '!'
	}
}

// Outcomes are those that were reported, by delivery.
func (d *Queue) Outcomes() map[fanfare.DeliveryRef]driver.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[fanfare.DeliveryRef]driver.Outcome, len(d.outcomes))
	for ref, outcome := range d.outcomes {
		all[ref] = outcome
	}
	return all
}

// Waiting is how many messages nobody has.
func (d *Queue) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// Returned is how often a message came back.
func (d *Queue) Returned(ref fanfare.DeliveryRef) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.returned[ref]
}

// Arrived tells the queue that a body is complete at the next hop. It must be that
// of a message that was let go and whose outcome is still to come.
func (d *Queue) Arrived(body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for message, held := range d.held {
		if held.released && bytes.Equal(whole(message), body) {
			return
		}
	}
	d.fail("a body arrived that no connection may send now: %.80q", body)
}

// whole is the message as it leaves.
func whole(message *driver.Message) []byte { return slices.Concat(message.Body, message.Attachments) }

// Check fails the test with all that a driver did wrong, and where messages are
// still in a connection's hands.
func (d *Queue) Check(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for message := range d.held {
		d.fail("%s was neither returned nor reported", message.Delivery)
	}
	slices.Sort(d.failures)
	for _, wrong := range slices.Compact(d.failures) {
		t.Error(wrong)
	}
}
