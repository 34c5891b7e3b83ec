package smtp

import (
	"context"
	"fmt"
	"sync"
	"testing"

	fanfare "fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// A stubbornDesk offers every letter again until it is taken or refused for good.
type stubbornDesk struct {
	mu      sync.Mutex
	waiting []*fanfare.Letter
	open    int // not settled
	lost    int
	failed  int
	more    *sync.Cond
}

func newStubbornDesk(all []*fanfare.Letter) *stubbornDesk {
	d := &stubbornDesk{waiting: all, open: len(all)}
	d.more = sync.NewCond(&d.mu)
	return d
}

func (d *stubbornDesk) Next(_ context.Context, wait bool) (*fanfare.Letter, error) {
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

func (d *stubbornDesk) Release(*fanfare.Letter) bool { return true }

func (d *stubbornDesk) Return(l *fanfare.Letter) { d.again(l, false) }

func (d *stubbornDesk) again(l *fanfare.Letter, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, l)
	if lost {
		d.lost++
	}
	d.more.Signal()
}

func (d *stubbornDesk) Report(l *fanfare.Letter, o fanfare.Outcome) error {
	if o.Verdict == fanfare.Temporary || o.Verdict == fanfare.Lost {
		d.again(l, o.Verdict == fanfare.Lost)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Verdict == fanfare.Permanent {
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
		all := make([]*fanfare.Letter, people)
		for i := range all {
			all[i] = &fanfare.Letter{From: "s@x", To: fmt.Sprintf("p%d@x", i), Body: []byte("X-Fanfare-Event: storm\r\n\r\nhello\r\n")}
		}
		desk := newStubbornDesk(append([]*fanfare.Letter(nil), all...))
		driver := New(short(addr.String()))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for driver.Serve(t.Context(), desk) != nil { // a lost connection: open another
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
		if missing != desk.failed || desk.open != 0 {
			t.Errorf("%s: %d have nothing, %d were refused for good; %+v", at, missing, desk.failed, got)
		}
		if got.Duplicates != got.DroppedBeforeReply || int64(desk.lost) != got.DroppedBeforeReply+got.DroppedInData {
			t.Errorf("%s: %d lost, %+v", at, desk.lost, got)
		}
		if s := driver.Status(); s.Mode != Grouped {
			t.Errorf("%s: %+v", at, s)
		}
	}
}
