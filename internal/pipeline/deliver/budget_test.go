package deliver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// rateUsers are two senders that share one rate.
type rateUsers struct {
	limit.SharedRate
	left, right *simulation
	budgets     [2][]Budget
}

func newRateUsers(t *testing.T, perSecond float64, answer time.Duration) *rateUsers {
	s := &rateUsers{}
	s.Set(perSecond, time.Now())
	behave := func(string, time.Time) reply { return reply{answer, accepted} }
	for i, w := range []**simulation{&s.left, &s.right} {
		s.budgets[i] = []Budget{s.NewShare()}
		own := settings(nil)
		own.Connections, own.Budgets = 20, s.budgets[i]
		*w = newSimulation(t, own, behave)
	}
	return s
}

// change changes the rate.
func (s *rateUsers) change(perSecond float64) {
	s.Set(perSecond, time.Now())
	s.left.SetBudgets(s.budgets[0])
	s.right.SetBudgets(s.budgets[1])
}

func (s *rateUsers) stop() {
	s.left.Stop()
	s.right.Stop()
}

// startTimes returns when messages were sent, in order.
func (sim *simulation) startTimes() []time.Time {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	var all []time.Time
	for _, times := range sim.tries {
		all = append(all, times...)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func TestSendersWithASharedRateNeverExceedItAndNoneStarves(t *testing.T) {
	for _, c := range []struct {
		name      string
		perSecond int
		answer    time.Duration
	}{
		{"a fast rate", 300, 20 * time.Millisecond},
		{"a slow rate", 4, 20 * time.Millisecond},
		{"answers that take long", 100, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRateUsers(t, float64(c.perSecond), c.answer)
				const seconds = 10
				half := c.perSecond * seconds / 2
				ahead := s.left.send(fanfare.Bulk, shuffled(3*half, "a.example")) // it has more to send, and starts first
				<-time.After(100 * time.Millisecond)
				behind := s.right.send(fanfare.Bulk, shuffled(half, "b.example"))
				<-time.After((seconds + 1) * time.Second)
				if n := len(s.right.startTimes()); n < half*9/10 {
					t.Errorf("one of two sent %d of the %d that are its part", n, half)
				}
				<-time.After(2 * seconds * time.Second)
				s.left.mustFinish(ahead, finished{})
				s.right.mustFinish(behind, finished{})
				all := append(s.left.startTimes(), s.right.startTimes()...)
				slices.SortFunc(all, time.Time.Compare)
				for i := c.perSecond; i < len(all); i++ {
					if span := all[i].Sub(all[i-c.perSecond]); span < time.Second {
						t.Fatalf("%d messages left within %v at %d a second", c.perSecond+1, span, c.perSecond)
					}
				}
				s.stop()
			})
		})
	}
}

// TestSenderThatWaitsForASharedRateIsWoken changes the rate while nothing may be sent for
// an hour and idle connections end.
func TestSenderThatWaitsForASharedRateIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRateUsers(t, 1.0/3600, time.Millisecond)
		one := s.left.send(fanfare.Normal, shuffled(100, "a.example"))
		other := s.right.send(fanfare.Normal, shuffled(100, "b.example"))
		<-time.After(10 * time.Minute)
		if n := len(s.left.startTimes()) + len(s.right.startTimes()); n != 1 {
			t.Errorf("%d left within ten minutes at one in an hour", n)
		}
		s.change(100)
		<-time.After(3 * time.Second)
		s.left.mustFinish(one, finished{})
		s.right.mustFinish(other, finished{})
		s.change(0.5)
		before := len(s.left.startTimes())
		again := s.left.send(fanfare.Normal, shuffled(5, "a.example"))
		<-time.After(4 * time.Second)
		if n := len(s.left.startTimes()) - before; n > 3 {
			t.Errorf("%d left in four seconds after the rate was lowered to one in two", n)
		}
		<-time.After(time.Minute)
		s.left.mustFinish(again, finished{})
		s.stop()
	})
}
