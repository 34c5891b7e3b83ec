package server

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

// way is an outlet behind a queue of a bus.
type way struct {
	t      *testing.T
	hops   *bus.Bus
	outlet *deliver.Sender
	turns  *turns
}

func newWay(t *testing.T, driver driver.Driver) *way {
	t.Helper()
	w := &way{t: t}
	var err error
	if w.hops, err = bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	queue, err := w.hops.Batches(t.Context(), 1, fanfare.Bulk)
	if err != nil {
		t.Fatal(err)
	}
	w.outlet = deliver.NewSender(deliver.Options{
		Channel: 1, Name: "news/email", Gate: pass{}, Recorder: forgetful{}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
	}, deliver.Settings{Relays: []deliver.RelaySettings{{Name: "relay", Driver: driver, Weight: 1}}, Connections: 4, Rate: rate.Inf, SendTimeout: time.Second, IdleTimeout: time.Minute})
	w.turns = newTurns(queue, w.outlet, fanfare.Bulk, func(_ *bus.Lease, err error) { t.Error(err) })
	t.Cleanup(func() {
		w.outlet.Stop()
		if err := w.hops.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// pass lets everything go.
type pass struct{}

func (pass) Check(*deliver.Job) (deliver.Decision, string) { return deliver.Go, "" }

// forgetful keeps nothing.
type forgetful struct{}

func (forgetful) Expect()                                               {}
func (forgetful) RecordExpected(*fanfare.Entry, *fanfare.Due) error     { return nil }
func (forgetful) Record(*fanfare.Entry, *fanfare.Due) error             { return nil }
func (forgetful) RecordGroup([]fanfare.Entry, []fanfare.Due, int) error { return nil }
func (forgetful) Postpone(fanfare.Day, []fanfare.Due) error             { return nil }

// publish puts batches of an event on the bus: one for each number of members.
func (w *way) publish(event fanfare.EventSeq, members ...int) {
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
func (w *way) awaitAhead(n int) {
	w.t.Helper()
	limit, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for w.turns.waiting.Len() < n {
		lease, err := w.turns.queue.Next(limit)
		if err != nil {
			w.t.Fatalf("%d batches came in two minutes, want %d: %v", w.turns.waiting.Len(), n, err)
		}
		w.turns.take(lease)
	}
}

func TestABroadcastIsLoadedInTurnHoweverMuchWaitsBeforeIt(t *testing.T) {
	w := newWay(t, nil)
	w.publish(1, slices.Repeat([]int{fanfare.MaxBatch}, 400)...)
	w.publish(2, fanfare.MaxBatch)
	w.publish(3, plan.Small)
	w.publish(4, 1)
	w.awaitAhead(404)
	var order []fanfare.EventSeq
	for range 8 {
		h, err := w.turns.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, h.batch.Slices[0].Manifest.Event())
	}
	if want := []fanfare.EventSeq{3, 4, 1, 2, 1, 2, 1, 1}; !slices.Equal(order, want) {
		t.Errorf("loaded in the order %v, want %v", order, want)
	}
	w.turns.giveBack()
	if n := w.turns.waiting.Len(); n != 0 {
		t.Errorf("%d are still there after they were given back", n)
	}
	if h, err := w.turns.next(t.Context()); err != nil || h.lease.Deliveries != 2 {
		t.Errorf("what was given back does not come again: %+v, %v", h.lease, err)
	}
}

// A broadcast to ten million for which there is no room, as it may leave only slowly,
// keeps nobody behind it from leaving.
func TestTheLargestBroadcastHidesNothingBehindIt(t *testing.T) {
	w := newWay(t, stuck{})
	w.publish(1, slices.Repeat([]int{fanfare.MaxBatch}, 10_000)...)
	w.publish(2, fanfare.MaxBatch)
	h, err := w.turns.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]deliver.Job, fanfare.MaxBatch)
	for i, ref := range h.batch.Slices[0].Deliveries(1) {
		jobs[i] = deliver.Job{Message: driver.Message{Delivery: ref}, Attempt: 1}
	}
	w.outlet.Submit(&deliver.Batch{Lane: fanfare.Bulk, Flow: h.flow, Jobs: jobs, LeaseEnd: h.lease.Until, JobDone: func(*deliver.Job) {}, Finish: func(int, int) {}})
	if w.outlet.HasRoom(fanfare.Bulk, h.flow) {
		t.Fatal("there is room for more of the first broadcast")
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if h, err = w.turns.next(limit); err != nil || h.flow.Seq != 2 {
		t.Errorf("next is a batch of %v: %v; want one of the second broadcast", h.flow, err)
	}
}

// TestEachMemberLeavesOnceWhateverWaitsBesideIt has random broadcasts, some of
// whose batches are given back, on their way through an outlet.
func TestEachMemberLeavesOnceWhateverWaitsBesideIt(t *testing.T) {
	var mu sync.Mutex
	left := map[fanfare.DeliveryRef]int{}
	w := newWay(t, telling(func(l *driver.Message) {
		mu.Lock()
		defer mu.Unlock()
		left[l.Delivery]++
	}))
	random := rand.New(rand.NewPCG(6, 17))
	want, members := 0, []int{1, 7, plan.Small, 500, fanfare.MaxBatch}
	for event := range fanfare.EventSeq(60) {
		all := make([]int, 1+random.IntN(8))
		for i := range all {
			all[i] = members[random.IntN(len(members))]
			want += all[i]
		}
		w.publish(event, all...)
	}
	limit, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var settled sync.WaitGroup
	for taken := 0; taken < want; {
		h, err := w.turns.next(limit)
		if err != nil {
			t.Fatalf("%d of %d members were handed on in 60 s: %v", taken, want, err)
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
		w.outlet.Submit(&deliver.Batch{Lane: fanfare.Bulk, Flow: h.flow, Jobs: jobs, LeaseEnd: h.lease.Until, JobDone: func(*deliver.Job) {},
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

func TestABatchThatCannotBeReadIsToldAndTheOthersGoOn(t *testing.T) {
	w := newWay(t, nil)
	bad := 0
	w.turns.bad = func(l *bus.Lease, _ error) { bad++; _ = l.Done() }
	for _, data := range []string{"{", `{"d":1,"c":1,"l":2}`} {
		if err := w.hops.PublishBatches(t.Context(), []bus.Batch{{Channel: 1, Lane: fanfare.Bulk, Data: []byte(data)}}); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(9, 5)
	if h, err := w.turns.next(t.Context()); err != nil || h.batch.Members() != 5 || bad != 2 {
		t.Errorf("got %+v, %v with %d bad ones told, want 5 members behind 2 bad ones", h.batch, err, bad)
	}
}

// telling is a driver that tells of each letter and has it taken.
type telling func(*driver.Message)

func (tell telling) Serve(ctx context.Context, desk driver.Queue) error {
	for {
		letter, err := desk.Next(ctx, true)
		if letter == nil {
			return err
		}
		if !desk.Release(letter) {
			continue
		}
		tell(letter)
		if err := desk.Report(letter, driver.Outcome{Verdict: driver.Accepted, At: time.Now()}); err != nil {
			return err
		}
	}
}

// stuck is a driver that takes no message.
type stuck struct{}

func (stuck) Serve(context.Context, driver.Queue) error { return errors.New("the driver is stuck") }
