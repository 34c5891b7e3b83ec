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

// wild is a driver that does whatever a driver can do wrong.
type wild struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

func (w *wild) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return n - 1
	}
	return w.random.IntN(n)
}

var errWild = errors.New("wild")

func (w *wild) Serve(ctx context.Context, queue driver.Queue) error {
	if w.roll(6) == 0 {
		return errWild
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
			continue // takes one more before it goes on
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
			if err, on := w.together(ctx, queue.(driver.Queue), message); !on {
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
			return errWild
		case 2:
			queue.Return(message) // too late
		case 3:
			queue.Release(message) // once more
		case 4:
			if queue.Failover(message, driver.Outcome{Verdict: driver.Temporary, Class: fanfare.ClassBusy}) {
				panic("what is on the wire was passed on")
			}
		}
		verdict := driver.Verdict((w.roll(8) + 1) % 4) // mostly what a calm one says: taken
		outcome := driver.Outcome{Verdict: verdict, At: time.Now()}
		if verdict != driver.Accepted && w.roll(2) == 0 {
			outcome.Class = fanfare.Classes[w.roll(len(fanfare.Classes))]
			outcome.RetryAfter = time.Duration(w.roll(3)) * time.Second
		}
		if err := queue.Report(message, outcome); err != nil {
			return err
		}
		if verdict == driver.Lost {
			return errWild
		}
	}
}

// together sends a message with companions, or does with them what is wrong. It
// reports whether the connection goes on.
func (w *wild) together(ctx context.Context, queue driver.Queue, message *driver.Message) (error, bool) {
	all := queue.TakeSameContent([]*driver.Message{message}, message, w.roll(6))
	switch w.roll(20) {
	case 0:
		panic("with companions in hand")
	case 1:
		return nil, false // forgets them
	case 2:
		queue.Return(all[0])
		queue.ReleaseAll(all) // with one that is not its own
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
			panic("with companions on the wire")
		case 1:
			return errWild, false
		case 2:
			queue.Return(l) // too late
		}
	}
	if err := queue.ReportAll(all, outcomes); err != nil || verdict == driver.Lost {
		return errors.Join(err, errWild), false
	}
	return nil, true
}

// TestEveryBatchEndsOnceWithTheRightCountsWhateverADriverDoes runs random
// batches through one to three relays with a random driver, with a gate that changes its mind, settings
// that change, relays that are drained, and a stop at a random moment or at the end.
func TestEveryBatchEndsOnceWithTheRightCountsWhateverADriverDoes(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wildRun(t, seed) })
		})
	}
}

func wildRun(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &wild{random: rand.New(rand.NewPCG(seed, 1))}
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
		s.IdleTimeout = 1000 * time.Hour // whose wake-up is missed is not helped by a connection that ends
	}
	if random.IntN(2) == 0 {
		s.Budgets = []Budget{&allowance{left: random.IntN(50), until: time.Now().Add(time.Duration(random.IntN(60)) * time.Second)}}
	}
	b := newBench(t, gateFunc(gate), s)
	if random.IntN(2) == 0 {
		rates := &flowRates{}
		rates.set(fanfare.EventRef{Day: 20777, Seq: fanfare.ManifestID(64).Event()}, float64(1+random.IntN(20)))
		b.options.BroadcastRates = rates
	}
	var batches []*Batch
	for range 1 + random.IntN(6) {
		batch := b.batchOf(flow(random.IntN(3)), fanfare.Lanes[random.IntN(len(fanfare.Lanes))], random.IntN(30))
		if random.IntN(10) == 0 {
			batch.LeaseEnd = time.Now
		}
		for i := range batch.Jobs {
			batch.Jobs[i].Destination = []string{"", "a", "b", "c"}[random.IntN(4)]
			batch.Jobs[i].Subscriber = fanfare.RowID(random.IntN(20))
			batch.Jobs[i].Message.SharedContent = uint64(random.IntN(3))
		}
		batches = append(batches, batch)
		b.Submit(batch)
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		switch random.IntN(10) {
		case 0, 1:
			b.Reconfigure(s)
		case 8:
			b.RecheckGate()
		case 9:
			b.SuppressSubscriber(fanfare.RowID(random.IntN(20)), "erased")
		case 2, 3:
			b.Drain(s.Relays[random.IntN(len(s.Relays))].Name, random.IntN(2) == 0)
		}
	}
	if random.IntN(2) == 0 {
		<-time.After(time.Hour)
		b.Drain(s.Relays[0].Name, false)
		w.mu.Lock()
		w.calm = true // or a run of bad luck never ends
		w.mu.Unlock()
		<-time.After(24 * time.Hour)
		for i, batch := range batches {
			if _, ok := b.ended(batch); !ok {
				t.Errorf("batch %d of %d jobs never ended: %+v", i, len(batch.Jobs), b.Status())
			}
		}
	}
	b.Stop()
	entries := map[fanfare.DeliveryRef]int{}
	for _, e := range b.book.all() {
		entries[e.Delivery]++
	}
	for _, due := range b.book.dues {
		if due.Slice.Attempt == 1 { // put off, not tried
			entries[fanfare.DeliveryRef{Day: 20777, Manifest: due.Slice.Manifest, Position: due.Slice.Positions[0]}]++
		}
	}
	for i, batch := range batches {
		end, _ := b.ended(batch)
		recorded := 0
		for j := range batch.Jobs {
			n := entries[batch.Jobs[j].Message.Delivery]
			if n > 1 {
				t.Errorf("job %d of batch %d was recorded or put off %d times", j, i, n)
			}
			recorded += n
		}
		if recorded+end.held+end.again != len(batch.Jobs) {
			t.Errorf("batch %d of %d jobs: %d recorded or put off, %d held, %d again", i, len(batch.Jobs), recorded, end.held, end.again)
		}
		b.mustEnd(batch, end)
	}
	if b.book.coming != 0 {
		t.Errorf("the recorder expects %d more", b.book.coming)
	}
	if b.busy != (busy{}) || len(b.waiting.lanes[0].perFlow)+len(b.waiting.lanes[1].perFlow)+len(b.waiting.lanes[2].perFlow) > 0 {
		t.Errorf("counted as busy are %v, as waiting %+v", b.busy, b.waiting.lanes)
	}
	if status := b.Status(); status.InFlight != 0 || status.Queued != 0 || status.Throttled != 0 || status.Connections != 0 {
		t.Errorf("left behind: %+v", status)
	}
}
