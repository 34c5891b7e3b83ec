package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// driverFunc is a driver of one function.
type driverFunc func(ctx context.Context, queue driver.Queue) error

func (f driverFunc) Serve(ctx context.Context, queue driver.Queue) error { return f(ctx, queue) }

// answering is a driver that takes every message and answers by a function.
func answering(answer func(*driver.Message) driver.Verdict) driverFunc {
	return func(ctx context.Context, queue driver.Queue) error {
		for {
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			if !queue.Release(message) {
				continue
			}
			outcome := driver.Outcome{Verdict: answer(message), Code: 250, Text: "said", Relay: "relay:25", At: time.Now()}
			if err := queue.Report(message, outcome); err != nil {
				return err
			}
		}
	}
}

func taking(*driver.Message) driver.Verdict { return driver.Accepted }

// gateFunc is a gate of one function.
type gateFunc func(*Job) (Decision, string)

func (f gateFunc) Check(job *Job) (Decision, string) { return f(job) }

func open(*Job) (Decision, string) { return Go, "" }

// book is a recorder in memory.
type book struct {
	mu      sync.Mutex
	entries []fanfare.Entry
	dues    []fanfare.Due
	coming  int
	refuse  error
	gone    fanfare.Day // of which nothing is kept together

	postponed int // times that work was put off
	together  int // times that several entries were recorded together
}

var (
	errDayGone = errors.New("that day is gone")
	errTwoDays = errors.New("a group is of one day")
)

func (b *book) Expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming++
}

func (b *book) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	b.mu.Lock()
	b.coming--
	b.mu.Unlock()
	return b.Record(entry, due)
}

func (b *book) RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming -= expected
	if b.refuse != nil {
		return b.refuse
	}
	if entries[0].Delivery.Day == b.gone && b.gone != 0 {
		return errDayGone
	}
	for _, e := range entries {
		if e.Delivery.Day != entries[0].Delivery.Day {
			return errTwoDays
		}
	}
	b.entries = append(b.entries, entries...)
	b.dues = append(b.dues, dues...)
	b.together++
	return nil
}

func (b *book) Record(entry *fanfare.Entry, due *fanfare.Due) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.entries = append(b.entries, *entry)
	if due != nil {
		b.dues = append(b.dues, *due)
	}
	return nil
}

func (b *book) Postpone(_ fanfare.Day, dues []fanfare.Due) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.dues = append(b.dues, dues...)
	b.postponed++
	return nil
}

// all returns what was recorded so far.
func (b *book) all() []fanfare.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries)
}

// states counts what was recorded so far by state.
func (b *book) states() map[fanfare.State]int {
	counts := map[fanfare.State]int{}
	for _, e := range b.all() {
		counts[e.State]++
	}
	return counts
}

// bench is an outlet with everything around it.
type bench struct {
	*Sender
	t    testing.TB
	book *book

	mu       sync.Mutex
	next     uint32
	finished map[*Batch][]ending
	left     map[fanfare.DeliveryRef]int
}

type ending struct{ held, again int }

func rateLimit(perSecond float64) rate.Limit { return rate.Limit(perSecond) }

func settings(driver driver.Driver) Settings {
	return Settings{
		Relays: relaysOf(driver), Connections: 4, Rate: rate.Inf, Retry: Retry{time.Second, time.Second},
		SendTimeout: time.Minute, IdleTimeout: 30 * time.Second,
	}
}

// relaysOf is one relay.
func relaysOf(driver driver.Driver) []RelaySettings {
	return []RelaySettings{{Name: "relay:25", Driver: driver, Weight: 1}}
}

func newBench(t testing.TB, gate Gate, s Settings) *bench {
	b := &bench{t: t, book: &book{}, finished: map[*Batch][]ending{}, left: map[fanfare.DeliveryRef]int{}}
	b.Sender = NewSender(Options{
		Channel: 7, Name: "news/email", Gate: gate, Recorder: b.book, Clock: clock.System{},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, s)
	return b
}

// batch makes a batch of n jobs with positions that count through the bench.
func (b *bench) batch(lane fanfare.Lane, n int) *Batch { return b.batchOf(Flow{}, lane, n) }

// batchOf is batch for one of several flows.
func (b *bench) batchOf(flow Flow, lane fanfare.Lane, n int) *Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := &Batch{Lane: lane, Flow: flow, Jobs: make([]Job, n), LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) }}
	for i := range batch.Jobs {
		ref := fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: b.next}
		batch.Jobs[i] = Job{
			Message:       driver.Message{Delivery: ref, To: fmt.Sprintf("p%d@example.org", b.next)},
			Subscriptions: []fanfare.RowID{fanfare.RowID(b.next)}, Attempt: 1,
		}
		b.next++
	}
	batch.JobDone = func(job *Job) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left[job.Message.Delivery]++
	}
	batch.Finish = func(held, again int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finished[batch] = append(b.finished[batch], ending{held, again})
	}
	return batch
}

// ended returns how a batch ended; more than one ending is a failure.
func (b *bench) ended(batch *Batch) (ending, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	endings := b.finished[batch]
	if len(endings) > 1 {
		b.t.Errorf("a batch was finished %d times: %v", len(endings), endings)
	}
	if len(endings) == 0 {
		return ending{}, false
	}
	return endings[0], true
}

// mustEnd checks that a batch ended once, in a way, with each job left once.
func (b *bench) mustEnd(batch *Batch, want ending) {
	b.t.Helper()
	if got, ok := b.ended(batch); !ok || got != want {
		b.t.Errorf("the batch ended with %+v (%v), want %+v", got, ok, want)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range batch.Jobs {
		if n := b.left[batch.Jobs[i].Message.Delivery]; n != 1 {
			b.t.Errorf("job %d left the outlet %d times", i, n)
		}
	}
}

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
