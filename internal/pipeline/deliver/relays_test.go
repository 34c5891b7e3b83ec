package deliver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// fakeRelay is a relay with adjustable behaviour.
type fakeRelay struct {
	delay  atomic.Int64 // of a reply, in nanoseconds
	gone   atomic.Bool  // it accepts no connections and drops those it has
	cut    atomic.Int64 // every so many messages one is lost; 0: none
	busy   atomic.Bool  // it refuses messages temporarily, for reasons of its own
	refuse atomic.Bool  // it refuses messages permanently
	dials  atomic.Int64
	taken  atomic.Int64
	heard  atomic.Int64 // messages that got a reply or were lost
}

var errRefused = errors.New("connection refused")

func (h *fakeRelay) Serve(ctx context.Context, queue driver.Queue) error {
	h.dials.Add(1)
	if h.gone.Load() {
		return errRefused
	}
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		if h.gone.Load() {
			queue.Return(message)
			return errRefused
		}
		said := driver.Outcome{Verdict: driver.Temporary, Code: 421, Text: "too busy", Class: fanfare.ClassBusy, At: time.Now()}
		if h.busy.Load() && queue.Failover(message, said) {
			continue
		}
		if !queue.Release(message) {
			continue
		}
		<-time.After(time.Duration(h.delay.Load()))
		outcome := driver.Outcome{Verdict: driver.Accepted, Code: 250, At: time.Now()}
		n := h.heard.Add(1)
		switch cut := h.cut.Load(); {
		case h.busy.Load():
			outcome = said
		case h.refuse.Load():
			outcome = driver.Outcome{Verdict: driver.Permanent, Code: 550, Text: "no such person", Class: fanfare.ClassInvalid, At: time.Now()}
		case h.gone.Load(), cut > 0 && n%cut == 0:
			outcome = driver.Outcome{Verdict: driver.Lost, Text: "cut off", At: time.Now()}
		default:
			h.taken.Add(1)
		}
		if err := queue.Report(message, outcome); err != nil {
			return err
		}
		if outcome.Verdict == driver.Lost {
			return errors.New("cut off")
		}
	}
}

// fakeRelays makes relays named a, b, c with weights; each message takes 100 ms.
func fakeRelays(weights ...int) ([]*fakeRelay, []RelaySettings) {
	var all []*fakeRelay
	var relays []RelaySettings
	for i, weight := range weights {
		h := &fakeRelay{}
		h.delay.Store(int64(100 * time.Millisecond))
		all = append(all, h)
		relays = append(relays, RelaySettings{Name: string(rune('a' + i)), Driver: h, Weight: weight})
	}
	return all, relays
}

func relayFixture(t testing.TB, connections int, weights ...int) (*fixture, []*fakeRelay) {
	all, relays := fakeRelays(weights...)
	s := settings(nil)
	s.Relays, s.Connections = relays, connections
	return newFixture(t, gateFunc(allowAll), s), all
}

// submitFor submits messages for a time, so that some always wait.
func (f *fixture) submitFor(d time.Duration) (all []*Batch) {
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		for f.Status().Queued < 500 {
			batch := f.batch(fanfare.Normal, 250)
			all = append(all, batch)
			f.Submit(batch)
		}
	}
	return all
}

func (f *fixture) connections() (each []int) {
	for _, r := range f.Status().Relays {
		each = append(each, r.Connections)
	}
	return each
}

func TestConnectionsAreSharedOutByWeight(t *testing.T) {
	for _, c := range []struct {
		connections int
		weights     []int
		want        []int
	}{
		{10, []int{1}, []int{10}},
		{10, []int{1, 1}, []int{5, 5}},
		{10, []int{80, 20}, []int{8, 2}},
		{50, []int{70, 20, 10}, []int{35, 10, 5}},
		{50, []int{1000, 1}, []int{49, 1}}, // a relay with a weight has a connection
		{12, []int{3, 0, 1}, []int{9, 0, 3}},
		{3, []int{5, 1, 1}, []int{1, 1, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := relayFixture(t, c.connections, c.weights...)
			f.Submit(f.batch(fanfare.Normal, 500))
			synctest.Wait()
			got := f.connections()
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Errorf("%d connections by %v: %v, want %v", c.connections, c.weights, got, c.want)
					break
				}
			}
			f.Stop()
		})
	}
}

// With few messages at a time each relay has an idle connection, and the weight decides who
// gets a message.
func TestSingleMessagesAreSharedOutByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 80, 20)
		for range 1000 {
			f.Submit(f.batch(fanfare.Normal, 1))
			<-time.After(time.Second)
		}
		if n := all[0].taken.Load(); n < 780 || n > 820 {
			t.Errorf("the relay with four fifths of the weight took %d of 1000 messages", n)
		}
		f.Stop()
	})
}

func TestOtherRelaysTakeOverWhileOneConnectionTriesADownRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 1, 1)
		f.submitFor(10 * time.Second)
		all[0].gone.Store(true)
		f.submitFor(5 * time.Minute)
		if got := f.connections(); got[1] != 9 {
			t.Errorf("connections %v while the first relay is down, want 9 at the other", got)
		}
		if status := f.Status(); status.Relays[0].State != RelayDown || status.Relays[0].LastError != errRefused.Error() || status.LastError != "" {
			t.Errorf("status %+v", status)
		}
		if n := all[0].dials.Load(); n > 60 {
			t.Errorf("the relay was dialled %d times in 5 minutes of an outage", n)
		}
		all[0].gone.Store(false)
		f.submitFor(40 * time.Second)
		if s := f.Status().Relays[0]; s.State != RelayUp || s.Connections < 1 || s.Connections > 3 {
			t.Errorf("just back: %+v, want it to begin with little", s)
		}
		f.submitFor(4 * time.Minute)
		if got := f.connections(); got[0] != 5 || got[1] != 5 {
			t.Errorf("connections %v minutes after the outage, want the configured shares", got)
		}
		for _, e := range f.book.all() {
			if e.State == fanfare.Failed || e.Attempt != 1 {
				t.Fatalf("recorded %+v", e)
			}
		}
		f.Stop()
	})
}

func TestMessagesWaitWhileAllRelaysAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 2, 1)
		all[0].gone.Store(true)
		all[1].gone.Store(true)
		batch := f.batch(fanfare.Normal, 100)
		f.Submit(batch)
		<-time.After(10 * time.Minute)
		if status := f.Status(); status.LastError == "" || status.Queued != 100 {
			t.Errorf("status %+v", status)
		}
		all[1].gone.Store(false)
		<-time.After(time.Minute)
		f.mustFinish(batch, finished{})
		if n := all[1].taken.Load(); n != 100 {
			t.Errorf("the relay that is back took %d of 100", n)
		}
		f.Stop()
	})
}

func TestSlowRelayGetsLessUntilItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 20, 1, 1)
		f.submitFor(30 * time.Second)
		if got := f.connections(); got[0] != 10 || got[1] != 10 {
			t.Fatalf("connections %v at first", got)
		}
		all[0].delay.Store(int64(5 * time.Second))
		f.submitFor(30 * time.Second)
		if got := f.connections(); got[0] > 2 {
			t.Errorf("connections %v half a minute after the first became fifty times slower", got)
		}
		all[0].delay.Store(int64(100 * time.Millisecond))
		f.submitFor(5 * time.Minute)
		if got := f.connections(); got[0] != 10 || got[1] != 10 {
			t.Errorf("connections %v minutes after it is fast again", got)
		}
		f.Stop()
	})
}

// A relay that never replies has no durations except those of the messages in flight.
func TestHangingRelayGetsLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 40, 1, 1)
		f.submitFor(10 * time.Second)
		all[0].delay.Store(int64(time.Hour))
		f.submitFor(30 * time.Second)
		if s := f.Status().Relays[0]; s.Share > 0.05 || s.State != RelayUp {
			t.Errorf("half a minute after it stopped to answer: %+v", s)
		}
		f.Stop()
	})
}

func TestSlightlySlowerRelayKeepsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 20, 1, 1)
		all[0].delay.Store(int64(180 * time.Millisecond))
		f.submitFor(time.Minute)
		if got := f.connections(); got[0] != 10 {
			t.Errorf("connections %v", got)
		}
		f.Stop()
	})
}

func TestRelayThatLosesMessagesGetsLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 20, 1, 1)
		f.submitFor(5 * time.Second)
		all[0].cut.Store(all[0].heard.Load() + 100) // the next one of these is lost
		f.submitFor(2 * time.Second)
		all[0].cut.Store(0)
		f.submitFor(10 * time.Second)
		if s := f.Status().Relays[0]; s.Errors == 0 || s.Share != 0.5 {
			t.Errorf("a single lost message: %+v", s)
		}
		all[0].cut.Store(4)
		f.submitFor(30 * time.Second)
		if s := f.Status().Relays[0]; s.Share > 0.35 {
			t.Errorf("a relay that loses one message in four: %+v", s)
		}
		f.Stop()
	})
}

// The connections of a channel are a number for each node. A node does not take those of another one whose relay is down.
func TestANodeKeepsItsShareOfTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, relays := fakeRelays(1, 1)
		s := settings(nil)
		relays[1].Name, relays[1].Node = relays[0].Name, "b"
		s.Relays, s.Connections = relays, 10
		f := newFixture(t, gateFunc(allowAll), s)
		f.submitFor(5 * time.Second)
		if got := f.connections(); got[0] != 5 || got[1] != 5 {
			t.Errorf("connections %v at first", got)
		}
		all[1].gone.Store(true)
		for range 20 {
			f.submitFor(time.Second)
			if got := f.connections(); got[0] != 5 {
				t.Errorf("connections %v while the relay of one node is down", got)
				break
			}
		}
		f.Stop()
	})
}

// A node is lost while all its connections wait for replies. Until they have certainly ended, this server opens its own connections.
func TestConnectionsOfALostNodeTakeNoSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 4
		s := settings(answering(acceptAll))
		s.Connections = each
		silent := make(chan struct{})
		stuck := driverFunc(func(ctx context.Context, queue driver.Queue) error {
			message, err := queue.Next(ctx, true)
			if message != nil && queue.Release(message) {
				<-silent
				return errors.New("the link is lost")
			}
			return err
		})
		there := s.Relays
		s.Relays = []RelaySettings{{Name: "relay:25", Node: "two", Driver: stuck, Weight: 1}}
		f := newFixture(t, gateFunc(allowAll), s)
		held := f.batch(fanfare.Bulk, each)
		f.Submit(held)
		synctest.Wait()
		f.SetRelays(there, each)
		batches := []*Batch{f.batch(fanfare.Urgent, 3), f.batch(fanfare.Bulk, 3)}
		for _, b := range batches {
			f.Submit(b)
		}
		synctest.Wait()
		for _, b := range batches {
			f.mustFinish(b, finished{})
		}
		if n := f.Status().Connections; n > each {
			t.Errorf("%d connections are counted", n)
		}
		close(silent)
		<-time.After(time.Hour)
		f.mustFinish(held, finished{})
		f.Stop()
		if n := f.Status().Connections; n != 0 || f.busy != (busy{}) {
			t.Errorf("at the end, %d connections are counted, busy: %+v", n, f.busy)
		}
	})
}
