package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

// world is a sender behind a queue of a bus.
type world struct {
	t      *testing.T
	hops   *bus.Bus
	sender *deliver.Sender
	ahead  *readAhead
}

func newWorld(t *testing.T, driver driver.Driver) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.hops, err = bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	queue, err := w.hops.Batches(t.Context(), 1, fanfare.Bulk)
	if err != nil {
		t.Fatal(err)
	}
	w.sender = deliver.NewSender(deliver.Options{
		Channel: 1, Name: "news/email", Gate: openGate{}, Recorder: discardRecorder{}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
	}, deliver.Settings{Relays: []deliver.RelaySettings{{Name: "relay", Driver: driver, Weight: 1}}, Connections: 4, Rate: rate.Inf, SendTimeout: time.Second, IdleTimeout: time.Minute})
	w.ahead = newReadAhead(queue, w.sender, fanfare.Bulk, nil, func(_ *bus.Lease, err error) { t.Error(err) })
	t.Cleanup(func() {
		w.sender.Stop()
		if err := w.hops.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// openGate lets all messages leave.
type openGate struct{}

func (openGate) Check(*deliver.Job) (deliver.Decision, string) { return deliver.Go, "" }

// discardRecorder keeps nothing.
type discardRecorder struct{}

func (discardRecorder) Expect()                                               {}
func (discardRecorder) RecordExpected(*fanfare.Entry, *fanfare.Due) error     { return nil }
func (discardRecorder) Record(*fanfare.Entry, *fanfare.Due) error             { return nil }
func (discardRecorder) RecordGroup([]fanfare.Entry, []fanfare.Due, int) error { return nil }
func (discardRecorder) Postpone(fanfare.Day, []fanfare.Due) error             { return nil }

// publish puts batches of an event on the bus: one for each number of members.
func (w *world) publish(event fanfare.EventSeq, members ...int) {
	w.t.Helper()
	batches := make([]fanfare.Batch, len(members))
	from := uint32(0)
	for i, n := range members {
		batches[i] = fanfare.Batch{Day: 1, Channel: 1, Lane: fanfare.Bulk, Slices: []fanfare.RecipientRange{{
			Manifest: fanfare.NewManifestID(event, 0), From: from, To: from + uint32(n), Attempt: 1,
		}}}
		from += uint32(n)
	}
	if err := w.hops.Publish(w.t.Context(), batches); err != nil {
		w.t.Fatal(err)
	}
}

// awaitAhead returns when so many batches are read ahead.
func (w *world) awaitAhead(n int) {
	w.t.Helper()
	limit, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for w.ahead.waiting.Len() < n {
		lease, err := w.ahead.queue.Next(limit)
		if err != nil {
			w.t.Fatalf("%d batches came in two minutes, want %d: %v", w.ahead.waiting.Len(), n, err)
		}
		w.ahead.add(lease)
	}
}

func TestBroadcastsTakeTurns(t *testing.T) {
	w := newWorld(t, nil)
	w.publish(1, slices.Repeat([]int{fanfare.MaxBatch}, 400)...)
	w.publish(2, fanfare.MaxBatch, fanfare.MaxBatch)
	w.publish(3, plan.MinOwnBatch)
	w.publish(4, 1)
	w.awaitAhead(404)
	var order []fanfare.EventSeq
	for range 8 {
		h, err := w.ahead.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, h.batch.Slices[0].Manifest.Event())
	}
	if want := []fanfare.EventSeq{3, 4, 1, 2, 1, 2, 1, 1}; !slices.Equal(order, want) {
		t.Errorf("loaded in the order %v, want %v", order, want)
	}
	w.ahead.giveBack()
	if n := w.ahead.waiting.Len(); n != 0 {
		t.Errorf("%d batches are left after giveBack", n)
	}
	if h, err := w.ahead.next(t.Context()); err != nil || h.lease.Deliveries != 2 {
		t.Errorf("a returned batch does not come again: %+v, %v", h.lease, err)
	}
}

// A broadcast to ten million that the sender cannot take does not block those behind it.
func TestLargestBroadcastDoesNotBlockOthers(t *testing.T) {
	w := newWorld(t, stuck{})
	w.publish(1, slices.Repeat([]int{fanfare.MaxBatch}, 10_000)...)
	w.publish(2, fanfare.MaxBatch)
	h, err := w.ahead.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]deliver.Job, fanfare.MaxBatch)
	for i, ref := range h.batch.Slices[0].Deliveries(1) {
		jobs[i] = deliver.Job{Message: driver.Message{Delivery: ref}, Attempt: 1}
	}
	w.sender.Submit(&deliver.Batch{Lane: fanfare.Bulk, Flow: h.flow, Jobs: jobs, LeaseEnd: h.lease.Until, JobDone: func(*deliver.Job) {}, Finish: func(int, int) {}})
	if w.sender.HasCapacity(fanfare.Bulk, h.flow) {
		t.Fatal("the sender takes more of the first broadcast")
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if h, err = w.ahead.next(limit); err != nil || h.flow.Seq != 2 {
		t.Errorf("next is a batch of %v: %v; want one of the second broadcast", h.flow, err)
	}
}

