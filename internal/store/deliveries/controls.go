package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Controls visits all controls of a day, with the time since when they are set.
func (s *Store) Controls(ctx context.Context, of fanfare.Day, visit func(c fanfare.Control, since time.Time)) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("controls", func(r store.Row) error {
			visit(fanfare.Control{
				Event: fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(r.Int64(0))},
				Name:  fanfare.ControlName(r.Text(1)),
				Value: r.Text(2),
			}, timeAt(r.Int64(3)))
			return nil
		})
	})
}

// SetControls stores controls of broadcasts of one day, all or none. An empty value removes a control.
func (s *Store) SetControls(ctx context.Context, of fanfare.Day, controls []fanfare.Control, now time.Time) error {
	return s.write(ctx, of, func(in store.Session) error { return setControls(in, controls, now) })
}

func setControls(in store.Session, controls []fanfare.Control, now time.Time) error {
	for _, c := range controls {
		var err error
		if c.Value == "" {
			err = in.Run("uncontrol", int64(c.Event.Seq), string(c.Name))
		} else {
			err = in.Run("control", int64(c.Event.Seq), string(c.Name), c.Value, now.UnixNano())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holds are the controls of events that are frozen and must not leave yet.
func holds(events []*fanfare.MatchResult) (controls []fanfare.Control) {
	for _, e := range events {
		if e.Hold != "" {
			controls = append(controls, fanfare.Control{Event: e.Posted.Ref(), Name: fanfare.ControlHold, Value: e.Hold})
		}
	}
	return controls
}
