//go:build peers

package peers

import (
	"context"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// patience is how long a test waits for what must come about. It decides only
// how long a failure takes.
const patience = 3 * time.Minute

// A queue hands out messages in their order and keeps what came of them.
type queue struct {
	t *testing.T

	mu       sync.Mutex
	waiting  []*driver.Message
	outcomes map[*driver.Message]driver.Outcome
}

func (d *queue) Next(context.Context, bool) (*driver.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil, nil
	}
	l := d.waiting[0]
	d.waiting = d.waiting[1:]
	return l, nil
}

func (d *queue) Release(*driver.Message) bool { return true }

func (d *queue) Report(l *driver.Message, o driver.Outcome) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, twice := d.outcomes[l]; twice {
		d.t.Errorf("%s was reported twice", l.To)
	}
	d.outcomes[l] = o
	return nil
}

func (d *queue) Return(l *driver.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append([]*driver.Message{l}, d.waiting...)
}

func (d *queue) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; most > 0 && len(d.waiting) > 0 && d.waiting[0].SharedContent == message.SharedContent; most-- {
		dst, d.waiting = append(dst, d.waiting[0]), d.waiting[1:]
	}
	return dst
}

func (d *queue) ReleaseAll(messages []*driver.Message) ([]*driver.Message, bool) {
	return messages, true
}

func (d *queue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, l := range messages {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Failover reports that there is no other next hop.
func (*queue) Failover(*driver.Message, driver.Outcome) bool { return false }

// left counts the messages that nobody has in hand.
func (d *queue) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// A sent is what came of a run: the outcome of each message, and the errors that
// connections ended with.
type sent struct {
	outcomes map[*driver.Message]driver.Outcome
	broken   []error
}

// enough broken connections end a run: the peer takes no message any more.
const enough = 100

// send brings messages out over so many connections. A connection that ends with
// an error is replaced as long as there are messages.
func send(t *testing.T, client *smtp.Driver, connections int, messages ...*driver.Message) sent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := &queue{t: t, waiting: append([]*driver.Message(nil), messages...), outcomes: map[*driver.Message]driver.Outcome{}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var broken []error
	for range connections {
		wg.Go(func() {
			for lost := 0; ctx.Err() == nil && d.left() > 0 && lost < enough; {
				if err := client.Serve(ctx, d); err != nil {
					lost++
					mu.Lock()
					broken = append(broken, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(d.outcomes) != len(messages) {
		t.Fatalf("%d of %d messages have an outcome; connections ended with %v", len(d.outcomes), len(messages), broken[:min(3, len(broken))])
	}
	return sent{d.outcomes, broken}
}
