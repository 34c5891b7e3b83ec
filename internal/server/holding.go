package server

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/retry"
)

// hold puts in force that some of what was frozen waits for approval, before its
// batches are on the bus. Of what an earlier try has frozen the store knows
// whether it still waits: it may have been approved since.
func (m *matching) hold(ctx context.Context, day fanfare.Day, frozen []*fanfare.MatchResult, fresh []bool) error {
	var held []*fanfare.MatchResult
	again := map[fanfare.EventRef]*fanfare.MatchResult{}
	for i, f := range frozen {
		switch {
		case !fresh[i]:
			again[f.Posted.Ref()] = f
		case f.Hold != "":
			held = append(held, f)
		}
	}
	if len(again) > 0 {
		err := retry.WhileAway(ctx, func() error {
			return m.store.Controls(ctx, day, func(c fanfare.Control, _ time.Time) {
				if f := again[c.Event]; f != nil && c.Name == fanfare.ControlHold {
					f.Hold = c.Value
					held = append(held, f)
					delete(again, c.Event)
				}
			})
		})
		if err != nil {
			return err
		}
	}
	if len(held) > 0 {
		m.switches.Held(held)
	}
	return nil
}
