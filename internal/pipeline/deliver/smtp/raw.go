package smtp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// A Blaster sends letters as fast as a peer takes them and keeps no record. It
// is the raw limit that a benchmark compares with: the wire code is the
// Driver's own, only the desk behind it does nothing.
type Blaster struct {
	Config Config // Address is set by Blast; all else as for a Driver
}

// Stats are the result of a Blast. A letter that was in flight when a
// connection broke is in Lost and is not sent again.
type Stats struct {
	Taken     int           `json:"taken"`
	Temporary int           `json:"temporary"`
	Permanent int           `json:"permanent"`
	Lost      int           `json:"lost"`
	Bytes     int64         `json:"bytes"` // of the letters taken
	Elapsed   time.Duration `json:"elapsed_nanos"`
	Mode      Mode          `json:"mode"` // of new connections at the end
}

// Rate returns the letters taken per second.
func (s Stats) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Taken) / s.Elapsed.Seconds()
}

// Blast sends count letters over the connections to addr. letter gives the i-th
// of them, from 0; it is called concurrently, and a body must stay as it is
// until Blast returns. The clock runs from the first connection to the last
// reply. It returns what was sent also with an error.
func (b Blaster) Blast(ctx context.Context, addr string, connections, count int, letter func(i int) (from, to string, body []byte)) (Stats, error) {
	cfg := b.Config
	cfg.Address = addr
	if err := cfg.Validate(); err != nil {
		return Stats{}, err
	}
	driver := New(cfg)
	var next atomic.Int64
	desks := make([]*rawDesk, connections)
	errs := make([]error, connections)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range desks {
		desk := &rawDesk{next: &next, count: int64(count), letter: letter, slots: make([]fanfare.Letter, 2*max(1, cfg.MaxRecipients))}
		desks[i] = desk
		wg.Go(func() {
			// A broken connection is replaced as long as connections are of use.
			for before := -1; ctx.Err() == nil && before < desk.reported; {
				before = desk.reported
				if errs[i] = driver.Serve(ctx, desk); errs[i] == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	total := Stats{Elapsed: time.Since(start), Mode: driver.Status().Mode}
	for _, d := range desks {
		total.Taken += d.verdicts[fanfare.Taken]
		total.Temporary += d.verdicts[fanfare.Temporary]
		total.Permanent += d.verdicts[fanfare.Permanent]
		total.Lost += d.verdicts[fanfare.Lost]
		total.Bytes += d.bytes
	}
	return total, errors.Join(errors.Join(errs...), ctx.Err())
}

// A rawDesk is the desk of one connection. It has no lock, since only that
// connection asks it.
type rawDesk struct {
	next   *atomic.Int64
	count  int64
	letter func(i int) (from, to string, body []byte)

	slots    []fanfare.Letter // a connection holds two messages at most
	turn     int
	returned []*fanfare.Letter

	verdicts [4]int
	reported int
	bytes    int64
}

func (d *rawDesk) Next(context.Context, bool) (*fanfare.Letter, error) {
	if n := len(d.returned); n > 0 {
		l := d.returned[n-1]
		d.returned = d.returned[:n-1]
		return l, nil
	}
	return d.fill(d.next.Add(1) - 1), nil
}

// fill makes the i-th letter, nil beyond the last.
func (d *rawDesk) fill(i int64) *fanfare.Letter {
	if i >= d.count {
		return nil
	}
	d.turn = (d.turn + 1) % len(d.slots)
	l := &d.slots[d.turn]
	l.From, l.To, l.Body = d.letter(int(i))
	l.Share = 1 // the connection compares the bodies
	return l
}

// Companions takes the letters that are next, whatever they are.
func (d *rawDesk) Companions(dst []*fanfare.Letter, _ *fanfare.Letter, most int) []*fanfare.Letter {
	end := d.next.Add(int64(most))
	for i := end - int64(most); i < min(end, d.count); i++ {
		dst = append(dst, d.fill(i))
	}
	return dst
}

func (d *rawDesk) ReleaseAll(letters []*fanfare.Letter) ([]*fanfare.Letter, bool) {
	return letters, true
}

func (d *rawDesk) ReportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome) error {
	for i, l := range letters {
		_ = d.Report(l, outcomes[i])
	}
	return nil
}

func (d *rawDesk) Release(*fanfare.Letter) bool { return true }

func (d *rawDesk) Report(l *fanfare.Letter, o fanfare.Outcome) error {
	d.verdicts[o.Verdict]++
	d.reported++
	if o.Verdict == fanfare.Taken {
		d.bytes += int64(l.Size())
	}
	return nil
}

func (d *rawDesk) Return(l *fanfare.Letter) { d.returned = append(d.returned, l) }
