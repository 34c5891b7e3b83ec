package digest_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

func TestRunIgnoresARemovedDay(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir(), store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept := deliveries.New(db)
	m := &morning{clock: clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}}
	g := digest.New(digest.Options{
		Store: kept, Slots: m, Clock: m, Live: func(fanfare.RowID) bool { return true }, Logger: slog.New(slog.DiscardHandler),
		Topic:   func(string, string) (digest.Topic, bool) { return digest.Topic{Template: 7, Max: 50}, true },
		Publish: func(_ context.Context, p *fanfare.AcceptedEvent) error { m.run = p; return nil },
	})
	keep := func(f *fanfare.MatchResult) {
		t.Helper()
		fresh, err := kept.Freeze(t.Context(), []*fanfare.MatchResult{f}, m.now)
		if err == nil {
			err = g.Committed(t.Context(), []*fanfare.MatchResult{f}, fresh)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint64(2) { // on two days, for one run
		if n == 1 {
			m.now = m.now.Add(14 * time.Hour)
		}
		round := g.Begin()
		f := &fanfare.MatchResult{KeptAt: m.now, MatchedAt: m.now, Posted: &fanfare.AcceptedEvent{Service: "news", Topic: "story", ReceivedAt: m.now, Seq: fanfare.NewEventSeq(n+1, 0)}}
		_, f.Gathered = plan.SplitDigests(f.Posted.Seq, []fanfare.Hit{{Place: 1, Subscriber: 1, Channel: 1, Rule: -1, Slot: 1}}, round.Due)
		keep(f)
		round.End()
	}
	if err := kept.Remove(t.Context(), fanfare.DayOf(m.now)-1); err != nil {
		t.Fatal(err)
	}
	m.now = m.now.Add(24 * time.Hour)
	if _, err := g.Step(t.Context()); err != nil || m.run == nil {
		t.Fatalf("published %v, %v", m.run, err)
	}
	m.run.Seq = fanfare.NewEventSeq(9, 0)
	round := g.Begin()
	defer round.End()
	f, err := round.Merge(t.Context(), m.run)
	if err != nil {
		t.Fatal(err)
	}
	if items := itemsOf(t, f); len(items) != 1 || items[0].Posted.Seq != fanfare.NewEventSeq(2, 0) || f.Messages != 1 {
		t.Errorf("merged %+v", f)
	}
	keep(f)
	if _, err := g.Step(t.Context()); err != nil {
		t.Error(err)
	}
	days, err := kept.Days(t.Context())
	for _, day := range days {
		if waiting, err := kept.Pending(t.Context(), day); err != nil || len(waiting) > 0 {
			t.Errorf("on %s %v waits, %v", day, waiting, err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// itemsOf returns the events of a result.
func itemsOf(t *testing.T, f *fanfare.MatchResult) (items []fanfare.RunItem) {
	t.Helper()
	if f.Items == nil {
		return nil
	}
	err := f.Items(func(item fanfare.RunItem) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return items
}
