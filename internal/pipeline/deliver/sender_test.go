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
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		batch := b.batch(fanfare.Normal, 100)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		seen := map[uint32]bool{}
		for _, e := range b.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 || e.Code != 250 || e.Relay != "relay:25" || e.Address != fmt.Sprintf("p%d@example.org", e.Delivery.Position) || e.At.IsZero() {
				t.Errorf("entry %+v", e)
			}
			seen[e.Delivery.Position] = true
		}
		if len(seen) != 100 || len(b.book.all()) != 100 {
			t.Errorf("%d entries of %d deliveries, want 100 of 100", len(b.book.all()), len(seen))
		}
		b.Stop()
	})
}

func TestAnEmptyBatchEndsAtOnce(t *testing.T) {
	b := newBench(t, gateFunc(open), settings(answering(taking)))
	batch := b.batch(fanfare.Bulk, 0)
	b.Submit(batch)
	b.mustEnd(batch, ending{})
	b.Stop()
}

func TestUrgentLeavesBeforeWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan struct{})
		var order []uint32
		s := settings(answering(func(l *driver.Message) driver.Verdict {
			<-first
			order = append(order, l.Delivery.Position)
			return driver.Accepted
		}))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		b.Submit(b.batch(fanfare.Bulk, 3)) // 0 1 2, of which 0 is on the wire
		synctest.Wait()
		b.Submit(b.batch(fanfare.Normal, 2)) // 3 4
		b.Submit(b.batch(fanfare.Urgent, 2)) // 5 6
		b.Submit(b.batch(fanfare.Bulk, 1))   // 7
		close(first)
		synctest.Wait()
		b.Stop()
		if want := []uint32{0, 5, 6, 3, 4, 1, 2, 7}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

func TestADeferredJobIsDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(func(*driver.Message) driver.Verdict { return driver.Temporary })))
		batch := b.batch(fanfare.Bulk, 1)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		b.Stop()
		if b.book.coming != 0 {
			t.Errorf("the recorder expects %d more", b.book.coming)
		}
		entry := b.book.all()[0]
		if len(b.book.dues) != 1 || entry.State != fanfare.Deferred {
			t.Fatalf("recorded %+v with %d dues", entry, len(b.book.dues))
		}
		due := b.book.dues[0]
		ref := batch.Jobs[0].Message.Delivery
		if !due.At.Equal(entry.NextAt) || due.Channel != 7 || due.Lane != fanfare.Bulk || due.Slice.Manifest != ref.Manifest ||
			!slices.Equal(due.Slice.Positions, []uint32{ref.Position}) || due.Slice.Attempt != 2 {
			t.Errorf("due %+v of entry %+v", due, entry)
		}
	})
}

func TestWhatCannotBeRecordedComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.book.refuse = errors.New("stopped")
		batch := b.batch(fanfare.Normal, 2)
		b.Submit(batch)
		<-time.After(time.Hour) // of the bubble
		b.mustEnd(batch, ending{again: 2})
		b.Stop()
	})
}

func TestNothingIsBegunUnderAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := false
		b := newBench(t, gateFunc(open), settings(answering(func(*driver.Message) driver.Verdict { sent = true; return driver.Accepted })))
		batch := b.batch(fanfare.Normal, 2)
		batch.LeaseEnd = func() time.Time { return time.Now().Add(59 * time.Second) } // a send may take a minute
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{again: 2})
		if sent {
			t.Error("a message left")
		}
		b.Stop()
	})
}

func TestStopGivesTheRestBackAndTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		s := settings(answering(func(*driver.Message) driver.Verdict { <-reply; return driver.Accepted }))
		s.Connections = 2
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 1500)
		b.Submit(batch)
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { b.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("stopped while two messages were on the wire")
		default:
		}
		close(reply)
		<-stopped
		b.mustEnd(batch, ending{again: 1498})
		if got := b.book.states(); got[fanfare.Accepted] != 2 || len(got) != 1 {
			t.Errorf("recorded %v", got)
		}
		late := b.batch(fanfare.Urgent, 3)
		b.Submit(late)
		b.mustEnd(late, ending{again: 3})
		b.Stop()
	})
}

// TestWhatIsStoppedLeavesTheQueueWhileAllConnectionsAreBusy stops 2,000 jobs behind
// connections that take an hour for each message.
func TestWhatIsStoppedLeavesTheQueueWhileAllConnectionsAreBusy(t *testing.T) {
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
			b := newBench(t, gateFunc(gate), settings(slow))
			first, second, other := b.batch(fanfare.Bulk, 1000), b.batch(fanfare.Bulk, 1000), b.batch(fanfare.Normal, 3)
			begun := time.Now()
			b.Submit(first)
			b.Submit(second)
			synctest.Wait()
			b.Submit(other)
			stopped.Store(true)
			b.RecheckGate()
			synctest.Wait()
			if queued := b.Status().Queued; queued != 3 || !time.Now().Equal(begun) {
				t.Errorf("%d still wait, %v later", queued, time.Since(begun))
			}
			want := ending{}
			if test.stop == Hold {
				want.held = 1000
			}
			b.mustEnd(second, want)
			if got := b.book.states()[fanfare.Cancelled]; test.state == fanfare.Cancelled && got != 1996 {
				t.Errorf("%d are cancelled, want all but the 4 on the wire", got)
			}
			<-time.After(3 * time.Hour)
			synctest.Wait()
			b.Stop()
			if got := b.book.states()[fanfare.Accepted]; got != 4+3 {
				t.Errorf("%d left, want what was on the wire and the others", got)
			}
		})
	}
}

