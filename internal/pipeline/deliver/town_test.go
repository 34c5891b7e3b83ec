package deliver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// town is an outlet with many destinations, each of which behaves in its own way,
// and with what is put off or retried coming back when it is due.
type town struct {
	*bench
	behave func(destination string, now time.Time) reply

	mu       sync.Mutex
	messages map[fanfare.DeliveryRef]string // to whom
	tries    map[string][]time.Time
	accepted map[string]int
	underway map[string]int
	most     map[string]int
}

// reply is how a destination answers, and after how long.
type reply struct {
	after   time.Duration
	outcome driver.Outcome
}

var taken = driver.Outcome{Verdict: driver.Accepted, Code: 250}

func refusing(class fanfare.Class) driver.Outcome {
	return driver.Outcome{Verdict: driver.Temporary, Code: 450, Text: "not now", Class: class}
}

func newTown(t testing.TB, s Settings, behave func(destination string, now time.Time) reply) *town {
	w := &town{
		behave: behave, messages: map[fanfare.DeliveryRef]string{}, tries: map[string][]time.Time{},
		accepted: map[string]int{}, underway: map[string]int{}, most: map[string]int{},
	}
	s.Relays[0].Driver = driverFunc(w.serve)
	w.bench = newBench(t, gateFunc(open), s)
	return w
}

func (w *town) serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		if !queue.Release(message) {
			continue
		}
		now := time.Now()
		w.mu.Lock()
		to := w.messages[message.Delivery]
		w.tries[to] = append(w.tries[to], now)
		w.underway[to]++
		w.most[to] = max(w.most[to], w.underway[to])
		w.mu.Unlock()
		answer := w.behave(to, now)
		select {
		case <-time.After(answer.after):
		case <-ctx.Done(): // awaited all the same
			<-time.After(answer.after - time.Since(now))
		}
		answer.outcome.At = time.Now()
		w.mu.Lock()
		w.underway[to]--
		if answer.outcome.Verdict == driver.Accepted {
			w.accepted[to]++
		}
		w.mu.Unlock()
		if err := queue.Report(message, answer.outcome); err != nil {
			return err
		}
	}
}

// send submits one batch of messages.
func (w *town) send(lane fanfare.Lane, to []string) *Batch {
	batch := w.batch(lane, len(to))
	w.mu.Lock()
	for i := range batch.Jobs {
		batch.Jobs[i].Destination = to[i]
		w.messages[batch.Jobs[i].Message.Delivery] = to[i]
	}
	w.mu.Unlock()
	w.Submit(batch)
	return batch
}

// work hands messages in as a dispatch loop does, and hands those in again that
// were put off or are to be retried, until a time has passed. It returns the
// messages that there was no room for.
func (w *town) work(to []string, span time.Duration) []string {
	end := time.Now().Add(span)
	for len(to) > 0 && time.Now().Before(end) {
		n := min(len(to), 100)
		if w.Status().Queued < 500 {
			w.send(fanfare.Bulk, to[:n])
			to = to[n:]
			continue
		}
		<-time.After(5 * time.Millisecond)
		w.comeBack()
	}
	for time.Now().Before(end) {
		<-time.After(100 * time.Millisecond)
		w.comeBack()
	}
	synctest.Wait() // for what happens at this very instant
	return to
}

// comeBack submits what is due.
func (w *town) comeBack() {
	w.book.mu.Lock()
	var due, later []fanfare.Due
	for _, d := range w.book.dues {
		if d.At.After(time.Now()) {
			later = append(later, d)
		} else {
			due = append(due, d)
		}
	}
	w.book.dues = later
	w.book.mu.Unlock()
	if len(due) == 0 {
		return
	}
	batch := w.batch(fanfare.Bulk, len(due))
	w.mu.Lock()
	for i := range batch.Jobs {
		job, d := &batch.Jobs[i], due[i]
		job.Message.Delivery.Position, job.Attempt = d.Slice.Positions[0], d.Slice.Attempt
		job.Destination = w.messages[job.Message.Delivery]
	}
	w.mu.Unlock()
	w.Submit(batch)
}

// taken counts what destinations took for which of is true.
func (w *town) took(of func(string) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for to, taken := range w.accepted {
		if of(to) {
			n += taken
		}
	}
	return n
}

// shuffled is so many messages to each, in random order.
func shuffled(each int, to ...string) []string {
	var all []string
	for range each {
		all = append(all, to...)
	}
	random := rand.New(rand.NewPCG(5, 5))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func named(kind string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d.example", kind, i)
	}
	return names
}
