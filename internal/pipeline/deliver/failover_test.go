package deliver

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
)

func TestWhatARelayRefusesForReasonsOfItsOwnGoesToAnotherAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := relayBench(t, 10, 9, 1)
		all[0].busy.Store(true)
		batch := b.batch(fanfare.Normal, 200)
		b.Submit(batch)
		<-time.After(time.Minute)
		b.mustEnd(batch, ending{})
		for _, e := range b.book.all() {
			if e.Attempt != 1 {
				t.Errorf("recorded %+v", e)
			}
		}
		states := b.book.states()
		if states[fanfare.Accepted] != 200 || all[1].taken.Load() != 200 {
			t.Errorf("recorded %v, the other relay took %d", states, all[1].taken.Load())
		}
		if s := b.Status().Relays[0]; s.State != RelayDown || s.LastError != "421 too busy" || s.Connections > 1 {
			t.Errorf("status of the busy one: %+v", s)
		}

		// Where all of them are busy it is the schedule of retries that decides.
		all[1].busy.Store(true)
		late := b.batch(fanfare.Normal, 1)
		b.Submit(late)
		<-time.After(time.Minute)
		b.mustEnd(late, ending{})
		if got := b.book.states()[fanfare.Deferred]; got != 1 {
			t.Errorf("%d deferred, want the one that nobody took", got)
		}
		b.Stop()
	})
}

// What waits for another relay is anybody's again when that one goes away too.
func TestWhatWasPassedOnIsNotStuckWhenTheOtherRelayGoes(t *testing.T) {
	for name, away := range map[string]func(*bench, *hop){
		"down":    func(_ *bench, h *hop) { h.gone.Store(true) },
		"drained": func(b *bench, _ *hop) { b.Drain("b", true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, all := relayBench(t, 4, 1, 1)
				all[0].busy.Store(true)
				all[1].delay.Store(int64(time.Minute))
				batch := b.batch(fanfare.Normal, 6)
				b.Submit(batch)
				<-time.After(time.Second)
				all[0].busy.Store(false)
				away(b, all[1])
				<-time.After(10 * time.Minute)
				b.mustEnd(batch, ending{})
				b.Stop()
			})
		})
	}
}

func TestRefusalsOfPeopleMoveNoWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := relayBench(t, 10, 1, 1)
		all[0].refuse.Store(true)
		b.feed(time.Minute)
		if s := b.Status().Relays[0]; s.Share != 0.5 || s.Errors != 0 {
			t.Errorf("status %+v", s)
		}
		b.Stop()
	})
}

func TestADrainedRelayGetsNothingUntilItIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := relayBench(t, 10, 1, 1)
		b.feed(time.Second)
		if !b.Drain("a", true) || b.Drain("nobody", true) {
			t.Fatal("which relays there are")
		}
		<-time.After(time.Second)
		heard := all[0].heard.Load()
		b.feed(time.Minute)
		if n := all[0].heard.Load(); n != heard {
			t.Errorf("a drained relay heard of %d messages", n-heard)
		}
		if s := b.Status().Relays; s[0].State != RelayDrained || s[0].Connections != 0 || s[1].Connections != 10 {
			t.Errorf("status %+v", s)
		}
		b.Drain("a", false)
		b.feed(time.Minute)
		if got := b.connections(); got[0] != 5 || got[1] != 5 {
			t.Errorf("connections %v after it was restored", got)
		}
		b.Stop()
	})
}

// An urgent message that was passed on is before bulk, and bulk that was passed on
// behind an urgent one.
func TestWhatIsPassedOnKeepsItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		_, s.Relays = hops(1, 1)
		s.Rate, s.Connections = rate.Limit(1e-9), 4 // nothing leaves
		b := newBench(t, gateFunc(open), s)
		one, two := b.batch(fanfare.Bulk, 1), b.batch(fanfare.Urgent, 1)
		o := b.Sender
		o.mu.Lock()
		for _, batch := range []*Batch{one, two} {
			job := &batch.Jobs[0]
			job.batch, job.refusedBy, batch.unsettled = batch, []*relay{o.relays[0]}, 1
			o.putBack(job)
		}
		normal := b.batch(fanfare.Normal, 1)
		normal.Jobs[0].batch, normal.unsettled = normal, 1
		o.waiting.push(&normal.Jobs[0])
		if job := o.pop(o.relays[0], allLanes); job != &normal.Jobs[0] {
			t.Error("the relay that refused them has another than the one that it may have")
		} else {
			o.waiting.pushFront(job)
		}
		for _, want := range []*Batch{two, normal, one} {
			if job := o.pop(o.relays[1], allLanes); job.batch != want {
				t.Errorf("got one of lane %v, want %v", job.batch.Lane, want.Lane)
			}
		}
		o.mu.Unlock()
		b.Stop()
	})
}
