package deliver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// sharing are two outlets that spend one rate.
type sharing struct {
	limit.SharedRate
	left, right *town
	budgets     [2][]Budget
}

func newSharing(t *testing.T, perSecond float64, answer time.Duration) *sharing {
	s := &sharing{}
	s.Set(perSecond, time.Now())
	behave := func(string, time.Time) reply { return reply{answer, taken} }
	for i, w := range []**town{&s.left, &s.right} {
		s.budgets[i] = []Budget{s.NewShare()}
		own := settings(nil)
		own.Connections, own.Budgets = 20, s.budgets[i]
		*w = newTown(t, own, behave)
	}
	return s
}

// change sets another rate.
func (s *sharing) change(perSecond float64) {
	s.Set(perSecond, time.Now())
	s.left.SetBudgets(s.budgets[0])
	s.right.SetBudgets(s.budgets[1])
}

func (s *sharing) stop() {
	s.left.Stop()
	s.right.Stop()
}

// began returns when messages left an outlet, in order.
func (w *town) began() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []time.Time
	for _, times := range w.tries {
		all = append(all, times...)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func TestOutletsThatShareARateNeverExceedItTogetherAndNoneStarves(t *testing.T) {
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
				s := newSharing(t, float64(c.perSecond), c.answer)
				const seconds = 10
				half := c.perSecond * seconds / 2
				ahead := s.left.send(fanfare.Bulk, shuffled(3*half, "a.example")) // it has more to send, and begins
				<-time.After(100 * time.Millisecond)
				behind := s.right.send(fanfare.Bulk, shuffled(half, "b.example"))
				<-time.After((seconds + 1) * time.Second)
				if n := len(s.right.began()); n < half*9/10 {
					t.Errorf("one of two sent %d of the %d that are its part", n, half)
				}
				<-time.After(2 * seconds * time.Second)
				s.left.mustEnd(ahead, ending{})
				s.right.mustEnd(behind, ending{})
				all := append(s.left.began(), s.right.began()...)
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

// TestAnOutletThatWaitsForASharedRateIsWoken has the rate changed while nothing may
// leave for an hour, and connections end that have no work.
func TestAnOutletThatWaitsForASharedRateIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t, 1.0/3600, time.Millisecond)
		one := s.left.send(fanfare.Normal, shuffled(100, "a.example"))
		other := s.right.send(fanfare.Normal, shuffled(100, "b.example"))
		<-time.After(10 * time.Minute)
		if n := len(s.left.began()) + len(s.right.began()); n != 1 {
			t.Errorf("%d left within ten minutes at one in an hour", n)
		}
		s.change(100)
		<-time.After(3 * time.Second)
		s.left.mustEnd(one, ending{})
		s.right.mustEnd(other, ending{})
		s.change(0.5)
		before := len(s.left.began())
		again := s.left.send(fanfare.Normal, shuffled(5, "a.example"))
		<-time.After(4 * time.Second)
		if n := len(s.left.began()) - before; n > 3 {
			t.Errorf("%d left in four seconds after the rate was lowered to one in two", n)
		}
		<-time.After(time.Minute)
		s.left.mustEnd(again, ending{})
		s.stop()
	})
}
