// Package delivertest is the conformance suite for drivers: it tests the contract of
// driver.Driver and driver.Queue with a real peer. The tests of each driver call Run.
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

// A Queue hands out messages and checks that drivers fulfil the contract. Check reports the
// violations.
type Queue struct {
	// Set before the first call of Next.
	Refuses         func(*driver.Message) bool  // whether Release refuses a message
	OnReport        func(*driver.Message) error // called by Report, whose result it may replace
	OnRelease       func(*driver.Message)       // called first by Release and ReleaseAll
	BlocksWhenEmpty bool                        // Next waits for more messages instead of returning nil
	AnyContent      bool                        // messages with different content may be released together

	mu       sync.Mutex
	waiting  []*driver.Message
	held     map[*driver.Message]*holding
	outcomes map[fanfare.DeliveryRef]driver.Outcome
	returned map[fanfare.DeliveryRef]int
	refused  map[fanfare.DeliveryRef]bool
	idle     chan struct{} // receives a token when a connection waits
	failures []string
}

// A holding is a message that a connection holds.
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

// Connection returns the queue for one call of Serve.
func (q *Queue) Connection() driver.Queue { return &connection{q} }

var _ driver.Queue = (*connection)(nil)

type connection struct{ queue *Queue }

func (q *Queue) fail(format string, args ...any) {
	q.failures = append(q.failures, fmt.Sprintf(format, args...))
}

// Next returns the next message.
func (c *connection) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	q := c.queue
	q.mu.Lock()
	if len(q.waiting) > 0 && ctx.Err() == nil {
		message := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.held[message] = &holding{connection: c}
		q.mu.Unlock()
		return message, nil
	}
	q.mu.Unlock()
	if wait && q.BlocksWhenEmpty {
		select {
		case q.idle <- struct{}{}:
		default:
		}
		<-ctx.Done()
	}
	return nil, nil
}

// Release releases a message. The connection must not have another one that was released
// and not reported.
func (c *connection) Release(message *driver.Message) bool {
	q := c.queue
	if q.OnRelease != nil {
		q.OnRelease(message)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	holding := q.held[message]
	if holding == nil || holding.connection != c {
		q.fail("%s was released by a connection that does not have it", message.Delivery)
		return false
	}
	if holding.released {
		q.fail("%s was released twice", message.Delivery)
		return true
	}
	for other, h := range q.held {
		if h.connection == c && h.released && (other.SharedContent == 0 || other.SharedContent != message.SharedContent) {
			q.fail("%s was released before %s was reported", message.Delivery, other.Delivery)
		}
	}
	if q.Refuses != nil && q.Refuses(message) {
		q.refused[message.Delivery] = true
		q.forget(message)
		return false
	}
	holding.released = true
	return true
}

// Failover reports that there is no other next hop.
func (c *connection) Failover(*driver.Message, driver.Outcome) bool { return false }

// TakeSameContent takes the next messages that have the same content.
func (c *connection) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if held := q.held[message]; held == nil || held.connection != c || message.SharedContent == 0 {
		q.fail("messages with the content of %s were requested by a connection that does not hold it, or its content is not shared", message.Delivery)
		return dst
	}
	for ; most > 0 && len(q.waiting) > 0 && q.waiting[0].SharedContent == message.SharedContent; most-- {
		q.held[q.waiting[0]] = &holding{connection: c}
		dst, q.waiting = append(dst, q.waiting[0]), q.waiting[1:]
	}
	return dst
}

// ReleaseAll releases all messages or none.
func (c *connection) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	q := c.queue
	if q.OnRelease != nil {
		q.OnRelease(messages[0])
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, message := range messages {
		holding := q.held[message]
		oneMessage := message.SharedContent != 0 && message.SharedContent == messages[0].SharedContent
		if holding == nil || holding.connection != c || holding.released || !oneMessage && !q.AnyContent {
			q.fail("%s was released with other messages but is not held by the connection or has different content", message.Delivery)
			return nil, false
		}
		if q.Refuses == nil || !q.Refuses(message) {
			left = append(left, message)
			continue
		}
		q.refused[message.Delivery] = true
		q.forget(message)
	}
	if released = len(left) == len(messages); released {
		for other, h := range q.held {
			if h.connection == c && h.released {
				q.fail("%s was released before %s was reported", messages[0].Delivery, other.Delivery)
			}
		}
		for _, message := range messages {
			q.held[message].released = true
		}
	}
	return left, released
}

// ReportAll records the outcomes.
func (c *connection) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, message := range messages {
		if err := c.Report(message, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Report records an outcome.
func (c *connection) Report(message *driver.Message, outcome driver.Outcome) error {
	q := c.queue
	if q.OnReport != nil {
		if err := q.OnReport(message); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	holding := q.held[message]
	switch {
	case holding == nil || holding.connection != c:
		q.fail("%s was reported by a connection that does not have it", message.Delivery)
		return nil
	case !holding.released:
		q.fail("%s was reported but not released", message.Delivery)
	}
	if outcome.At.IsZero() || outcome.Relay == "" || outcome.Text == "" || len(outcome.Text) > 512 {
		q.fail("the outcome of %s has no time, relay or text: %+v", message.Delivery, outcome)
	}
	q.outcomes[message.Delivery] = outcome
	q.forget(message)
	return nil
}

// Return takes back a message of which nothing was written, in front of the others.
func (c *connection) Return(message *driver.Message) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	holding := q.held[message]
	if holding == nil || holding.connection != c || holding.released {
		q.fail("%s was returned by a connection that does not have it or had already released it", message.Delivery)
		return
	}
	q.returned[message.Delivery]++
	again := *message
	again.Body = bytes.Clone(message.Body)
	q.forget(message)
	q.waiting = append([]*driver.Message{&again}, q.waiting...)
}

// forget ends the hold on a message, and overwrites its memory as a Sender may do.
func (q *Queue) forget(message *driver.Message) {
	delete(q.held, message)
	for i := range message.Body {
		message.Body[i] = '!'
	}
}

// Outcomes returns the reported outcomes by delivery.
func (q *Queue) Outcomes() map[fanfare.DeliveryRef]driver.Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make(map[fanfare.DeliveryRef]driver.Outcome, len(q.outcomes))
	for ref, outcome := range q.outcomes {
		all[ref] = outcome
	}
	return all
}

// Waiting returns the number of messages that no connection holds.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Returned returns how often a message was returned.
func (q *Queue) Returned(ref fanfare.DeliveryRef) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.returned[ref]
}

// Arrived records that the next hop has received a complete body. It must belong to a message
// that was released and not reported.
func (q *Queue) Arrived(body []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for message, holding := range q.held {
		if holding.released && bytes.Equal(whole(message), body) {
			return
		}
	}
	q.fail("received a body that no connection may send now: %.80q", body)
}

// whole returns the message as it is sent.
func whole(message *driver.Message) []byte { return slices.Concat(message.Body, message.Attachments) }

// Check fails the test for each violation, and for messages that a connection still holds.
func (q *Queue) Check(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for message := range q.held {
		q.fail("%s was neither returned nor reported", message.Delivery)
	}
	slices.Sort(q.failures)
	for _, wrong := range slices.Compact(q.failures) {
		t.Error(wrong)
	}
}
