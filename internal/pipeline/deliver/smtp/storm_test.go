package smtp

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/sink"
)

// A stubbornQueue offers every message again until it is taken or refused for good.
type stubbornQueue struct {
	mu      sync.Mutex
	waiting []*driver.Message
	open    int // not settled
	lost    int
	failed  int
	more    *sync.Cond
}

func newStubbornQueue(all []*driver.Message) *stubbornQueue {
	d := &stubbornQueue{waiting: all, open: len(all)}
	d.more = sync.NewCond(&d.mu)
	return d
}

func (d *stubbornQueue) Next(_ context.Context, wait bool) (*driver.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for wait && len(d.waiting) == 0 && d.open > 0 {
		d.more.Wait()
	}
	if len(d.waiting) == 0 {
		return nil, nil
	}
	l := d.waiting[0]
	d.waiting = d.waiting[1:]
	return l, nil
}

func (d *stubbornQueue) Release(*driver.Message) bool { return true }

// The messages have different contents and one next hop.
func (*stubbornQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

func (*stubbornQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

func (*stubbornQueue) ReleaseAll(messages []*driver.Message) ([]*driver.Message, bool) {
	return messages, true
}

func (d *stubbornQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, l := range messages {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *stubbornQueue) Return(l *driver.Message) { d.again(l, false) }

func (d *stubbornQueue) again(l *driver.Message, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, l)
	if lost {
		d.lost++
	}
	d.more.Signal()
}

func (d *stubbornQueue) Report(l *driver.Message, o driver.Outcome) error {
	if o.Verdict == driver.Temporary || o.Verdict == driver.Lost {
		d.again(l, o.Verdict == driver.Lost)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Verdict == driver.Permanent {
		d.failed++
	}
	if d.open--; d.open == 0 {
		d.more.Broadcast()
	}
	return nil
}

// TestAStormLosesNobody sends to a sink that refuses, delays nothing and drops
// connections in every way. Everyone who is not refused for good has the
// message, and only a drop between dot and reply makes a second one.
func TestAStormLosesNobody(t *testing.T) {
	const people = 5000
	for _, at := range []string{sink.AtRcpt, sink.AtData, sink.AtBody} {
		s := sink.New(sink.Config{Inject: sink.Inject{
			Seed: 1, TempFail: 0.05, PermFail: 0.02, At: at, DropBeforeData: 0.005, DropInData: 0.005, DropBeforeReply: 0.005,
		}})
		addr, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		all := make([]*driver.Message, people)
		for i := range all {
			all[i] = &driver.Message{From: "s@x", To: fmt.Sprintf("p%d@x", i), Body: []byte("X-Fanfare-Event: storm\r\n\r\nhello\r\n")}
		}
		queue := newStubbornQueue(append([]*driver.Message(nil), all...))
		drv := New(short(addr.String()))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for drv.Serve(t.Context(), queue) != nil { // a lost connection: open another
				}
			})
		}
		wg.Wait()
		_ = s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		missing := 0
		for _, l := range all {
			if s.Seen("storm", l.To) == 0 {
				missing++
			}
		}
		got := s.Stats()
		if missing != queue.failed || queue.open != 0 {
			t.Errorf("%s: %d have nothing, %d were refused for good; %+v", at, missing, queue.failed, got)
		}
		if got.Duplicates != got.DroppedBeforeReply || int64(queue.lost) != got.DroppedBeforeReply+got.DroppedInData {
			t.Errorf("%s: %d lost, %+v", at, queue.lost, got)
		}
		if s := drv.Status(); s.Mode != Grouped {
			t.Errorf("%s: %+v", at, s)
		}
	}
}
