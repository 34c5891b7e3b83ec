package move_test

import (
	"context"
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

// synced is a database that is asked to keep what it has over a loss of power.
type synced struct {
	store.Database
	asked func()
}

func (s synced) Sync(context.Context) error {
	s.asked()
	return nil
}

// Else a loss of power could leave two databases that are both in charge.
func TestTheOldDatabaseIsMarkedForGoodBeforeTheNewOneIsInCharge(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		var states []string
		s := move.NewSwitch(move.Side{Name: "old", DB: synced{from.DB, func() {
			for _, db := range []store.Database{from.DB, to.DB} {
				mark, err := move.ReadMark(t.Context(), db)
				if err != nil || mark == nil {
					t.Fatalf("got %v, %v", mark, err)
				}
				states = append(states, mark.State)
			}
		}}})
		populate(t, s, today)
		if _, err := s.Move(t.Context(), to, options(t)); err != nil {
			t.Fatal(err)
		}
		if len(states) != 2 || states[0] != move.Left || states[1] != move.Full {
			t.Errorf("when it was asked to be kept for good, the marks were %v", states)
		}
	})
}
