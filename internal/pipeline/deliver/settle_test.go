package deliver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestQuietHoursPostponeWithoutAnAttempt has quiet hours begin both before a job is taken
// and before it is released.
func TestQuietHoursPostponeWithoutAnAttempt(t *testing.T) {
	for _, at := range []string{"when taken", "when released"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				quiet := QuietPeriod{From: begin.Add(time.Minute), Until: begin.Add(time.Hour + time.Millisecond)}
				if at == "when taken" {
					quiet.From = begin
				}
				sent := 0
				s := settings(answering(func(*driver.Message) driver.Verdict { sent++; return driver.Accepted }))
				gate := func(*Job) (Decision, string) {
					if at == "when released" { // the period begins between the two checks
						<-time.After(80 * time.Second)
					}
					return Go, ""
				}
				s.Connections = 1
				f := newFixture(t, gateFunc(gate), s)
				batch := f.batch(fanfare.Bulk, 1)
				batch.Jobs[0].Quiet, batch.Jobs[0].Attempt = quiet, 3
				f.Submit(batch)
				<-time.After(5 * time.Minute)
				f.mustFinish(batch, finished{})
				if sent != 0 || len(f.book.all()) != 0 {
					t.Fatalf("%d messages left, recorded %+v", sent, f.book.all())
				}
				if len(f.book.dues) != 1 {
					t.Fatalf("postponed %+v", f.book.dues)
				}
				due, ref := f.book.dues[0], batch.Jobs[0].Message.Delivery
				if !due.At.Equal(begin.Add(time.Hour+time.Second)) || due.Slice.Attempt != 3 || due.Slice.Manifest != ref.Manifest ||
					due.Slice.Positions[0] != ref.Position || due.Channel != 7 || due.Lane != fanfare.Bulk {
					t.Errorf("postponed as %+v", due)
				}
				if n := f.book.coming; n != 0 {
					t.Errorf("the recorder expects %d more", n)
				}
				f.Stop()
			})
		})
	}
}

func TestPostponedJobsAreRecordedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(acceptAll))
		s.Connections = 1
		f := newFixture(t, gateFunc(allowAll), s)
		batch := f.batch(fanfare.Normal, 100)
		for i := range batch.Jobs {
			batch.Jobs[i].Quiet = QuietPeriod{From: time.Now(), Until: time.Now().Add(time.Hour)}
			batch.Jobs[i].Message.Delivery.Day += fanfare.Day(i % 2)
		}
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		if len(f.book.dues) != 100 || f.book.postponed != 2 {
			t.Errorf("%d jobs were postponed in %d calls, want 100 in one call for each of two days", len(f.book.dues), f.book.postponed)
		}
		f.Stop()
	})
}

func TestJobIsReloadedIfItCannotBePostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(acceptAll)))
		f.book.refuse = errors.New("stopped")
		batch := f.batch(fanfare.Normal, 3)
		batch.Jobs[1].Quiet = QuietPeriod{From: time.Now(), Until: time.Now().Add(time.Hour)}
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{unsent: 3})
		f.Stop()
	})
}

type repliesFunc func(destination string, outcome *driver.Outcome) Advice

func (f repliesFunc) Read(destination string, outcome *driver.Outcome) Advice {
	return f(destination, outcome)
}

// TestReplyIsClassifiedFirst: the classified outcome is recorded, and Accepted is not
// classified.
func TestReplyIsClassifiedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, gateFunc(allowAll), settings(answering(func(l *driver.Message) driver.Verdict {
			if l.Delivery.Position == 0 {
				return driver.Accepted
			}
			return driver.Temporary
		})))
		read := map[string]int{}
		f.options.Replies = repliesFunc(func(destination string, outcome *driver.Outcome) Advice {
			f.mu.Lock()
			defer f.mu.Unlock()
			read[destination]++
			outcome.Verdict = driver.Permanent
			return Advice{}
		})
		batch := f.batch(fanfare.Normal, 3)
		for i, destination := range []string{"a.example", "b.example", "c.example"} {
			batch.Jobs[i].Destination = destination
		}
		f.Submit(batch)
		synctest.Wait()
		f.mustFinish(batch, finished{})
		if got := f.book.states(); got[fanfare.Accepted] != 1 || got[fanfare.Failed] != 2 {
			t.Errorf("recorded %v", got)
		}
		if len(read) != 2 || read["b.example"] != 1 || read["c.example"] != 1 {
			t.Errorf("read %v", read)
		}
		f.Stop()
	})
}
