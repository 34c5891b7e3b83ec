package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestEachJobOfABatchIsSentAndRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		batch := f.batch(fanfare.Normal, 100)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		seen := map[uint32]bool{}
		for _, e := range f.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 || e.Code != 250 || e.Relay != "relay:25" || e.Address != fmt.Sprintf("p%d@example.org", e.Delivery.Position) || e.At.IsZero() {
				t.Errorf("entry %+v", e)
			}
			seen[e.Delivery.Position] = true
		}
		if len(seen) != 100 || len(f.book.all()) != 100 {
			t.Errorf("%d entries of %d deliveries, want 100 of 100", len(f.book.all()), len(seen))
		}
		f.Stop()
	})
}

func TestEmptyBatchFinishesAtOnce(t *testing.T) {
	f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
	batch := f.batch(fanfare.Bulk, 0)
	f.Submit(batch)
	f.mustFinish(batch, finished{})
	f.Stop()
}

func TestUrgentMessagesOvertakeWaitingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan struct{})
		var order []uint32
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			<-first
			order = append(order, l.Delivery.Position)
			return driver.Accepted
		}))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		f.Submit(f.batch(fanfare.Bulk, 3)) // 0 1 2, of which 0 is in flight
		synctest.Wait()
		f.Submit(f.batch(fanfare.Normal, 2)) // 3 4
		f.Submit(f.batch(fanfare.Urgent, 2)) // 5 6
		f.Submit(f.batch(fanfare.Bulk, 1))   // 7
		close(first)
		synctest.Wait()
		f.Stop()
		if want := []uint32{0, 5, 6, 3, 4, 1, 2, 7}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

func TestDeferredJobBecomesDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(func(*driver.Message) driver.Verdict { return driver.Temporary })))
		batch := f.batch(fanfare.Bulk, 1)
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		f.Stop()
		if f.book.coming != 0 {
			t.Errorf("the recorder expects %d more", f.book.coming)
		}
		entry := f.book.all()[0]
		if len(f.book.dues) != 1 || entry.State != fanfare.Deferred {
			t.Fatalf("recorded %+v with %d dues", entry, len(f.book.dues))
		}
		due := f.book.dues[0]
		ref := batch.Jobs[0].Message.Delivery
		if !due.At.Equal(entry.NextAt) || due.Channel != 7 || due.Lane != fanfare.Bulk || due.Slice.Manifest != ref.Manifest ||
			!slices.Equal(due.Slice.Positions, []uint32{ref.Position}) || due.Slice.Attempt != 2 {
			t.Errorf("due %+v of entry %+v", due, entry)
		}
	})
}

func TestJobIsReloadedIfItsOutcomeCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		f.book.refuse = errors.New("stopped")
		batch := f.batch(fanfare.Normal, 2)
		f.Submit(batch)
		<-time.After(time.Hour) // in the synctest bubble
		f.mustFinish(batch, finished{unsent: 2})
		f.Stop()
	})
}

func TestNoMessageIsReleasedUnderAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := false
		f := newFixture(t, gateFunc(allowAll), settings(answering(func(*driver.Message) driver.Verdict { sent = true; return driver.Accepted })))
		batch := f.batch(fanfare.Normal, 2)
		batch.LeaseEnd = func() time.Time { return time.Now().Add(59 * time.Second) } // a message may take a minute
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{unsent: 2})
		if sent {
			t.Error("a message left")
		}
		f.Stop()
	})
}

func TestStopReturnsTheRemainingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-reply; return driver.Accepted }))
		s.Connections = 2
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Normal, 1500)
		f.Submit(batch)
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { f.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("stopped while two messages were on the wire")
		default:
		}
		close(reply)
		<-stopped
		f.mustFinish(batch, finished{unsent: 1498})
		if got := f.book.states(); got[fanfare.Accepted] != 2 || len(got) != 1 {
			t.Errorf("recorded %v", got)
		}
		late := f.batch(fanfare.Urgent, 3)
		f.Submit(late)
		f.mustFinish(late, finished{unsent: 3})
		f.Stop()
	})
}

