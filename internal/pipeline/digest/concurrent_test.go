package digest_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// A rush has one subscription that moves between two windows, and a clock that advances by a second
// whenever Step reads it.
type rush struct {
	mu    sync.Mutex
	now   time.Time
	slot  uint16
	was   []uint16
	slots [3]digest.Slot
}

func (r *rush) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rush) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rush) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.slot
	r.slot = 3 - before
	r.was = []uint16{before}
}

func (r *rush) current() uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slot
}

func (r *rush) Slot(number uint16) (digest.Slot, bool) { return r.slots[number], number > 0 }
func (r *rush) Slots() []digest.Slot                   { return r.slots[1:] }

func (r *rush) PendingMoves() []digest.Move {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.was) == 0 {
		return nil
	}
	return []digest.Move{{Place: 1, Subscriber: 1, Slot: r.slot, PastSlots: r.was}}
}

func (r *rush) ConfirmMoves(_ context.Context, moves []digest.Move) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slot == moves[0].Slot {
		r.was = nil
	}
	return nil
}

// TestConcurrentDigestsReportEachEventOnce has three loops of matching, one that merges, the steps,
// and a subscription that changes its cadence all the time.
func TestConcurrentDigestsReportEachEventOnce(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir(), store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept := deliveries.New(db)
	r := &rush{now: time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC), slot: 1}
	for i, text := range []string{"", "window 2s", "window 3s"} {
		c, err := cadence.Parse(text)
		if err != nil && i > 0 {
			t.Fatal(err)
		}
		r.slots[i] = digest.Slot{Number: uint16(i), Service: "news", Cadence: c, Zone: time.UTC}
	}
	var stream atomic.Uint64
	runs := make(chan *fanfare.AcceptedEvent, 1<<16)
	g := digest.New(digest.Options{
		Store: kept, Slots: r, Clock: r, Live: func(fanfare.RowID) bool { return true }, Logger: slog.New(slog.DiscardHandler),
		Topic: func(string, string) (digest.Topic, bool) { return digest.Topic{Template: 7, Max: 1 << 20}, true },
		Publish: func(_ context.Context, p *fanfare.AcceptedEvent) error {
			p.Seq = fanfare.NewEventSeq(stream.Add(1), 0)
			runs <- p
			return nil
		},
	})
	told := map[string]int{}
	freeze := func(posted *fanfare.AcceptedEvent) {
		round := g.Begin()
		defer round.End()
		f := &fanfare.MatchResult{Posted: posted, KeptAt: r.Now(), MatchedAt: r.Now()}
		if posted.Run != nil {
			var err error
			if f, err = round.Merge(t.Context(), posted); err != nil {
				t.Error(err)
				return
			}
		} else {
			posted.ReceivedAt = r.Now()
			_, f.Gathered = plan.SplitDigests(posted.Seq, []fanfare.Hit{{Place: 1, Subscriber: 1, Channel: 1, Rule: -1, Slot: r.current()}}, round.Due)
		}
		fresh, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{f}, r.Now())
		if err == nil {
			err = g.Committed(t.Context(), []*fanfare.MatchResult{f}, fresh)
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, item := range itemsOf(t, f) {
			told[item.Posted.Event.ID]++
		}
	}
	const lanes, events = 3, 100
	var matching, rest sync.WaitGroup
	for lane := range lanes {
		matching.Go(func() {
			for n := range events {
				seq := fanfare.NewEventSeq(stream.Add(1), 0)
				freeze(&fanfare.AcceptedEvent{Service: "news", Topic: "story", Seq: seq, Event: fanfare.Event{ID: fmt.Sprint(lane, "-", n)}})
			}
		})
	}
	rest.Go(func() {
		for run := range runs {
			freeze(run)
		}
	})
	over := make(chan struct{})
	go func() { matching.Wait(); close(over) }()
	step := func() {
		r.pass(300 * time.Millisecond)
		if _, err := g.Step(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for n := 0; ; n++ {
		if n%3 == 0 {
			r.move()
		}
		step()
		select {
		case <-over:
		default:
			continue
		}
		break
	}
	for range 20 { // everything that waits is due now
		step()
	}
	close(runs)
	rest.Wait()
	for lane := range lanes {
		for n := range events {
			if id := fmt.Sprint(lane, "-", n); told[id] != 1 {
				t.Errorf("%s is reported %d times", id, told[id])
			}
		}
	}
}
