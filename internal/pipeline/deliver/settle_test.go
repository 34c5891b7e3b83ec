package deliver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestWhatMeetsItsQuietHoursIsPutOffWithoutAnAttempt asks at both places: when a
// job is taken, and when its body is about to leave.
func TestWhatMeetsItsQuietHoursIsPutOffWithoutAnAttempt(t *testing.T) {
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
					if at == "when released" { // the hour begins during the first of two questions
						<-time.After(80 * time.Second)
					}
					return Go, ""
				}
				s.Connections = 1
				b := newBench(t, gateFunc(gate), s)
				batch := b.batch(fanfare.Bulk, 1)
				batch.Jobs[0].Quiet, batch.Jobs[0].Attempt = quiet, 3
				b.Submit(batch)
				<-time.After(5 * time.Minute)
				b.mustEnd(batch, ending{})
				if sent != 0 || len(b.book.all()) != 0 {
					t.Fatalf("%d messages left, recorded %+v", sent, b.book.all())
				}
				if len(b.book.dues) != 1 {
					t.Fatalf("put off %+v", b.book.dues)
				}
				due, ref := b.book.dues[0], batch.Jobs[0].Message.Delivery
				if !due.At.Equal(begin.Add(time.Hour+time.Second)) || due.Slice.Attempt != 3 || due.Slice.Manifest != ref.Manifest ||
					due.Slice.Positions[0] != ref.Position || due.Channel != 7 || due.Lane != fanfare.Bulk {
					t.Errorf("put off as %+v", due)
				}
				if n := b.book.coming; n != 0 {
					t.Errorf("the recorder expects %d more", n)
				}
				b.Stop()
			})
		})
	}
}

func TestWhatIsPutOffTogetherIsKeptTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(answering(taking))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 100)
		for i := range batch.Jobs {
			batch.Jobs[i].Quiet = QuietPeriod{From: time.Now(), Until: time.Now().Add(time.Hour)}
			batch.Jobs[i].Message.Delivery.Day += fanfare.Day(i % 2)
		}
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		if len(b.book.dues) != 100 || b.book.postponed != 2 {
			t.Errorf("%d pieces were put off in %d goes, want 100 in one for each of two days", len(b.book.dues), b.book.postponed)
		}
		b.Stop()
	})
}

func TestWhatCannotBePutOffComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.book.refuse = errors.New("stopped")
		batch := b.batch(fanfare.Normal, 3)
		batch.Jobs[1].Quiet = QuietPeriod{From: time.Now(), Until: time.Now().Add(time.Hour)}
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{again: 3})
		b.Stop()
	})
}

// repliesFunc reads answers by a function.
type repliesFunc func(destination string, outcome *driver.Outcome) Advice

func (f repliesFunc) Read(destination string, outcome *driver.Outcome) Advice {
	return f(destination, outcome)
}

// TestAnAnswerIsReadBeforeAnythingFollowsFromIt: what the reading changes is what
// is recorded, and what was taken is not read.
func TestAnAnswerIsReadBeforeAnythingFollowsFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(func(l *driver.Message) driver.Verdict {
			if l.Delivery.Position == 0 {
				return driver.Accepted
			}
			return driver.Temporary
		})))
		read := map[string]int{}
		b.options.Replies = repliesFunc(func(destination string, outcome *driver.Outcome) Advice {
			b.mu.Lock()
			defer b.mu.Unlock()
			read[destination]++
			outcome.Verdict = driver.Permanent
			return Advice{}
		})
		batch := b.batch(fanfare.Normal, 3)
		for i, destination := range []string{"a.example", "b.example", "c.example"} {
			batch.Jobs[i].Destination = destination
		}
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		if got := b.book.states(); got[fanfare.Accepted] != 1 || got[fanfare.Failed] != 2 {
			t.Errorf("recorded %v", got)
		}
		if len(read) != 2 || read["b.example"] != 1 || read["c.example"] != 1 {
			t.Errorf("read %v", read)
		}
		b.Stop()
	})
}
