package deliver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// randomDriver breaks the contract of drivers in random ways.
type randomDriver struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

func (w *randomDriver) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return n - 1
	}
	return w.random.IntN(n)
}

var errRandom = errors.New("wild")

func (w *randomDriver) Serve(ctx context.Context, queue driver.Queue) error {
	if w.roll(6) == 0 {
		return errRandom
	}
	var hand []*driver.Message
	for {
		message, err := queue.Next(ctx, len(hand) == 0 && w.roll(4) > 0)
		if err != nil || message == nil && len(hand) == 0 {
			return err
		}
		if message != nil {
			hand = append(hand, message)
		}
		if message != nil && len(hand) < 3 && w.roll(3) == 0 {
			continue // takes another message first
		}
		message, hand = hand[0], hand[1:]
		switch w.roll(20) {
		case 0:
			panic("with messages in hand")
		case 1:
			return nil // forgets them
		case 2:
			queue.Return(message)
			continue
		case 3, 4:
			said := driver.Outcome{Verdict: driver.Temporary, Class: fanfare.Classes[w.roll(len(fanfare.Classes))]}
			if queue.Failover(message, said) {
				continue
			}
		}
		if w.roll(3) == 0 {
			if err, on := w.together(ctx, queue, message); !on {
				return err
			}
			continue
		}
		if !queue.Release(message) {
			continue
		}
		select {
		case <-time.After(time.Duration(w.roll(1000)) * time.Millisecond):
		case <-ctx.Done():
		}
		switch w.roll(20) {
		case 0:
			panic("with a message on the wire")
		case 1:
			return errRandom
		case 2:
			queue.Return(message) // too late
		case 3:
			queue.Release(message) // a second time
		case 4:
			if queue.Failover(message, driver.Outcome{Verdict: driver.Temporary, Class: fanfare.ClassBusy}) {
				panic("what is on the wire was passed on")
			}
		}
		verdict := driver.Verdict((w.roll(8) + 1) % 4) // mostly Accepted if calm
		outcome := driver.Outcome{Verdict: verdict, At: time.Now()}
		if verdict != driver.Accepted && w.roll(2) == 0 {
			outcome.Class = fanfare.Classes[w.roll(len(fanfare.Classes))]
			outcome.RetryAfter = time.Duration(w.roll(3)) * time.Second
		}
		if err := queue.Report(message, outcome); err != nil {
			return err
		}
		if verdict == driver.Lost {
			return errRandom
		}
	}
}

// together sends a message in a group, or breaks the contract with it. It reports whether
// the connection continues.
func (w *randomDriver) together(ctx context.Context, queue driver.Queue, message *driver.Message) (error, bool) {
	all := queue.TakeSameContent([]*driver.Message{message}, message, w.roll(6))
	switch w.roll(20) {
	case 0:
		panic("while holding a group")
	case 1:
		return nil, false // forgets them
	case 2:
		queue.Return(all[0])
		queue.ReleaseAll(all) // with a message of another connection
	}
	left, released := queue.ReleaseAll(all)
	if !released {
		for _, l := range left {
			queue.Return(l)
		}
		return nil, true
	}
	select {
	case <-time.After(time.Duration(w.roll(1000)) * time.Millisecond):
	case <-ctx.Done():
	}
	outcomes := make([]driver.Outcome, len(all))
	verdict := driver.Verdict((w.roll(8) + 1) % 4)
	for i, l := range all {
		outcomes[i] = driver.Outcome{Verdict: verdict, At: time.Now()}
		if w.roll(6) == 0 {
			outcomes[i].Verdict, outcomes[i].Class = driver.Temporary, fanfare.Classes[w.roll(len(fanfare.Classes))]
		}
		switch w.roll(40) {
		case 0:
			panic("with a group in flight")
		case 1:
			return errRandom, false
		case 2:
			queue.Return(l) // too late
		}
	}
	if err := queue.ReportAll(all, outcomes); err != nil || verdict == driver.Lost {
		return errors.Join(err, errRandom), false
	}
	return nil, true
}

// TestEveryBatchFinishesOnceWithExactCounts sends random batches through one to three
// relays with a random driver, while the gate and the settings change, relays are drained,
// and the sender stops at a random moment or at the end.
func TestEveryBatchFinishesOnceWithExactCounts(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runRandom(t, seed) })
		})
	}
}

func runRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &randomDriver{random: rand.New(rand.NewPCG(seed, 1))}
	var mu sync.Mutex
	decide := rand.New(rand.NewPCG(seed, 2))
	gate := func(*Job) (Decision, string) {
		mu.Lock()
		defer mu.Unlock()
		if n := decide.IntN(30); n < 4 {
			return Decision(n), "random"
		}
		return Go, ""
	}
	s := settings(w)
	for i := range random.IntN(3) {
		s.Relays = append(s.Relays, RelaySettings{Name: fmt.Sprint("relay ", i), Driver: w, Weight: random.IntN(4)})
	}
	s.Connections = len(s.Relays) + random.IntN(5)
	if random.IntN(2) == 0 {
		s.Reserve = Reserve{Urgent: random.Float64(), Normal: random.Float64()}
	}
	if random.IntN(2) == 0 {
		s.Rate = 50
	}
	s.Adapt, s.Direct = random.IntN(2) == 0, random.IntN(2) == 0
	if random.IntN(2) == 0 {
		s.Destinations.Each = DestinationLimit{Rate: float64(random.IntN(20)), Connections: random.IntN(3)}
	}
	s.Multicast = []int{0, 3, 100}[random.IntN(3)]
	if random.IntN(2) == 0 {
		s.IdleTimeout = 1000 * time.Hour // so that no ending connection hides a missing wake-up
	}
	if random.IntN(2) == 0 {
		s.Budgets = []Budget{&fakeBudget{left: random.IntN(50), until: time.Now().Add(time.Duration(random.IntN(60)) * time.Second)}}
	}
	f := newFixture(t, gateFunc(gate), s)
	if random.IntN(2) == 0 {
		rates := &fakeBroadcastRates{}
		rates.set(fanfare.EventRef{Day: 20777, Seq: fanfare.ManifestID(64).Event()}, float64(1+random.IntN(20)))
		f.options.BroadcastRates = rates
	}
	var batches []*Batch
	for range 1 + random.IntN(6) {
		batch := f.batchOf(flow(random.IntN(3)), fanfare.Lanes[random.IntN(len(fanfare.Lanes))], random.IntN(30))
		if random.IntN(10) == 0 {
			batch.LeaseEnd = time.Now
		}
		for i := range batch.Jobs {
			batch.Jobs[i].Destination = []string{"", "a", "b", "c"}[random.IntN(4)]
			batch.Jobs[i].Subscriber = fanfare.RowID(random.IntN(20))
			batch.Jobs[i].Message.SharedContent = uint64(random.IntN(3))
		}
		batches = append(batches, batch)
		f.Submit(batch)
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		switch random.IntN(10) {
		case 0, 1:
			f.Reconfigure(s)
		case 8:
			f.RecheckGate()
		case 9:
			f.SuppressSubscriber(fanfare.RowID(random.IntN(20)), "erased")
		case 2, 3:
			f.Drain(s.Relays[random.IntN(len(s.Relays))].Name, random.IntN(2) == 0)
		}
	}
	if random.IntN(2) == 0 {
		<-time.After(time.Hour)
		f.Drain(s.Relays[0].Name, false)
		w.mu.Lock()
		w.calm = true // otherwise bad luck might never end
		w.mu.Unlock()
		<-time.After(24 * time.Hour)
		for i, batch := range batches {
			if _, ok := f.resultOf(batch); !ok {
				t.Errorf("batch %d of %d jobs never ended: %+v", i, len(batch.Jobs), f.Status())
			}
		}
	}
	f.Stop()
	entries := map[fanfare.DeliveryRef]int{}
	for _, e := range f.book.all() {
		entries[e.Delivery]++
	}
	for _, due := range f.book.dues {
		if due.Slice.Attempt == 1 { // postponed, not attempted
			entries[fanfare.DeliveryRef{Day: 20777, Manifest: due.Slice.Manifest, Position: due.Slice.Positions[0]}]++
		}
	}
	for i, batch := range batches {
		end, _ := f.resultOf(batch)
		recorded := 0
		for j := range batch.Jobs {
			n := entries[batch.Jobs[j].Message.Delivery]
			if n > 1 {
				t.Errorf("job %d of batch %d was recorded or postponed %d times", j, i, n)
			}
			recorded += n
		}
		if recorded+end.held+end.unsent != len(batch.Jobs) {
			t.Errorf("batch %d of %d jobs: %d recorded or postponed, %d held, %d unsent", i, len(batch.Jobs), recorded, end.held, end.unsent)
		}
		f.mustFinish(batch, end)
	}
	if f.book.coming != 0 {
		t.Errorf("the recorder expects %d more", f.book.coming)
	}
	if f.busy != (busy{}) || len(f.waiting.lanes[0].perFlow)+len(f.waiting.lanes[1].perFlow)+len(f.waiting.lanes[2].perFlow) > 0 {
		t.Errorf("counted as busy are %v, as waiting %+v", f.busy, f.waiting.lanes)
	}
	if status := f.Status(); status.InFlight != 0 || status.Queued != 0 || status.Throttled != 0 || status.Connections != 0 {
		t.Errorf("left behind: %+v", status)
	}
}
