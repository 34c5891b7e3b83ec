package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Switches visits all switches of a day, with the time since when they are set.
func (s *Store) Switches(ctx context.Context, of fanfare.Day, visit func(sw fanfare.Switch, since time.Time)) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("switches", func(r store.Row) error {
			visit(fanfare.Switch{
				Event:   fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(r.Int64(0))},
				Channel: uint16(r.Int64(1)),
				State:   r.Text(2),
				Reason:  r.Text(3),
			}, timeAt(r.Int64(4)))
			return nil
		})
	})
}

// SetSwitches stores switches of broadcasts of one day. An empty state removes a switch.
func (s *Store) SetSwitches(ctx context.Context, of fanfare.Day, switches []fanfare.Switch, now time.Time) error {
	return s.write(ctx, of, func(in store.Session) error {
		for _, sw := range switches {
			seq, channel := int64(sw.Event.Seq), int64(sw.Channel)
			var err error
			if sw.State == "" {
				err = in.Run("unswitch", seq, channel)
			} else {
				err = in.Run("switch", seq, channel, sw.State, sw.Reason, now.UnixNano())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
