package deliver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// together returns a driver that sends each message in a group of at most most, and
// records the sizes.
func together(most int, sizes *[]int, answer func(position uint32) driver.Verdict) driverFunc {
	return func(ctx context.Context, queue driver.Queue) error {
		for {
			message, err := queue.Next(ctx, true)
			if message == nil {
				return err
			}
			c := queue
			all := c.TakeSameContent([]*driver.Message{message}, message, most-1)
			left, released := c.ReleaseAll(all)
			if !released {
				for _, l := range slices.Backward(left) {
					queue.Return(l)
				}
				continue
			}
			*sizes = append(*sizes, len(all))
			outcomes := make([]driver.Outcome, len(all))
			for i, l := range all {
				outcomes[i] = driver.Outcome{Verdict: answer(l.Delivery.Position), Code: 250, Text: "said", Relay: "relay:25", At: time.Now()}
			}
			if err := c.ReportAll(all, outcomes); err != nil {
				return err
			}
		}
	}
}

func acceptEach(uint32) driver.Verdict { return driver.Accepted }

// submitSameContent submits a batch whose jobs have these values of SharedContent.
func (f *fixture) submitSameContent(flow Flow, lane fanfare.Lane, shares ...uint64) *Batch {
	batch := f.batchOf(flow, lane, len(shares))
	for i, share := range shares {
		batch.Jobs[i].Message.SharedContent = share
	}
	return batch
}

func repeat(share uint64, n int) []uint64 { return slices.Repeat([]uint64{share}, n) }

func TestGroupHasOneContentAndOneFlow(t *testing.T) {
	for name, c := range map[string]struct {
		batches [][]uint64
		most    int
		sizes   []int
	}{
		"nobody shares":                {[][]uint64{{0, 0, 0}}, 10, []int{1, 1, 1}},
		"all share":                    {[][]uint64{repeat(5, 10)}, 100, []int{10}},
		"more than may leave together": {[][]uint64{repeat(5, 10)}, 4, []int{4, 4, 2}},
		"a share ends":                 {[][]uint64{{1, 1, 2, 2, 2, 0, 0}}, 10, []int{2, 3, 1, 1}},
		"two batches of a flow":        {[][]uint64{{7, 7}, {7, 7, 7}}, 10, []int{5}},
		"one at a time":                {[][]uint64{repeat(5, 3)}, 1, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sizes []int
				send := together(c.most, &sizes, acceptEach)
				submitted := make(chan struct{})
				s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
					<-submitted // the connection takes nothing before all batches wait
					return send(ctx, queue)
				}))
				s.Connections = 1
				f := newFixture(t, gateFunc(allowAll), s)
				var batches []*Batch
				for _, shares := range c.batches {
					batches = append(batches, f.submitSameContent(Flow{Seq: 1}, fanfare.Normal, shares...))
					f.Submit(batches[len(batches)-1])
				}
				close(submitted)
				synctest.Wait()
				for _, batch := range batches {
					f.mustFinish(batch, finished{})
				}
				f.Stop()
				if !slices.Equal(sizes, c.sizes) {
					t.Errorf("messages went to %v, want %v", sizes, c.sizes)
				}
				if f.book.coming != 0 {
					t.Errorf("%d more entries are expected", f.book.coming)
				}
			})
		})
	}
}

func TestEachMessageOfAGroupHasItsOwnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		answer := func(position uint32) driver.Verdict { return driver.Verdict(position % 4) }
		s := settings(together(100, &sizes, answer))
		s.Connections, s.Retry = 1, Retry{time.Hour}
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 40)...)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		f.Stop()
		states := [...]fanfare.State{fanfare.Accepted, fanfare.Deferred, fanfare.Failed, fanfare.Deferred}
		for _, e := range f.book.all() {
			if want := states[e.Delivery.Position%4]; e.State != want {
				t.Errorf("%s is %s, want %s", e.Delivery, e.State, want)
			}
		}
		if len(f.book.all()) != 40 || len(f.book.dues) != 20 || f.book.together != 1 {
			t.Errorf("%d entries with %d dues in %d groups, want 40 with 20 in 1", len(f.book.all()), len(f.book.dues), f.book.together)
		}
	})
}

