package smtp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Blaster sends messages as fast as a peer accepts them and records nothing. Benchmarks
// compare the server with it: it uses the connections of Driver with a queue that does
// nothing.
type Blaster struct {
	Config Config // as for a Driver; Blast sets Address
}

// Stats is the result of a Blast. A message that was in flight when a connection broke
// counts as Lost and is not sent again.
type Stats struct {
	Accepted  int           `json:"taken"`
	Temporary int           `json:"temporary"`
	Permanent int           `json:"permanent"`
	Lost      int           `json:"lost"`
	Bytes     int64         `json:"bytes"` // of the accepted messages
	Elapsed   time.Duration `json:"elapsed_nanos"`
	Mode      Mode          `json:"mode"` // of new connections at the end
}

// Blast sends count messages over the connections to addr. message returns the i-th
// message, from 0; it is called concurrently, and its body must not change until Blast
// returns. The clock runs from the first connection to the last reply. Blast returns the
// statistics also with an error.
func (b Blaster) Blast(ctx context.Context, addr string, connections, count int, message func(i int) (from, to string, body []byte)) (Stats, error) {
	cfg := b.Config
	cfg.Address = addr
	if err := cfg.Validate(); err != nil {
		return Stats{}, err
	}
	client := New(cfg)
	var next atomic.Int64
	queues := make([]*discardQueue, connections)
	errs := make([]error, connections)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range queues {
		queue := &discardQueue{next: &next, count: int64(count), message: message, slots: make([]driver.Message, 2*max(1, cfg.MaxRecipients))}
		queues[i] = queue
		wg.Go(func() {
			// A broken connection is replaced while connections send messages.
			for before := -1; ctx.Err() == nil && before < queue.reported; {
				before = queue.reported
				if errs[i] = client.Serve(ctx, queue); errs[i] == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	total := Stats{Elapsed: time.Since(start), Mode: client.Status().Mode}
	for _, q := range queues {
		total.Accepted += q.verdicts[driver.Accepted]
		total.Temporary += q.verdicts[driver.Temporary]
		total.Permanent += q.verdicts[driver.Permanent]
		total.Lost += q.verdicts[driver.Lost]
		total.Bytes += q.bytes
	}
	return total, errors.Join(errors.Join(errs...), ctx.Err())
}

// discardQueue is the queue of one connection. It has no lock, since only that connection
// calls it.
type discardQueue struct {
	next    *atomic.Int64
	count   int64
	message func(i int) (from, to string, body []byte)

	slots    []driver.Message // a connection holds at most two messages
	nextSlot int
	returned []*driver.Message

	verdicts [4]int
	reported int
	bytes    int64
}

func (q *discardQueue) Next(context.Context, bool) (*driver.Message, error) {
	if n := len(q.returned); n > 0 {
		message := q.returned[n-1]
		q.returned = q.returned[:n-1]
		return message, nil
	}
	return q.fill(q.next.Add(1) - 1), nil
}

// fill makes the i-th message; nil after the last one.
func (q *discardQueue) fill(i int64) *driver.Message {
	if i >= q.count {
		return nil
	}
	q.nextSlot = (q.nextSlot + 1) % len(q.slots)
	message := &q.slots[q.nextSlot]
	message.From, message.To, message.Body = q.message(int(i))
	message.SharedContent = 1 // the connection compares the bodies
	return message
}

// TakeSameContent takes the next messages, since all have the same content.
func (q *discardQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, most int) []*driver.Message {
	end := q.next.Add(int64(most))
	for i := end - int64(most); i < min(end, q.count); i++ {
		dst = append(dst, q.fill(i))
	}
	return dst
}

func (q *discardQueue) ReleaseAll(messages []*driver.Message) ([]*driver.Message, bool) {
	return messages, true
}

func (q *discardQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, message := range messages {
		_ = q.Report(message, outcomes[i])
	}
	return nil
}

// Failover reports that there is no other next hop.
func (*discardQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

func (q *discardQueue) Release(*driver.Message) bool { return true }

func (q *discardQueue) Report(message *driver.Message, o driver.Outcome) error {
	q.verdicts[o.Verdict]++
	q.reported++
	if o.Verdict == driver.Accepted {
		q.bytes += int64(message.Size())
	}
	return nil
}

func (q *discardQueue) Return(message *driver.Message) { q.returned = append(q.returned, message) }
