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

// A testQueue hands out a list of messages and holds the connection to its side
// of the contract.
type testQueue struct {
	t testing.TB

	mu       sync.Mutex
	waiting  []*driver.Message
	out      map[*driver.Message]bool // taken; true once released
	outcomes map[*driver.Message]driver.Outcome
	returned map[*driver.Message]int
	held     map[*driver.Message]bool // Release says no
	forgot   []*driver.Message        // and did
	errs     []string

	onEmpty func() // called once when there is nothing more, instead of an end
	blocked bool   // Next with wait blocks until ctx ends
	wake    chan struct{}
	fail    error // of Report

	reported chan struct{} // gets one for each outcome kept
}

func newQueue(t testing.TB, messages ...*driver.Message) *testQueue {
	return &testQueue{
		t: t, waiting: messages, out: map[*driver.Message]bool{}, outcomes: map[*driver.Message]driver.Outcome{},
		returned: map[*driver.Message]int{}, held: map[*driver.Message]bool{}, wake: make(chan struct{}, 1), reported: make(chan struct{}, 100),
	}
}

// messages makes n messages from different senders to different recipients, whose
// bodies tell both.
// messages makes messages, of which every second one has its last line enclosed.
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

func (d *testQueue) wrong(format string, args ...any) {
	d.errs = append(d.errs, fmt.Sprintf(format, args...))
}

func (d *testQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	for {
		d.mu.Lock()
		if len(d.waiting) > 0 {
			l := d.waiting[0]
			d.waiting = d.waiting[1:]
			d.out[l] = false
			d.mu.Unlock()
			return l, nil
		}
		empty := d.onEmpty
		if wait {
			d.onEmpty = nil
		}
		blocked := d.blocked
		d.mu.Unlock()
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
			case <-d.wake:
			}
		}
	}
}

// put adds messages while the queue is in use.
func (d *testQueue) put(l ...*driver.Message) {
	d.mu.Lock()
	d.waiting = append(d.waiting, l...)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *testQueue) Release(l *driver.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	released, taken := d.out[l]
	if !taken || released {
		d.wrong("%s released, but taken=%v released=%v", l.To, taken, released)
	}
	if d.held[l] {
		delete(d.out, l)
		d.forgot = append(d.forgot, l)
		return false
	}
	d.out[l] = true
	return true
}

func (d *testQueue) Report(l *driver.Message, o driver.Outcome) error {
	for range 20 {
		runtime.Gosched() // a body that does not wait gets every chance to be seen
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	if !d.out[l] {
		d.wrong("%s reported, but it is not released", l.To)
	}
	if _, twice := d.outcomes[l]; twice {
		d.wrong("%s reported twice", l.To)
	}
	delete(d.out, l)
	d.outcomes[l] = o
	select {
	case d.reported <- struct{}{}:
	default:
	}
	return nil
}

func (d *testQueue) Return(l *driver.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	released, taken := d.out[l]
	if !taken || released {
		d.wrong("%s returned, but taken=%v released=%v", l.To, taken, released)
	}
	delete(d.out, l)
	d.returned[l]++
	d.waiting = append([]*driver.Message{l}, d.waiting...)
}

// released lists the messages whose body may be on the wire.
func (d *testQueue) released() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for l, yes := range d.out {
		if yes {
			all = append(all, l.To)
		}
	}
	slices.Sort(all)
	return all
}

// watch checks every body at the peer against the queue: it came under its own
// envelope, it was released, and no other outcome is still to be kept.
func (d *testQueue) watch(p *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inner := p.hook
	p.hook = func(at turn) string {
		if at.at == atBegin {
			d.began(strings.TrimSpace(strings.TrimPrefix(at.line, "From: ")))
		}
		return inner(at)
	}
	p.check = func(from string, rcpts []string, body string) {
		body = strings.ReplaceAll("\n"+body, "\n.", "\n")[1:]
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(rcpts) != 1 || body != bodyFor(from, rcpts[0]) {
			d.wrong("under the envelope %s -> %s came\n%s", from, rcpts, body)
		}
	}
}

func (d *testQueue) began(from string) {
	now := d.released()
	want := "r" + strings.TrimPrefix(from, "s")
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(now) != 1 || now[0] != want {
		d.wrong("the body for %s began while released and unreported were %v", want, now)
	}
}

// done checks that nothing is left in the connection's hands.
func (d *testQueue) done() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.out {
		d.wrong("%s was neither reported nor returned", l.To)
	}
	for _, e := range d.errs {
		d.t.Error(e)
	}
}

// tells gives the outcomes in the order of messages, such as "taken 250",
// "waiting" for one that is with the queue, "forgotten" for one not released.
func (d *testQueue) tells(all []*driver.Message) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{"taken", "temporary", "permanent", "lost"}
	told := make([]string, len(all))
	for i, l := range all {
		o, reported := d.outcomes[l]
		switch {
		case reported:
			told[i] = fmt.Sprintf("%s %d", names[o.Verdict], o.Code)
		case slices.Contains(d.waiting, l):
			told[i] = "waiting"
		case slices.Contains(d.forgot, l):
			told[i] = "forgotten"
		}
	}
	return told
}

var errNotKept = errors.New("disk is gone")