// TestStoppedJobsLeaveTheQueueWhileAllConnectionsAreBusy stops 2,000 jobs while each
// connection needs an hour for its message.
func TestStoppedJobsLeaveTheQueueWhileAllConnectionsAreBusy(t *testing.T) {
	for _, test := range []struct {
		stop  Decision
		state fanfare.State // Pending: none
	}{{Hold, fanfare.Pending}, {Cancel, fanfare.Cancelled}} {
		synctest.Test(t, func(t *testing.T) {
			var stopped atomic.Bool
			gate := func(job *Job) (Decision, string) {
				if stopped.Load() && job.batch.Lane == fanfare.Bulk {
					return test.stop, "stopped"
				}
				return Go, ""
			}
			slow := answering(func(*driver.Message) driver.Verdict { <-time.After(time.Hour); return driver.Accepted })
			f := newFixture(t, gateFunc(gate), settings(slow))
			first, second, other := f.batch(fanfare.Bulk, 1000), f.batch(fanfare.Bulk, 1000), f.batch(fanfare.Normal, 3)
			begun := time.Now()
			f.Submit(first)
			f.Submit(second)
			synctest.Wait()
			f.Submit(other)
			stopped.Store(true)
			f.RecheckGate()
			synctest.Wait()
			if queued := f.Status().Queued; queued != 3 || !time.Now().Equal(begun) {
				t.Errorf("%d still wait, %v later", queued, time.Since(begun))
			}
			want := finished{}
			if test.stop == Hold {
				want.held = 1000
			}
			f.mustFinish(second, want)
			if got := f.book.states()[fanfare.Cancelled]; test.state == fanfare.Cancelled && got != 1996 {
				t.Errorf("%d are cancelled, want all but the 4 on the wire", got)
			}
			<-time.After(3 * time.Hour)
			synctest.Wait()
			f.Stop()
			if got := f.book.states()[fanfare.Accepted]; got != 4+3 {
				t.Errorf("%d left, want what was on the wire and the others", got)
			}
		})
	}
}

func TestNewRateAppliesToWaitingConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(acceptAll))
		s.Rate = rateLimit(1. / 60)
		f := newFixture(t, gateFunc(allowAll), s)
		defer f.Stop()
		served := 0
		f.SetRate(s.Rate)
		f.Submit(f.batch(fanfare.Normal, 500))
		<-time.After(90 * time.Second)
		synctest.Wait()
		if served = len(f.book.all()); served > 3 {
			t.Fatalf("%d left at one a minute", served)
		}
		f.SetRate(rateLimit(100))
		<-time.After(time.Second)
		synctest.Wait()
		if got := len(f.book.all()) - served; got < 90 || got > 101 {
			t.Errorf("%d left in the second after the rate was raised to 100/s", got)
		}
		f.SetRate(rateLimit(1))
		before := len(f.book.all())
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got := len(f.book.all()) - before; got > 12 {
			t.Errorf("%d left in 10 s after it was lowered to 1/s", got)
		}
		f.SetRate(rateLimit(1e6))
		<-time.After(time.Second)
		synctest.Wait()
		if got := len(f.book.all()); got != 500 {
			t.Errorf("%d of 500 left in the end", got)
		}
	})
}

// TestRemovingThrottledJobsWakesOthers fills the capacity for throttled jobs with one
// broadcast, and pauses it.
func TestRemovingThrottledJobsWakesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Destinations = Destinations{Only: map[string]DestinationLimit{"narrow.example": {Connections: 1}}}
		sim := newSimulation(t, s, func(to string, _ time.Time) reply {
			if isHealthy(to) {
				return reply{time.Second, accepted}
			}
			return reply{time.Hour / 2, accepted}
		})
		paused := false
		sim.options.Gate = gateFunc(func(job *Job) (Decision, string) {
			if paused && job.Destination == "narrow.example" {
				return Hold, "paused"
			}
			return Go, ""
		})
		sim.send(fanfare.Bulk, shuffled(1100, "narrow.example"))
		well := sim.send(fanfare.Bulk, shuffled(20, "well.example"))
		synctest.Wait()
		paused = true
		sim.RecheckGate()
		<-time.After(15 * time.Second)
		if _, ok := sim.resultOf(well); !ok {
			t.Errorf("%d of 20 others have left 15 s after what held them up was taken out", sim.count(isHealthy))
		}
		sim.Stop()
	})
}

