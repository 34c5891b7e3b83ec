package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
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

func (b *book) RecordTogether(entries []fanfare.Entry, dues []fanfare.Due, expected int) error {
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
	batch := &Batch{Lane: lane, Flow: flow, Jobs: make([]Job, n), Leased: func() time.Time { return time.Now().Add(time.Hour) }}
	for i := range batch.Jobs {
		ref := fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: b.next}
		batch.Jobs[i] = Job{
			Message:       driver.Message{Delivery: ref, To: fmt.Sprintf("p%d@example.org", b.next)},
			Subscriptions: []fanfare.RowID{fanfare.RowID(b.next)}, Attempt: 1,
		}
		b.next++
	}
	batch.Left = func(job *Job) {
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