// Random broadcasts pass through a sender while some of their batches are given back.
func TestEachMemberLeavesOnce(t *testing.T) {
	var mu sync.Mutex
	left := map[fanfare.DeliveryRef]int{}
	w := newWorld(t, reporting(func(l *driver.Message) {
		mu.Lock()
		defer mu.Unlock()
		left[l.Delivery]++
	}))
	random := rand.New(rand.NewPCG(6, 17))
	want, members := 0, []int{1, 7, plan.MinOwnBatch, 500, fanfare.MaxBatch}
	for event := range fanfare.EventSeq(60) {
		all := make([]int, 1+random.IntN(8))
		for i := range all {
			all[i] = members[random.IntN(len(members))]
			want += all[i]
		}
		w.publish(event, all...)
	}
	limit, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var settled sync.WaitGroup
	for taken := 0; taken < want; {
		h, err := w.ahead.next(limit)
		if err != nil {
			t.Fatalf("%d of %d members were handed on: %v", taken, want, err)
		}
		if random.IntN(4) == 0 {
			if err := h.lease.Later(0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		taken += h.batch.Members()
		settled.Add(1)
		jobs := make([]deliver.Job, 0, h.batch.Members())
		for _, ref := range h.batch.Slices[0].Deliveries(1) {
			jobs = append(jobs, deliver.Job{Message: driver.Message{Delivery: ref}, Attempt: 1})
		}
		w.sender.Submit(&deliver.Batch{Lane: fanfare.Bulk, Flow: h.flow, Jobs: jobs, LeaseEnd: h.lease.Until, JobDone: func(*deliver.Job) {},
			Finish: func(held, again int) {
				defer settled.Done()
				if err := h.lease.Done(); err != nil || held+again > 0 {
					t.Errorf("%d held, %d again: %v", held, again, err)
				}
			}})
	}
	settled.Wait()
	for ref, n := range left {
		if n != 1 {
			t.Errorf("%+v left %d times", ref, n)
		}
	}
	if len(left) != want {
		t.Errorf("%d members left, want %d", len(left), want)
	}
	for {
		backlog, err := w.hops.Backlog(limit)
		if err != nil {
			t.Fatalf("%+v is on the bus: %v", backlog, err)
		}
		if backlog.Batches == 0 {
			return
		}
	}
}

func TestUnreadableBatchIsReportedAndSkipped(t *testing.T) {
	w := newWorld(t, nil)
	bad := 0
	w.ahead.unreadable = func(l *bus.Lease, _ error) { bad++; _ = l.Done() }
	for _, data := range []string{"{", `{"d":1,"c":1,"l":2}`} {
		if err := w.hops.PublishBatches(t.Context(), []bus.Batch{{Channel: 1, Lane: fanfare.Bulk, Data: []byte(data)}}); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(9, 5)
	if h, err := w.ahead.next(t.Context()); err != nil || h.batch.Members() != 5 || bad != 2 {
		t.Errorf("got %+v, %v with %d unreadable batches, want 5 members behind 2", h.batch, err, bad)
	}
}

// reporting is a driver that calls a function with each message and reports it as taken.
type reporting func(*driver.Message)

func (call reporting) Serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		if !queue.Release(message) {
			continue
		}
		call(message)
		if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
			return err
		}
	}
}

// stuck is a driver that takes no message.
type stuck struct{}

func (stuck) Serve(context.Context, driver.Queue) error { return errors.New("the driver is stuck") }
