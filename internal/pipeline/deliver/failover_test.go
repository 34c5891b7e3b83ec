package deliver

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
)

func TestRefusalAboutTheRelayFailsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 9, 1)
		all[0].busy.Store(true)
		batch := f.batch(fanfare.Normal, 200)
		f.Submit(batch)
		<-time.After(time.Minute)
		f.mustFinish(batch, finished{})
		for _, e := range f.book.all() {
			if e.Attempt != 1 {
				t.Errorf("recorded %+v", e)
			}
		}
		states := f.book.states()
		if states[fanfare.Accepted] != 200 || all[1].taken.Load() != 200 {
			t.Errorf("recorded %v, the other relay took %d", states, all[1].taken.Load())
		}
		if s := f.Status().Relays[0]; s.State != RelayDown || s.LastError != "421 too busy" || s.Connections > 1 {
			t.Errorf("status of the busy one: %+v", s)
		}

		// If all relays are busy, the retry schedule decides.
		all[1].busy.Store(true)
		late := f.batch(fanfare.Normal, 1)
		f.Submit(late)
		<-time.After(time.Minute)
		f.mustFinish(late, finished{})
		if got := f.book.states()[fanfare.Deferred]; got != 1 {
			t.Errorf("%d deferred, want the one that nobody took", got)
		}
		f.Stop()
	})
}

// A job that waits for another relay goes to any relay when that one goes down too.
func TestFailoverJobIsNotStuckWhenTheOtherRelayGoesDown(t *testing.T) {
	for name, away := range map[string]func(*fixture, *fakeRelay){
		"down":    func(_ *fixture, h *fakeRelay) { h.gone.Store(true) },
		"drained": func(f *fixture, _ *fakeRelay) { f.Drain("b", true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, all := relayFixture(t, 4, 1, 1)
				all[0].busy.Store(true)
				all[1].delay.Store(int64(time.Minute))
				batch := f.batch(fanfare.Normal, 6)
				f.Submit(batch)
				<-time.After(time.Second)
				all[0].busy.Store(false)
				away(f, all[1])
				<-time.After(10 * time.Minute)
				f.mustFinish(batch, finished{})
				f.Stop()
			})
		})
	}
}

func TestRefusalsOfRecipientsDoNotChangeWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 1, 1)
		all[0].refuse.Store(true)
		f.submitFor(time.Minute)
		if s := f.Status().Relays[0]; s.Share != 0.5 || s.Errors != 0 {
			t.Errorf("status %+v", s)
		}
		f.Stop()
	})
}

func TestDrainedRelayGetsNothingUntilItIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := relayFixture(t, 10, 1, 1)
		f.submitFor(time.Second)
		if !f.Drain("a", true) || f.Drain("nobody", true) {
			t.Fatal("which relays there are")
		}
		<-time.After(time.Second)
		heard := all[0].heard.Load()
		f.submitFor(time.Minute)
		if n := all[0].heard.Load(); n != heard {
			t.Errorf("a drained relay heard of %d messages", n-heard)
		}
		if s := f.Status().Relays; s[0].State != RelayDrained || s[0].Connections != 0 || s[1].Connections != 10 {
			t.Errorf("status %+v", s)
		}
		f.Drain("a", false)
		f.submitFor(time.Minute)
		if got := f.connections(); got[0] != 5 || got[1] != 5 {
			t.Errorf("connections %v after it was restored", got)
		}
		f.Stop()
	})
}

// An urgent failover job precedes bulk jobs, and a bulk failover job follows an urgent job.
func TestFailoverKeepsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		_, s.Relays = fakeRelays(1, 1)
		s.Rate, s.Connections = rate.Limit(1e-9), 4 // nothing is sent
		f := newFixture(t, gateFunc(allowAll), s)
		one, two := f.batch(fanfare.Bulk, 1), f.batch(fanfare.Urgent, 1)
		o := f.Sender
		o.mu.Lock()
		for _, batch := range []*Batch{one, two} {
			job := &batch.Jobs[0]
			job.batch, job.refusedBy, batch.unsettled = batch, []*relay{o.relays[0]}, 1
			o.putBack(job)
		}
		normal := f.batch(fanfare.Normal, 1)
		normal.Jobs[0].batch, normal.unsettled = normal, 1
		o.waiting.push(&normal.Jobs[0])
		if job := o.pop(o.relays[0], lanes{fanfare.Urgent, fanfare.Bulk}); job != &normal.Jobs[0] {
			t.Error("the relay that refused them has another than the one that it may have")
		} else {
			o.waiting.pushFront(job)
		}
		for _, want := range []*Batch{two, normal, one} {
			if job := o.pop(o.relays[1], lanes{fanfare.Urgent, fanfare.Bulk}); job.batch != want {
				t.Errorf("got one of lane %v, want %v", job.batch.Lane, want.Lane)
			}
		}
		o.mu.Unlock()
		f.Stop()
	})
}