func TestANewRateIsInForceForWhoWaitsForTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(taking))
		s.Rate = rateLimit(1. / 60)
		b := newBench(t, gateFunc(open), s)
		defer b.Stop()
		served := 0
		b.SetRate(s.Rate)
		b.Submit(b.batch(fanfare.Normal, 500))
		<-time.After(90 * time.Second)
		synctest.Wait()
		if served = len(b.book.all()); served > 3 {
			t.Fatalf("%d left at one a minute", served)
		}
		b.SetRate(rateLimit(100))
		<-time.After(time.Second)
		synctest.Wait()
		if got := len(b.book.all()) - served; got < 90 || got > 101 {
			t.Errorf("%d left in the second after the rate was raised to 100/s", got)
		}
		b.SetRate(rateLimit(1))
		before := len(b.book.all())
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got := len(b.book.all()) - before; got > 12 {
			t.Errorf("%d left in 10 s after it was lowered to 1/s", got)
		}
		b.SetRate(rateLimit(1e6))
		<-time.After(time.Second)
		synctest.Wait()
		if got := len(b.book.all()); got != 500 {
			t.Errorf("%d of 500 left in the end", got)
		}
	})
}

// TestWhatFilledTheRoomAsideAndIsTakenOutWakesOthers has the room for what stands
// aside full of one broadcast, which is paused.
func TestWhatFilledTheRoomAsideAndIsTakenOutWakesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.Destinations = Destinations{Only: map[string]DestinationLimit{"narrow.example": {Connections: 1}}}
		w := newTown(t, s, func(to string, _ time.Time) reply {
			if isWell(to) {
				return reply{time.Second, taken}
			}
			return reply{time.Hour / 2, taken}
		})
		paused := false
		w.options.Gate = gateFunc(func(job *Job) (Decision, string) {
			if paused && job.Destination == "narrow.example" {
				return Hold, "paused"
			}
			return Go, ""
		})
		w.send(fanfare.Bulk, shuffled(1100, "narrow.example"))
		well := w.send(fanfare.Bulk, shuffled(20, "well.example"))
		synctest.Wait()
		paused = true
		w.RecheckGate()
		<-time.After(15 * time.Second)
		if _, ok := w.ended(well); !ok {
			t.Errorf("%d of 20 others have left 15 s after what held them up was taken out", w.took(isWell))
		}
		w.Stop()
	})
}

func TestWhatIsDroppedIsSettledWithoutItsAddressAndTheRestKeepsItsOrder(t *testing.T) {
	b := &book{}
	o := NewSender(Options{Name: "news/email", Gate: gateFunc(open), Recorder: b, Clock: clock.System{}},
		Settings{Relays: relaysOf(driverFunc(func(context.Context, driver.Queue) error { return nil })), Connections: 0, Rate: rate.Inf})
	over := make(chan struct{})
	batch := &Batch{Lane: fanfare.Normal, JobDone: func(*Job) {}, Finish: func(int, int) { close(over) }}
	for i := range 6 {
		batch.Jobs = append(batch.Jobs, Job{Subscriber: fanfare.RowID(i % 2), Attempt: 1,
			Message: driver.Message{Delivery: fanfare.DeliveryRef{Position: uint32(i)}, To: "a@example.org"}})
	}
	o.Submit(batch)
	o.SuppressSubscriber(1, "erased")
	var left []uint32
	for range o.waiting.len() {
		job := o.waiting.pop(allLanes)
		left = append(left, job.Message.Delivery.Position)
		o.waiting.push(job)
	}
	if len(left) != 3 || left[0] != 0 || left[1] != 2 || left[2] != 4 {
		t.Errorf("left in the queue: %v", left)
	}
	o.Stop()
	<-over
	if len(b.entries) != 3 {
		t.Fatalf("%d entries", len(b.entries))
	}
	for _, e := range b.entries {
		if e.State != fanfare.Suppressed || e.Address != "" || e.Text != "erased" || e.Delivery.Position%2 != 1 {
			t.Errorf("recorded %+v", e)
		}
	}
}

// TestWhatTheGateSaysBecomesOfAJob asks at both places: when a job is taken, and
// when its body is about to leave.
func TestWhatTheGateSaysBecomesOfAJob(t *testing.T) {
	past := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // the bubble's clock begins in 2000
	for _, at := range []string{"when taken", "when released"} {
		for _, c := range []struct {
			name     string
			decision Decision
			expires  time.Time
			state    fanfare.State // Pending: no entry
			ending   ending
		}{
			{name: "go", decision: Go, state: fanfare.Accepted},
			{name: "hold", decision: Hold, state: fanfare.Pending, ending: ending{held: 3}},
			{name: "anew", decision: Reload, state: fanfare.Pending, ending: ending{again: 3}},
			{name: "cancel", decision: Cancel, state: fanfare.Cancelled},
			{name: "suppress", decision: Suppress, state: fanfare.Suppressed},
			{name: "go, but expired", decision: Go, expires: past, state: fanfare.Expired},
			{name: "hold, and expired", decision: Hold, expires: past, state: fanfare.Pending, ending: ending{held: 3}},
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
					b := newBench(t, gateFunc(gate), settings(answering(func(*driver.Message) driver.Verdict {
						mu.Lock()
						defer mu.Unlock()
						sent++
						return driver.Accepted
					})))
					batch := b.batch(fanfare.Normal, 3)
					for i := range batch.Jobs {
						batch.Jobs[i].Attempt = 2
					}
					b.Submit(batch)
					synctest.Wait()
					b.mustEnd(batch, c.ending)
					if (c.state == fanfare.Accepted) != (sent == 3) || c.state != fanfare.Accepted && sent != 0 {
						t.Errorf("%d messages left", sent)
					}
					entries := b.book.all()
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
					if status := b.Status(); status.InFlight != 0 || status.Queued != 0 {
						t.Errorf("left behind: %+v", status)
					}
					b.Stop()
				})
			})
		}
	}
}
