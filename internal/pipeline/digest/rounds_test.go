package digest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

type setClock struct{ now time.Time }

func (c *setClock) Now() time.Time { return c.now }

// daily has one slot with the number 1, due at eight.
type daily struct{}

func (daily) Slot(number uint16) (Slot, bool) {
	c, err := cadence.Parse("daily 08:00")
	return Slot{Number: 1, Service: "news", Cadence: c, Zone: time.UTC}, number == 1 && err == nil
}
func (daily) Slots() []Slot                              { return nil }
func (daily) PendingMoves() []Move                       { return nil }
func (daily) ConfirmMoves(context.Context, []Move) error { return nil }

func TestRunWaitsForRoundsThatMayAddToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eight := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		clock := &setClock{eight.Add(-time.Second)}
		var published []*fanfare.AcceptedEvent
		g := New(Options{Slots: daily{}, Clock: clock, Publish: func(_ context.Context, p *fanfare.AcceptedEvent) error {
			published = append(published, p)
			return nil
		}})
		g.addWaiting(fanfare.DayOf(eight), deliveries.Waiting{Slot: 1, Due: eight, Service: "news"})
		before := g.Begin()
		clock.now = eight
		go func() {
			if _, err := g.publish(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if len(published) != 0 {
			t.Fatal("the run is published while a round that began before it is due is under way")
		}
		clock.now = eight.Add(-time.Hour) // a clock that steps back
		after := g.Begin()
		if due, ok := after.Due(1); !ok || !due.Equal(eight.AddDate(0, 0, 1)) {
			t.Errorf("a round that begins after the slot was closed adds to the run of %v", due)
		}
		if due, ok := before.Due(1); !ok || due.Before(eight) {
			t.Errorf("the round before adds to the run of %v", due)
		}
		before.End()
		synctest.Wait()
		if len(published) != 1 {
			t.Fatalf("%d runs are published when the round is over", len(published))
		}
		p := published[0]
		if p.Service != "news" || p.Lane != fanfare.Bulk || !p.ReceivedAt.Equal(eight) || !p.Expires.Equal(eight.AddDate(0, 0, 7)) ||
			p.Run.Slot != 1 || p.Run.Cadence != "daily 08:00" || p.Run.Zone != "UTC" || p.Event.ID != p.Run.ID() {
			t.Errorf("published %+v of %+v", p, p.Run)
		}
		after.End()
		if _, err := g.publish(t.Context()); err != nil || len(published) != 1 {
			t.Errorf("the next step published %d runs, %v", len(published), err)
		}
	})
}