func TestSuppressSubscriberSettlesWithoutAddressAndKeepsOrder(t *testing.T) {
	r := &fakeRecorder{}
	s := NewSender(Options{Name: "news/email", Gate: gateFunc(allowAll), Recorder: r, Clock: clock.System{}},
		Settings{Relays: relaysOf(driverFunc(func(context.Context, driver.Queue) error { return nil })), Connections: 0, Rate: rate.Inf})
	over := make(chan struct{})
	batch := &Batch{Lane: fanfare.Normal, JobDone: func(*Job) {}, Finish: func(int, int) { close(over) }}
	for i := range 6 {
		batch.Jobs = append(batch.Jobs, Job{Subscriber: fanfare.RowID(i % 2), Attempt: 1,
			Message: driver.Message{Delivery: fanfare.DeliveryRef{Position: uint32(i)}, To: "a@example.org"}})
	}
	s.Submit(batch)
	s.SuppressSubscriber(1, "erased")
	var left []uint32
	for range s.waiting.len() {
		job := s.waiting.pop(lanes{fanfare.Urgent, fanfare.Bulk})
		left = append(left, job.Message.Delivery.Position)
		s.waiting.push(job)
	}
	if len(left) != 3 || left[0] != 0 || left[1] != 2 || left[2] != 4 {
		t.Errorf("left in the queue: %v", left)
	}
	s.Stop()
	<-over
	if len(r.entries) != 3 {
		t.Fatalf("%d entries", len(r.entries))
	}
	for _, e := range r.entries {
		if e.State != fanfare.Suppressed || e.Address != "" || e.Text != "erased" || e.Delivery.Position%2 != 1 {
			t.Errorf("recorded %+v", e)
		}
	}
}

// TestGateDecisionDeterminesTheState has the gate decide both when a job is taken and when
// it is released.
func TestGateDecisionDeterminesTheState(t *testing.T) {
	past := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // the synctest clock begins in 2000
	for _, at := range []string{"when taken", "when released"} {
		for _, c := range []struct {
			name     string
			decision Decision
			expires  time.Time
			state    fanfare.State // Pending: no entry
			ending   finished
		}{
			{name: "go", decision: Go, state: fanfare.Accepted},
			{name: "hold", decision: Hold, state: fanfare.Pending, ending: finished{held: 3}},
			{name: "reload", decision: Reload, state: fanfare.Pending, ending: finished{unsent: 3}},
			{name: "cancel", decision: Cancel, state: fanfare.Cancelled},
			{name: "suppress", decision: Suppress, state: fanfare.Suppressed},
			{name: "go, but expired", decision: Go, expires: past, state: fanfare.Expired},
			{name: "hold, and expired", decision: Hold, expires: past, state: fanfare.Pending, ending: finished{held: 3}},
		} {
			t.Run(c.name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					asked := map[*Job]int{}
					gate := func(job *Job) (Decision, string) {
						mu.Lock()
						defer mu.Unlock()
						asked[job]++
						if at == "when released" && asked[job] == 1 {
							return Go, ""
						}
						job.Expires = c.expires
						return c.decision, "because"
					}
					sent := 0
					f := newFixture(t, gateFunc(gate), settings(answering(func(*driver.Message) driver.Verdict {
						mu.Lock()
						defer mu.Unlock()
						sent++
						return driver.Accepted
					})))
					batch := f.batch(fanfare.Normal, 3)
					for i := range batch.Jobs {
						batch.Jobs[i].Attempt = 2
					}
					f.Submit(batch)
					synctest.Wait()
					f.mustFinish(batch, c.ending)
					if (c.state == fanfare.Accepted) != (sent == 3) || c.state != fanfare.Accepted && sent != 0 {
						t.Errorf("%d messages left", sent)
					}
					entries := f.book.all()
					if c.state == fanfare.Pending {
						if len(entries) != 0 {
							t.Errorf("recorded %+v", entries)
						}
					} else if len(entries) != 3 {
						t.Errorf("%d entries, want 3", len(entries))
					}
					for _, e := range entries {
						if e.State != c.state || e.Attempt != 2 || e.At.IsZero() || e.Address == "" {
							t.Errorf("entry %+v, want %s", e, c.state)
						}
						if c.decision != Go && e.Text != "because" {
							t.Errorf("the reason is lost: %q", e.Text)
						}
					}
					if status := f.Status(); status.InFlight != 0 || status.Queued != 0 {
						t.Errorf("left behind: %+v", status)
					}
					f.Stop()
				})
			})
		}
	}
}
