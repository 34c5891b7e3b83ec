package smtp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A testQueue hands out messages and checks that the connection keeps the contract.
type testQueue struct {
	t testing.TB

	mu       sync.Mutex
	waiting  []*driver.Message
	out      map[*driver.Message]bool // taken; true once released
	outcomes map[*driver.Message]driver.Outcome
	returned map[*driver.Message]int
	held     map[*driver.Message]bool // refused by Release
	forgot   []*driver.Message        // of these, those that Release was called for
	errs     []string

	onEmpty func() // called once when there are no more messages
	blocked bool   // Next with wait blocks until ctx ends
	wake    chan struct{}
	fail    error // result of Report

	reported chan struct{} // receives a token for each recorded outcome
}

func newQueue(t testing.TB, messages ...*driver.Message) *testQueue {
	return &testQueue{
		t: t, waiting: messages, out: map[*driver.Message]bool{}, outcomes: map[*driver.Message]driver.Outcome{},
		returned: map[*driver.Message]int{}, held: map[*driver.Message]bool{}, wake: make(chan struct{}, 1), reported: make(chan struct{}, 100),
	}
}

// messages makes n messages with different senders and recipients, whose bodies name both.
// Every second one has its last line as attachment.
func messages(n int) []*driver.Message {
	all := make([]*driver.Message, n)
	for i := range all {
		from, to := fmt.Sprintf("s%d@example.com", i), fmt.Sprintf("r%d@example.com", i)
		all[i] = &driver.Message{From: from, To: to, Body: []byte(bodyFor(from, to))}
		if i%2 == 1 {
			body, last, _ := strings.Cut(bodyFor(from, to), "end")
			all[i].Body, all[i].Attachments = []byte(body), []byte("end"+last)
		}
	}
	return all
}

func bodyFor(from, to string) string {
	return "From: " + from + "\r\nTo: " + to + "\r\n\r\n.dot\r\n..two\r\nend\r\n"
}

func (q *testQueue) wrong(format string, args ...any) {
	q.errs = append(q.errs, fmt.Sprintf(format, args...))
}

func (q *testQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	for {
		q.mu.Lock()
		if len(q.waiting) > 0 {
			message := q.waiting[0]
			q.waiting = q.waiting[1:]
			q.out[message] = false
			q.mu.Unlock()
			return message, nil
		}
		empty := q.onEmpty
		if wait {
			q.onEmpty = nil
		}
		blocked := q.blocked
		q.mu.Unlock()
		if !wait {
			return nil, nil
		}
		switch {
		case empty != nil:
			empty()
		case !blocked:
			return nil, nil
		default:
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-q.wake:
			}
		}
	}
}

// put adds messages while the queue is in use.
func (q *testQueue) put(l ...*driver.Message) {
	q.mu.Lock()
	q.waiting = append(q.waiting, l...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *testQueue) Release(message *driver.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	released, taken := q.out[message]
	if !taken || released {
		q.wrong("%s released, but taken=%v released=%v", message.To, taken, released)
	}
	if q.held[message] {
		delete(q.out, message)
		q.forgot = append(q.forgot, message)
		return false
	}
	q.out[message] = true
	return true
}

func (q *testQueue) Report(message *driver.Message, o driver.Outcome) error {
	for range 20 {
		runtime.Gosched() // to detect a body that does not wait
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	if !q.out[message] {
		q.wrong("%s reported, but it is not released", message.To)
	}
	if _, twice := q.outcomes[message]; twice {
		q.wrong("%s reported twice", message.To)
	}
	delete(q.out, message)
	q.outcomes[message] = o
	select {
	case q.reported <- struct{}{}:
	default:
	}
	return nil
}

func (q *testQueue) Return(message *driver.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	released, taken := q.out[message]
	if !taken || released {
		q.wrong("%s returned, but taken=%v released=%v", message.To, taken, released)
	}
	delete(q.out, message)
	q.returned[message]++
	q.waiting = append([]*driver.Message{message}, q.waiting...)
}

// released lists the messages whose body may be in flight.
func (q *testQueue) released() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []string
	for message, yes := range q.out {
		if yes {
			all = append(all, message.To)
		}
	}
	slices.Sort(all)
	return all
}

// watch checks every body at the peer: it has its own envelope, it was released, and no
// other outcome is missing.
func (q *testQueue) watch(p *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inner := p.hook
	p.hook = func(at exchange) string {
		if at.at == atBegin {
			q.began(strings.TrimSpace(strings.TrimPrefix(at.line, "From: ")))
		}
		return inner(at)
	}
	p.check = func(from string, rcpts []string, body string) {
		body = strings.ReplaceAll("\n"+body, "\n.", "\n")[1:]
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(rcpts) != 1 || body != bodyFor(from, rcpts[0]) {
			q.wrong("under the envelope %s -> %s came\n%s", from, rcpts, body)
		}
	}
}

func (q *testQueue) began(from string) {
	now := q.released()
	want := "r" + strings.TrimPrefix(from, "s")
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(now) != 1 || now[0] != want {
		q.wrong("the body for %s began while released and unreported were %v", want, now)
	}
}

// done checks that the connection holds no message.
func (q *testQueue) done() {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for message := range q.out {
		q.wrong("%s was neither reported nor returned", message.To)
	}
	for _, e := range q.errs {
		q.t.Error(e)
	}
}

// tells returns the outcomes in the order of messages, such as "taken 250", "waiting" for a
// message in the queue, "forgotten" for one that was not released.
func (q *testQueue) tells(all []*driver.Message) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	names := []string{"taken", "temporary", "permanent", "lost"}
	told := make([]string, len(all))
	for i, message := range all {
		o, reported := q.outcomes[message]
		switch {
		case reported:
			told[i] = fmt.Sprintf("%s %d", names[o.Verdict], o.Code)
		case slices.Contains(q.waiting, message):
			told[i] = "waiting"
		case slices.Contains(q.forgot, message):
			told[i] = "forgotten"
		}
	}
	return told
}

var errNotKept = errors.New("disk is gone")
