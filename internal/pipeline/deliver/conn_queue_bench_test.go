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

// keeping is a recorder that keeps nothing, at once.
type keeping struct{}

func (keeping) Expect()                                               {}
func (keeping) RecordGroup([]fanfare.Entry, []fanfare.Due, int) error { return nil }
func (keeping) RecordExpected(*fanfare.Entry, *fanfare.Due) error     { return nil }
func (keeping) Record(*fanfare.Entry, *fanfare.Due) error             { return nil }
func (keeping) Postpone(fanfare.Day, []fanfare.Due) error             { return nil }

// What a message costs between the batch it came with and its outcome: everything but
// the driver, the gate and the recorder.
func BenchmarkQueue(b *testing.B) {
	const connections = 50
	o := NewSender(Options{Name: "news/email", Gate: gateFunc(open), Recorder: keeping{}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)},
		Settings{Connections: connections, Rate: rate.Inf, SendTimeout: time.Minute, IdleTimeout: time.Minute, Reserve: Reserve{Urgent: 0.1, Normal: 0.1}})
	o.configure([]RelaySettings{{Name: "relay", Weight: 1, Driver: driverFunc(func(ctx context.Context, _ driver.Queue) error { <-ctx.Done(); return nil })}})
	defer o.Stop()
	queues := make([]*connQueue, 40)
	hold := make([]*driver.Message, len(queues))
	for i := range queues {
		queues[i] = newConnQueue(o, o.relays[0])
	}
	position := 0
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		d, mine := queues[position%len(queues)], &hold[position%len(queues)]
		if o.waiting.len() == 0 {
			b.StopTimer()
			jobs := make([]Job, fanfare.MaxBatch)
			for i := range jobs {
				jobs[i] = Job{Attempt: 1, Message: driver.Message{To: fmt.Sprintf("p%d@example.org", i)}}
			}
			o.Submit(&Batch{Lane: fanfare.Bulk, Flow: Flow{Day: 1, Seq: 1}, Jobs: jobs, JobDone: func(*Job) {}, Finish: func(int, int) {},
				LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) }})
			b.StartTimer()
		}
		position++
		next, err := d.Next(ctx, false)
		if err != nil || next == nil {
			b.Fatalf("no message: %v", err)
		}
		if *mine != nil {
			if !d.Release(*mine) {
				b.Fatal("it may not leave")
			}
			if err := d.Report(*mine, driver.Outcome{Verdict: driver.Accepted, Code: 250, Text: "ok", Relay: "relay", At: time.Now()}); err != nil {
				b.Fatal(err)
			}
		}
		*mine = next
	}
}
