package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// discardRecorder records nothing.
type discardRecorder struct{}

func (discardRecorder) Expect()                                               {}
func (discardRecorder) RecordGroup([]fanfare.Entry, []fanfare.Due, int) error { return nil }
func (discardRecorder) RecordExpected(*fanfare.Entry, *fanfare.Due) error     { return nil }
func (discardRecorder) Record(*fanfare.Entry, *fanfare.Due) error             { return nil }
func (discardRecorder) Postpone(fanfare.Day, []fanfare.Due) error             { return nil }

// BenchmarkQueue measures the cost of a message from its batch to its outcome, without
// driver, gate and recorder.
func BenchmarkQueue(b *testing.B) {
	const connections = 50
	s := NewSender(Options{Name: "news/email", Gate: gateFunc(allowAll), Recorder: discardRecorder{}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)},
		Settings{Connections: connections, Rate: rate.Inf, SendTimeout: time.Minute, IdleTimeout: time.Minute, Reserve: Reserve{Urgent: 0.1, Normal: 0.1}})
	s.configure([]RelaySettings{{Name: "relay", Weight: 1, Driver: driverFunc(func(ctx context.Context, _ driver.Queue) error { <-ctx.Done(); return nil })}})
	defer s.Stop()
	queues := make([]*connQueue, 40)
	hold := make([]*driver.Message, len(queues))
	for i := range queues {
		queues[i] = newConnQueue(s, s.relays[0])
	}
	position := 0
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		q, mine := queues[position%len(queues)], &hold[position%len(queues)]
		if s.waiting.len() == 0 {
			b.StopTimer()
			jobs := make([]Job, fanfare.MaxBatch)
			for i := range jobs {
				jobs[i] = Job{Attempt: 1, Message: driver.Message{To: fmt.Sprintf("p%d@example.org", i)}}
			}
			s.Submit(&Batch{Lane: fanfare.Bulk, Flow: Flow{Day: 1, Seq: 1}, Jobs: jobs, JobDone: func(*Job) {}, Finish: func(int, int) {},
				LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) }})
			b.StartTimer()
		}
		position++
		next, err := q.Next(ctx, false)
		if err != nil || next == nil {
			b.Fatalf("no message: %v", err)
		}
		if *mine != nil {
			if !q.Release(*mine) {
				b.Fatal("it may not leave")
			}
			if err := q.Report(*mine, driver.Outcome{Verdict: driver.Accepted, Code: 250, Text: "ok", Relay: "relay", At: time.Now()}); err != nil {
				b.Fatal(err)
			}
		}
		*mine = next
	}
}
