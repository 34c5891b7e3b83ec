package deliver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

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
			b.Sweep()
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
		w.Sweep()
		<-time.After(15 * time.Second)
		if _, ok := w.ended(well); !ok {
			t.Errorf("%d of 20 others have left 15 s after what held them up was taken out", w.took(isWell))
		}
		w.Stop()
	})
}
