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

type driverFunc func(ctx context.Context, queue driver.Queue) error

func (f driverFunc) Serve(ctx context.Context, queue driver.Queue) error { return f(ctx, queue) }

// answering returns a driver that sends every message and gets the verdict from a function.
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

func acceptAll(*driver.Message) driver.Verdict { return driver.Accepted }

type gateFunc func(*Job) (Decision, string)

func (f gateFunc) Check(job *Job) (Decision, string) { return f(job) }

func allowAll(*Job) (Decision, string) { return Go, "" }

// fakeRecorder is a recorder in memory.
type fakeRecorder struct {
	mu      sync.Mutex
	entries []fanfare.Entry
	dues    []fanfare.Due
	coming  int
	refuse  error
	gone    fanfare.Day // the day for which RecordGroup fails

	postponed int // calls of Postpone
	together  int // calls of RecordGroup
}

var (
	errDayGone = errors.New("that day is gone")
	errTwoDays = errors.New("a group is of one day")
)

func (r *fakeRecorder) Expect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming++
}

func (r *fakeRecorder) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	r.mu.Lock()
	r.coming--
	r.mu.Unlock()
	return r.Record(entry, due)
}

func (r *fakeRecorder) RecordGroup(entries []fanfare.Entry, dues []fanfare.Due, expected int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming -= expected
	if r.refuse != nil {
		return r.refuse
	}
	if entries[0].Delivery.Day == r.gone && r.gone != 0 {
		return errDayGone
	}
	for _, e := range entries {
		if e.Delivery.Day != entries[0].Delivery.Day {
			return errTwoDays
		}
	}
	r.entries = append(r.entries, entries...)
	r.dues = append(r.dues, dues...)
	r.together++
	return nil
}

func (r *fakeRecorder) Record(entry *fanfare.Entry, due *fanfare.Due) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	r.entries = append(r.entries, *entry)
	if due != nil {
		r.dues = append(r.dues, *due)
	}
	return nil
}

func (r *fakeRecorder) Postpone(_ fanfare.Day, dues []fanfare.Due) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	r.dues = append(r.dues, dues...)
	r.postponed++
	return nil
}

// all returns the entries recorded so far.
func (r *fakeRecorder) all() []fanfare.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// states counts the entries recorded so far by state.
func (r *fakeRecorder) states() map[fanfare.State]int {
	counts := map[fanfare.State]int{}
	for _, e := range r.all() {
		counts[e.State]++
	}
	return counts
}

// fixture is a sender with fake dependencies.
type fixture struct {
	*Sender
	t    testing.TB
	book *fakeRecorder

	mu       sync.Mutex
	next     uint32
	finished map[*Batch][]finished
	left     map[fanfare.DeliveryRef]int
}

type finished struct{ held, unsent int }

func rateLimit(perSecond float64) rate.Limit { return rate.Limit(perSecond) }

func settings(driver driver.Driver) Settings {
	return Settings{
		Relays: relaysOf(driver), Connections: 4, Rate: rate.Inf, Retry: Retry{time.Second, time.Second},
		SendTimeout: time.Minute, IdleTimeout: 30 * time.Second,
	}
}

func relaysOf(driver driver.Driver) []RelaySettings {
	return []RelaySettings{{Name: "relay:25", Driver: driver, Weight: 1}}
}

func newFixture(t testing.TB, gate Gate, s Settings) *fixture {
	f := &fixture{t: t, book: &fakeRecorder{}, finished: map[*Batch][]finished{}, left: map[fanfare.DeliveryRef]int{}}
	f.Sender = NewSender(Options{
		Channel: 7, Name: "news/email", Gate: gate, Recorder: f.book, Clock: clock.System{},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, s)
	return f
}

// batch makes a batch of n jobs; positions continue over all batches.
func (f *fixture) batch(lane fanfare.Lane, n int) *Batch { return f.batchOf(Flow{}, lane, n) }

// batchOf makes a batch of one flow.
func (f *fixture) batchOf(flow Flow, lane fanfare.Lane, n int) *Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := &Batch{Lane: lane, Flow: flow, Jobs: make([]Job, n), LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) }}
	for i := range batch.Jobs {
		ref := fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: f.next}
		batch.Jobs[i] = Job{
			Message:       driver.Message{Delivery: ref, To: fmt.Sprintf("p%d@example.org", f.next)},
			Subscriptions: []fanfare.RowID{fanfare.RowID(f.next)}, Attempt: 1,
		}
		f.next++
	}
	batch.JobDone = func(job *Job) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left[job.Message.Delivery]++
	}
	batch.Finish = func(held, again int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.finished[batch] = append(f.finished[batch], finished{held, again})
	}
	return batch
}

// resultOf returns how a batch finished, and checks that it finished once.
func (f *fixture) resultOf(batch *Batch) (finished, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	endings := f.finished[batch]
	if len(endings) > 1 {
		f.t.Errorf("a batch was finished %d times: %v", len(endings), endings)
	}
	if len(endings) == 0 {
		return finished{}, false
	}
	return endings[0], true
}

