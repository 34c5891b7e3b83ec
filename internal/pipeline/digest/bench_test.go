package digest_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
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

// morning is a service whose subscribers all have one cadence.
type morning struct {
	clock
	run *fanfare.AcceptedEvent
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (m *morning) Slot(uint16) (digest.Slot, bool) {
	c, err := cadence.Parse("daily 08:00")
	return digest.Slot{Number: 1, Service: "news", Cadence: c, Zone: time.UTC}, err == nil
}
func (m *morning) Slots() []digest.Slot                              { return nil }
func (m *morning) PendingMoves() []digest.Move                       { return nil }
func (m *morning) ConfirmMoves(context.Context, []digest.Move) error { return nil }

// BenchmarkMillionRecipients stores five events that wait for a million people, and merges and
// freezes their digest. It is the part of L10 that the database takes.
func BenchmarkMillionRecipients(b *testing.B) {
	const people, events = 1_000_000, 5
	hits := make([]fanfare.Hit, people)
	for i := range hits {
		p := fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
		hits[i] = fanfare.Hit{Place: p, Subscriber: p, Channel: 1, Rule: -1, Slot: 1}
	}
	slices.SortFunc(hits, func(a, b fanfare.Hit) int { return int(int64(a.Place) - int64(b.Place)) })
	for b.Loop() {
		db, err := sqlite.Open(b.Context(), b.TempDir(), store.Fsync)
		if err != nil {
			b.Fatal(err)
		}
		kept := deliveries.New(db)
		m := &morning{clock: clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}}
		g := digest.New(digest.Options{
			Store: kept, Slots: m, Clock: m, Live: func(fanfare.RowID) bool { return true }, Logger: slog.New(slog.DiscardHandler),
			Topic:   func(string, string) (digest.Topic, bool) { return digest.Topic{Template: 7, Max: 50}, true },
			Publish: func(_ context.Context, p *fanfare.AcceptedEvent) error { m.run = p; return nil },
		})
		freeze := func(seq uint64, posted *fanfare.AcceptedEvent) *fanfare.MatchResult {
			posted.Seq = fanfare.NewEventSeq(seq, 0)
			round := g.Begin()
			defer round.End()
			f := &fanfare.MatchResult{Posted: posted, KeptAt: m.now, MatchedAt: m.now}
			if posted.Run != nil {
				f, err = round.Merge(b.Context(), posted)
			} else {
				_, f.Gathered = plan.SplitDigests(posted.Seq, slices.Clone(hits), round.Due)
			}
			if err != nil {
				b.Fatal(err)
			}
			fresh, err := kept.Freeze(b.Context(), []*fanfare.MatchResult{f}, m.now)
			if err == nil {
				err = g.Committed(b.Context(), []*fanfare.MatchResult{f}, fresh)
			}
			if err != nil {
				b.Fatal(err)
			}
			return f
		}
		begun := time.Now()
		for n := range uint64(events) {
			freeze(n+1, &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: m.now, Event: fanfare.Event{ID: fmt.Sprint(n), Data: []byte(`{"title":"A story"}`)}})
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s/gathered")
		m.now = m.now.Add(24 * time.Hour)
		if _, err := g.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		peak := watch()
		begun = time.Now()
		f := freeze(99, m.run)
		b.ReportMetric(time.Since(begun).Seconds(), "s/run")
		b.ReportMetric(float64(peak())/(1<<20), "MB-peak")
		if f.Messages != people || f.Matched != people {
			b.Fatalf("%d messages, %d matched", f.Messages, f.Matched)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// watch measures the heap until it is asked for the maximum.
func watch() func() uint64 {
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); <-done; return most.Load() }
}