// TestGroupIsRecordedByDay sends messages of two days together, one of which cannot be
// recorded.
func TestGroupIsRecordedByDay(t *testing.T) {
	for name, c := range map[string]struct {
		gone fanfare.Day // the day that cannot be recorded
		want map[fanfare.Day]int
	}{
		"both are kept":        {0, map[fanfare.Day]int{20776: 2, 20777: 3}},
		"the first is not":     {20776, map[fanfare.Day]int{20777: 3}},
		"the other one is not": {20777, map[fanfare.Day]int{20776: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := make(chan error, 1)
				drv := func(ctx context.Context, queue driver.Queue) error {
					var all []*driver.Message
					for message, _ := queue.Next(ctx, true); message != nil; message, _ = queue.Next(ctx, false) {
						all = append(all, message)
					}
					if len(all) == 0 {
						return nil
					}
					if _, released := queue.ReleaseAll(all); !released {
						t.Error("not released")
					}
					refused <- queue.ReportAll(all, slices.Repeat([]driver.Outcome{{Code: 250, At: time.Now()}}, len(all)))
					<-ctx.Done()
					return nil
				}
				s := settings(driverFunc(drv))
				s.Connections = 1
				f := newFixture(t, gateFunc(allowAll), s)
				f.book.gone = c.gone
				batch := f.batch(fanfare.Normal, 5)
				for i := range 2 {
					batch.Jobs[i].Message.Delivery.Day = 20776
				}
				f.Submit(batch)
				err := <-refused
				synctest.Wait()
				kept := map[fanfare.Day]int{}
				for _, e := range f.book.all() {
					kept[e.Delivery.Day]++
				}
				if !maps.Equal(kept, c.want) || (err != nil) != (c.gone != 0) {
					t.Errorf("%v were kept, and %v, want %v", kept, err, c.want)
				}
				f.mustFinish(batch, finished{unsent: 5 - len(f.book.all())})
				f.Stop()
				if f.book.coming != 0 {
					t.Errorf("%d more entries are expected", f.book.coming)
				}
			})
		})
	}
}

// TestRefusedMessageDoesNotHoldBackItsGroup has the gate refuse some messages between
// taking and release: nothing is sent then, and the others are sent without them.
func TestRefusedMessageDoesNotHoldBackItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		asked := map[uint32]int{}
		gate := func(job *Job) (Decision, string) {
			position := job.Message.Delivery.Position
			asked[position]++
			if position%5 == 3 && asked[position] == 2 {
				return Suppress, "unsubscribed"
			}
			return Go, ""
		}
		s := settings(together(100, &sizes, acceptEach))
		s.Connections = 1
		f := newFixture(t, gateFunc(gate), s)
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 20)...)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		f.Stop()
		if states := f.book.states(); states[fanfare.Accepted] != 16 || states[fanfare.Suppressed] != 4 {
			t.Errorf("recorded %v, want 16 accepted and 4 suppressed", states)
		}
		if !slices.Equal(sizes, []int{16}) {
			t.Errorf("messages went to %v, want one to 16", sizes)
		}
	})
}

func TestEachMessageOfAGroupCountsInRatesAndBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := settings(together(100, &sizes, acceptEach))
		s.Connections = 1
		s.Budgets = []Budget{&fakeBudget{left: 7, until: time.Now().Add(time.Hour)}}
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 10)...)
		f.Submit(batch)
		synctest.Wait()
		if !slices.Equal(sizes, []int{7}) {
			t.Errorf("messages went to %v, and the budget is 7", sizes)
		}
		f.Stop()
		f.mustFinish(batch, finished{unsent: 3})
	})
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := settings(together(100, &sizes, acceptEach))
		s.Connections, s.Rate = 1, 10
		f := newFixture(t, gateFunc(allowAll), s)
		start := time.Now()
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 21)...)
		done := make(chan struct{})
		finish := batch.Finish
		batch.Finish = func(held, again int) { finish(held, again); close(done) }
		f.Submit(batch)
		<-done
		if took := time.Since(start); took < 2*time.Second {
			t.Errorf("21 messages at 10 a second took %v", took)
		}
		f.Stop()
	})
}

func TestGroupCountsOnceInTheWindowOfTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := settings(together(100, &sizes, acceptEach))
		s.Connections, s.Adapt = 1, true
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 100)...)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		if !slices.Equal(sizes, []int{100}) {
			t.Errorf("messages went to %v, want one to 100", sizes)
		}
		f.Stop()
		if f.limits.active != 0 || f.limits.activeByAge.first != nil {
			t.Errorf("%d are counted as under way", f.limits.active)
		}
	})
}

// TestRefusalOfAWholeMessageCountsOnce: a relay that refuses a message with a hundred
// recipients has refused one message.
func TestRefusalOfAWholeMessageCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := settings(together(100, &sizes, func(uint32) driver.Verdict { return driver.Lost }))
		s.Connections, s.Retry = 1, Retry{time.Hour}
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.submitSameContent(Flow{}, fanfare.Normal, repeat(1, 100)...)
		for i := range batch.Jobs {
			batch.Jobs[i].Destination = fmt.Sprintf("d%d.example.org", i)
		}
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		if status := f.Status(); status.Relays[0].Errors != 1 {
			t.Errorf("%d errors of the relay are counted, want 1", status.Relays[0].Errors)
		}
		f.Stop()
	})
}

func TestSharedReplyCountsOncePerDestination(t *testing.T) {
	s := Settings{Connections: 10, Rate: rateLimit(1e9)}
	now := time.Now()
	var l limits
	l.configure(&s, now)
	batch := &Batch{}
	jobs := make([]Job, 5)
	refused := driver.Outcome{Verdict: driver.Temporary, Code: 421, Class: fanfare.ClassBusy, Text: "too busy", At: now}
	for i := range jobs {
		jobs[i] = Job{Destination: "example.org", batch: batch, grouped: i > 0, sameReply: i > 0}
		var leader *Job
		if i > 0 {
			leader = &jobs[0]
		}
		if result, _ := l.admit(&jobs[i], leader, 1, false, now); result != admitted {
			t.Fatalf("job %d: %v", i, result)
		}
	}
	for i := range jobs {
		l.learn(&jobs[i], &refused, Advice{}, time.Second, now)
	}
	d := l.destinations.known["example.org"]
	if d.refused != 5 || d.window.Size() != 10 || d.active != 0 || l.active != 0 {
		t.Errorf("%d messages were refused, the window is %d, and %d are under way; want 5, 10 after one refusal, and 0", d.refused, d.window.Size(), d.active)
	}
}

// lostLease is the lease of a node that another node has taken.
type lostLease struct{}

func (lostLease) Await(context.Context, time.Duration) bool { return false }

// A node that has lost the lease begins no body, neither of one message nor of a group.
func TestNothingIsSentWithoutTheLeaseOfTheNode(t *testing.T) {
	for name, shares := range map[string][]uint64{"single": {0, 0}, "group": repeat(1, 2)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sizes []int
				s := settings(together(10, &sizes, acceptEach))
				s.Connections = 1
				f := newFixture(t, gateFunc(allowAll), s)
				f.options.NodeLease = lostLease{}
				batch := f.submitSameContent(Flow{}, fanfare.Normal, shares...)
				f.Submit(batch)
				synctest.Wait()
				if len(sizes) > 0 {
					t.Errorf("groups of %v were sent", sizes)
				}
				f.Stop()
				f.mustFinish(batch, finished{unsent: len(shares)})
			})
		})
	}
}
