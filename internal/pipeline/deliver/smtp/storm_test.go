package smtp

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/sink"
)

// A stubbornQueue offers every message again until it is accepted or permanently refused.
type stubbornQueue struct {
	mu      sync.Mutex
	waiting []*driver.Message
	open    int // not settled
	lost    int
	failed  int
	more    *sync.Cond
}

func newStubbornQueue(all []*driver.Message) *stubbornQueue {
	q := &stubbornQueue{waiting: all, open: len(all)}
	q.more = sync.NewCond(&q.mu)
	return q
}

func (q *stubbornQueue) Next(_ context.Context, wait bool) (*driver.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for wait && len(q.waiting) == 0 && q.open > 0 {
		q.more.Wait()
	}
	if len(q.waiting) == 0 {
		return nil, nil
	}
	message := q.waiting[0]
	q.waiting = q.waiting[1:]
	return message, nil
}

func (q *stubbornQueue) Release(*driver.Message) bool { return true }

// The messages have different contents and one next hop.
func (*stubbornQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

func (*stubbornQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

func (*stubbornQueue) ReleaseAll(messages []*driver.Message) ([]*driver.Message, bool) {
	return messages, true
}

func (q *stubbornQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, message := range messages {
		if err := q.Report(message, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (q *stubbornQueue) Return(message *driver.Message) { q.again(message, false) }

func (q *stubbornQueue) again(message *driver.Message, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, message)
	if lost {
		q.lost++
	}
	q.more.Signal()
}

func (q *stubbornQueue) Report(message *driver.Message, o driver.Outcome) error {
	if o.Verdict == driver.Temporary || o.Verdict == driver.Lost {
		q.again(message, o.Verdict == driver.Lost)
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.Verdict == driver.Permanent {
		q.failed++
	}
	if q.open--; q.open == 0 {
		q.more.Broadcast()
	}
	return nil
}

// TestManyUnreliableConnectionsLoseNoMessage sends to a sink that refuses messages and
// drops connections at every point. Everyone who is not permanently refused gets the
// message, and only a drop between dot and reply causes a duplicate.
func TestManyUnreliableConnectionsLoseNoMessage(t *testing.T) {
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
		drv := New(patient(addr.String()))
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
		for _, message := range all {
			if s.Seen("storm", message.To) == 0 {
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