// mustFinish checks how a batch finished, and that JobDone was called once per job.
func (f *fixture) mustFinish(batch *Batch, want finished) {
	f.t.Helper()
	if got, ok := f.resultOf(batch); !ok || got != want {
		f.t.Errorf("the batch finished with %+v (%v), want %+v", got, ok, want)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range batch.Jobs {
		if n := f.left[batch.Jobs[i].Message.Delivery]; n != 1 {
			f.t.Errorf("JobDone was called %[2]d times for job %[1]d", i, n)
		}
	}
}

// simulation is a sender with many destinations of different behaviour. Postponed and
// deferred jobs are submitted again when they are due.
type simulation struct {
	*fixture
	behave func(destination string, now time.Time) reply

	mu       sync.Mutex
	replies  int
	messages map[fanfare.DeliveryRef]string // destination of each
	tries    map[string][]time.Time
	accepted map[string]int
	underway map[string]int
	most     map[string]int
}

// reply is the reply of a destination and its delay.
type reply struct {
	after   time.Duration
	outcome driver.Outcome
}

var accepted = driver.Outcome{Verdict: driver.Accepted, Code: 250}

func refusing(class fanfare.Class) driver.Outcome {
	return driver.Outcome{Verdict: driver.Temporary, Code: 450, Text: "not now", Class: class}
}

func newSimulation(t testing.TB, s Settings, behave func(destination string, now time.Time) reply) *simulation {
	sim := &simulation{
		behave: behave, messages: map[fanfare.DeliveryRef]string{}, tries: map[string][]time.Time{},
		accepted: map[string]int{}, underway: map[string]int{}, most: map[string]int{},
	}
	s.Relays[0].Driver = driverFunc(sim.serve)
	sim.fixture = newFixture(t, gateFunc(allowAll), s)
	return sim
}

func (sim *simulation) serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		if !queue.Release(message) {
			continue
		}
		now := time.Now()
		sim.mu.Lock()
		to := sim.messages[message.Delivery]
		sim.tries[to] = append(sim.tries[to], now)
		sim.underway[to]++
		sim.most[to] = max(sim.most[to], sim.underway[to])
		sim.replies++
		// Connections that are free at the same instant are idle until the scheduler runs each of them.
		apart := time.Duration(sim.replies%1009) * 100 * time.Nanosecond
		sim.mu.Unlock()
		answer := sim.behave(to, now)
		answer.after += apart
		select {
		case <-time.After(answer.after):
		case <-ctx.Done(): // the reply is awaited all the same
			<-time.After(answer.after - time.Since(now))
		}
		answer.outcome.At = time.Now()
		sim.mu.Lock()
		sim.underway[to]--
		if answer.outcome.Verdict == driver.Accepted {
			sim.accepted[to]++
		}
		sim.mu.Unlock()
		if err := queue.Report(message, answer.outcome); err != nil {
			return err
		}
	}
}

// send submits one batch of messages.
func (sim *simulation) send(lane fanfare.Lane, to []string) *Batch {
	batch := sim.batch(lane, len(to))
	sim.mu.Lock()
	for i := range batch.Jobs {
		batch.Jobs[i].Destination = to[i]
		sim.messages[batch.Jobs[i].Message.Delivery] = to[i]
	}
	sim.mu.Unlock()
	sim.Submit(batch)
	return batch
}

// sendFor submits messages as the dispatch stage does, and submits postponed and deferred
// ones again, for a time. It returns the messages for which there was no capacity.
func (sim *simulation) sendFor(to []string, span time.Duration) []string {
	end := time.Now().Add(span)
	for len(to) > 0 && time.Now().Before(end) {
		n := min(len(to), 100)
		if sim.Status().Queued < 500 {
			sim.send(fanfare.Bulk, to[:n])
			to = to[n:]
			continue
		}
		<-time.After(5 * time.Millisecond)
		sim.resubmitDue()
	}
	for time.Now().Before(end) {
		<-time.After(100 * time.Millisecond)
		sim.resubmitDue()
	}
	synctest.Wait() // for events at this instant
	return to
}

// resubmitDue submits the jobs that are due.
func (sim *simulation) resubmitDue() {
	sim.book.mu.Lock()
	var due, later []fanfare.Due
	for _, d := range sim.book.dues {
		if d.At.After(time.Now()) {
			later = append(later, d)
		} else {
			due = append(due, d)
		}
	}
	sim.book.dues = later
	sim.book.mu.Unlock()
	if len(due) == 0 {
		return
	}
	batch := sim.batch(fanfare.Bulk, len(due))
	sim.mu.Lock()
	for i := range batch.Jobs {
		job, d := &batch.Jobs[i], due[i]
		job.Message.Delivery.Position, job.Attempt = d.Slice.Positions[0], d.Slice.Attempt
		job.Destination = sim.messages[job.Message.Delivery]
	}
	sim.mu.Unlock()
	sim.Submit(batch)
}

// count counts the accepted messages of the destinations for which of returns true.
func (sim *simulation) count(of func(string) bool) int {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	n := 0
	for to, taken := range sim.accepted {
		if of(to) {
			n += taken
		}
	}
	return n
}

// shuffled returns so many messages to each destination, in random order.
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
