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

func (w *wild) Serve(ctx context.Context, desk fanfare.Desk) error {
	if w.roll(6) == 0 {
		return errWild
	}
	var hand []*fanfare.Letter
	for {
		letter, err := desk.Next(ctx, len(hand) == 0 && w.roll(4) > 0)
		if err != nil || letter == nil && len(hand) == 0 {
			return err
		}
		if letter != nil {
			hand = append(hand, letter)
		}
		if letter != nil && len(hand) < 3 && w.roll(3) == 0 {
			continue // takes one more before it goes on
		}
		letter, hand = hand[0], hand[1:]
		switch w.roll(20) {
		case 0:
			panic("with letters in hand")
		case 1:
			return nil // forgets them
		case 2:
			desk.Return(letter)
			continue
		}
		if !desk.Release(letter) {
			continue
		}
		select {
		case <-time.After(time.Duration(w.roll(1000)) * time.Millisecond):
		case <-ctx.Done():
		}
		switch w.roll(20) {
		case 0:
			panic("with a letter on the wire")
		case 1:
			return errWild
		case 2:
			desk.Return(letter) // too late
		case 3:
			desk.Release(letter) // once more
		}
		verdict := fanfare.Verdict((w.roll(8) + 1) % 4) // mostly what a calm one says: taken
		if err := desk.Report(letter, fanfare.Outcome{Verdict: verdict, At: time.Now()}); err != nil {
			return err
		}
		if verdict == fanfare.Lost {
			return errWild
		}
	}
}

// TestEveryBatchEndsOnceWithTheRightCountsWhateverADriverDoes runs random
// batches through a random driver, with a gate that changes its mind, settings
// that change, and a stop at a random moment or at the end.
func TestEveryBatchEndsOnceWithTheRightCountsWhateverADriverDoes(t *testing.T) {
	for seed := range uint64(150) {
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
	s.Connections = 1 + random.IntN(5)
	if random.IntN(2) == 0 {
		s.Rate = 50
	}
	b := newBench(t, gateFunc(gate), s)
	var batches []*Batch
	for range 1 + random.IntN(6) {
		batch := b.batch(fanfare.Lanes[random.IntN(len(fanfare.Lanes))], random.IntN(30))
		if random.IntN(10) == 0 {
			batch.Leased = time.Now
		}
		batches = append(batches, batch)
		b.Submit(batch)
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		if random.IntN(4) == 0 {
			b.Reconfigure(s)
		}
	}
	if random.IntN(2) == 0 {
		<-time.After(time.Hour)
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
	for i, batch := range batches {
		end, _ := b.ended(batch)
		recorded := 0
		for j := range batch.Jobs {
			n := entries[batch.Jobs[j].Letter.Delivery]
			if n > 1 {
				t.Errorf("job %d of batch %d was recorded %d times", j, i, n)
			}
			recorded += n
		}
		if recorded+end.held+end.again != len(batch.Jobs) {
			t.Errorf("batch %d of %d jobs: %d recorded, %d held, %d again", i, len(batch.Jobs), recorded, end.held, end.again)
		}
		b.mustEnd(batch, end)
	}
	if b.book.coming != 0 {
		t.Errorf("the recorder expects %d more", b.book.coming)
	}
	if status := b.Status(); status.OnTheWire != 0 || status.Queued != 0 || status.Connections != 0 {
		t.Errorf("left behind: %+v", status)
	}
}
