package smtp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Blaster sends messages as fast as a peer takes them and keeps no record. It
// is the raw limit that a benchmark compares with: the wire code is the
// Driver's own, only the queue behind it does nothing.
type Blaster struct {
	Config Config // Address is set by Blast; all else as for a Driver
}

// Stats are the result of a Blast. A message that was in flight when a
// connection broke is in Lost and is not sent again.
type Stats struct {
	Accepted  int           `json:"taken"`
	Temporary int           `json:"temporary"`
	Permanent int           `json:"permanent"`
	Lost      int           `json:"lost"`
	Bytes     int64         `json:"bytes"` // of the messages taken
	Elapsed   time.Duration `json:"elapsed_nanos"`
	Mode      Mode          `json:"mode"` // of new connections at the end
}

// Rate returns the messages taken per second.
func (s Stats) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Accepted) / s.Elapsed.Seconds()
}

// Blast sends count messages over the connections to addr. message gives the i-th
// of them, from 0; it is called concurrently, and a body must stay as it is
// until Blast returns. The clock runs from the first connection to the last
// reply. It returns what was sent also with an error.
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
			// A broken connection is replaced as long as connections are of use.
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
	for _, d := range queues {
		total.Accepted += d.verdicts[driver.Accepted]
		total.Temporary += d.verdicts[driver.Temporary]
		total.Permanent += d.verdicts[driver.Permanent]
		total.Lost += d.verdicts[driver.Lost]
		total.Bytes += d.bytes
	}
	return total, errors.Join(errors.Join(errs...), ctx.Err())
}

// A rawQueue is the queue of one connection. It has no lock, since only that
// connection asks it.
type discardQueue struct {
	next    *atomic.Int64
	count   int64
	message func(i int) (from, to string, body []byte)

	slots    []driver.Message // a connection holds two messages at most
	nextSlot int
	returned []*driver.Message

	verdicts [4]int
	reported int
	bytes    int64
}

func (d *discardQueue) Next(context.Context, bool) (*driver.Message, error) {
	if n := len(d.returned); n > 0 {
		l := d.returned[n-1]
		d.returned = d.returned[:n-1]
		return l, nil
	}
	return d.fill(d.next.Add(1) - 1), nil
}

// fill makes the i-th message, nil beyond the last.
func (d *discardQueue) fill(i int64) *driver.Message {
	if i >= d.count {
		return nil
	}
	d.nextSlot = (d.nextSlot + 1) % len(d.slots)
	l := &d.slots[d.nextSlot]
	l.From, l.To, l.Body = d.message(int(i))
	l.SharedContent = 1 // the connection compares the bodies
	return l
}

// TakeSameContent takes the next messages, since all have the same content.
func (d *discardQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, most int) []*driver.Message {
	end := d.next.Add(int64(most))
	for i := end - int64(most); i < min(end, d.count); i++ {
		dst = append(dst, d.fill(i))
	}
	return dst
}

func (d *discardQueue) ReleaseAll(messages []*driver.Message) ([]*driver.Message, bool) {
	return messages, true
}

func (d *discardQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, l := range messages {
		_ = d.Report(l, outcomes[i])
	}
	return nil
}

// Failover reports that there is no other next hop.
func (*discardQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

func (d *discardQueue) Release(*driver.Message) bool { return true }

func (d *discardQueue) Report(l *driver.Message, o driver.Outcome) error {
	d.verdicts[o.Verdict]++
	d.reported++
	if o.Verdict == driver.Accepted {
		d.bytes += int64(l.Size())
	}
	return nil
}

func (d *discardQueue) Return(l *driver.Message) { d.returned = append(d.returned, l) }
