package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// P1 as published: the rate and duration of the input, and the rate of the channel.
const (
	comingRate   = 300 // a second
	comingLength = 30 * time.Minute
	leavingRate  = 100 // a second
	backlogTick  = 5 * time.Millisecond
	backlogBatch = 1000
	backlogSlack = 0.015 // of the time in which the last message leaves
)

// RunBacklog is P1: the queue of a channel and its limiter with a simulated clock.
// Messages wait before the queue while it is full, as they do on the bus.
func RunBacklog(l *harness.Env, r *report.Record) error {
	length := max(10*time.Second, time.Duration(min(1, l.Scale)*float64(comingLength)).Round(time.Second))
	total := int(length.Seconds()) * comingRate
	r.Unit, r.Durability = "min", report.InMemory
	r.Params["messages"] = total
	s := newSimulatedChannel()
	defer s.stop()
	began := s.clock.Now()
	come, batch, backlog := 0, 0, 0
	for s.left < total {
		if err := l.Ctx.Err(); err != nil {
			return err
		}
		elapsed := s.clock.advance(backlogTick).Sub(began)
		come = min(total, int(elapsed.Seconds()*comingRate))
		for ready := min(backlogBatch, come-batch); ready > 0 && s.submit(ready); ready = min(backlogBatch, come-batch) {
			batch += ready
		}
		if err := s.run(); err != nil {
			return err
		}
		if elapsed == length {
			backlog = come - s.left
		}
		if elapsed > 10*length {
			return fmt.Errorf("after %v of simulated time only %d of %d messages were sent", elapsed, s.left, total)
		}
	}
	drained := s.clock.Now().Sub(began) - length
	computed := time.Duration(float64(total)/leavingRate*float64(time.Second)) - length
	r.Value = drained.Minutes()
	r.SetLimit(computed.Minutes())
	r.Note("%d a second for %v into %d a second: then %s wait, and the last one leaves %v later; computed: %s and %v", comingRate, length, leavingRate,
		report.Thousands(int64(backlog)), drained, report.Thousands(int64(total-int(length.Seconds())*leavingRate)), computed)
	r.Note("the queue and the limiter of the product with a simulated clock; the limit is computed. The limiter uses 99 %% of its rate, so that no second exceeds it")
	r.Lost, r.Duplicates = int64(total-len(s.seen)), int64(s.left-len(s.seen))
	var w report.Checks
	w.Require(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	whole := float64(length+drained) / float64(length+computed)
	w.Require(1 <= whole && whole < 1+backlogSlack, "the last message left after %v, computed: %v", length+drained, length+computed)
	return w.Err()
}

// A simulatedClock moves only by advance.
type simulatedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *simulatedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *simulatedClock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// A simulatedChannel is the queue of a channel with a simulated clock, a driver that
// takes at each tick what the limiter permits, and a recorder that counts.
type simulatedChannel struct {
	*deliver.Sender
	clock      *simulatedClock
	tick, tock chan struct{}
	seen       map[fanfare.DeliveryRef]struct{}
	next       uint32
	left       int
}

func newSimulatedChannel() *simulatedChannel {
	s := &simulatedChannel{clock: &simulatedClock{now: time.Now().UTC().Truncate(time.Second)}, tick: make(chan struct{}), tock: make(chan struct{}), seen: map[fanfare.DeliveryRef]struct{}{}}
	s.Sender = deliver.NewSender(deliver.Options{Name: "bench/set", Gate: s, Recorder: s, Clock: s.clock, Logger: slog.New(slog.DiscardHandler)}, deliver.Settings{
		Relays: []deliver.RelaySettings{{Name: "set", Driver: s, Weight: 1}}, Connections: 1, Rate: rate.Limit(leavingRate), SendTimeout: time.Second, IdleTimeout: time.Hour,
	})
	return s
}

// submit hands a batch over if the queue has capacity for it.
func (s *simulatedChannel) submit(n int) bool {
	if !s.HasCapacity(fanfare.Normal, deliver.Flow{}) {
		return false
	}
	b := &deliver.Batch{Lane: fanfare.Normal, Jobs: make([]deliver.Job, n), LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) },
		JobDone: func(*deliver.Job) {}, Finish: func(int, int) {}}
	for i := range b.Jobs {
		b.Jobs[i].Message.Delivery = fanfare.DeliveryRef{Day: 1, Manifest: 64, Position: s.next}
		b.Jobs[i].Attempt = 1
		s.next++
	}
	s.Submit(b)
	return true
}

// run lets the driver take the messages that may leave now.
func (s *simulatedChannel) run() error {
	if s.next == 0 {
		return nil // nobody has come, and so no connection was opened
	}
	const patience = time.Minute
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, signal := range []chan struct{}{s.tick, s.tock} {
		select {
		case signal <- struct{}{}:
		case <-timer.C:
			return fmt.Errorf("the driver has not requested a message for %v", patience)
		}
	}
	return nil
}

func (s *simulatedChannel) stop() {
	close(s.tick)
	s.Stop()
}

// Serve takes the messages that may leave, at each tick.
func (s *simulatedChannel) Serve(ctx context.Context, queue driver.Queue) error {
	for range s.tick {
		for {
			message, err := queue.Next(ctx, false)
			if err != nil {
				return err
			}
			if message == nil {
				break
			}
			if !queue.Release(message) {
				continue
			}
			if err := queue.Report(message, driver.Outcome{Verdict: driver.Accepted, Code: 250, At: s.clock.Now()}); err != nil {
				return err
			}
		}
		<-s.tock
	}
	return nil
}

// Check permits everything.
func (s *simulatedChannel) Check(*deliver.Job) (deliver.Decision, string) { return deliver.Go, "" }

// Expect, RecordExpected, Record and Postpone implement a recorder that counts.
func (s *simulatedChannel) Expect() {}

// RecordExpected counts.
func (s *simulatedChannel) RecordExpected(e *fanfare.Entry, due *fanfare.Due) error {
	return s.Record(e, due)
}

// Record counts.
func (s *simulatedChannel) Record(e *fanfare.Entry, _ *fanfare.Due) error {
	s.left++
	s.seen[e.Delivery] = struct{}{}
	return nil
}

// RecordGroup counts.
func (s *simulatedChannel) RecordGroup(all []fanfare.Entry, _ []fanfare.Due, _ int) error {
	for i := range all {
		_ = s.Record(&all[i], nil)
	}
	return nil
}

// Postpone is never called, since nothing is paused.
func (s *simulatedChannel) Postpone(fanfare.Day, []fanfare.Due) error {
	return errors.New("a message was postponed although nothing was paused")
}
