package control

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// States visits the archived states of keys, that is, the last events of keys whose days were archived.
func (s *Store) States(ctx context.Context, visit func(*fanfare.Last) error) error {
	return s.part.Read(ctx, func(from store.Session) error {
		return from.Each("states", func(r store.Row) error {
			at := time.Unix(0, r.Int64(4)).UTC()
			return visit(&fanfare.Last{
				Of:    fanfare.KeyRef{Topic: uint32(r.Int64(0)), Key: r.Text(1), Series: uint32(r.Int64(2))},
				Event: fanfare.EventRef{Day: fanfare.DayOf(at), Seq: fanfare.EventSeq(r.Int64(3))},
				At:    at, Data: r.Bytes(5),
			})
		})
	})
}

// KeepStates stores the last events of different keys. It does not replace a later event of the same key.
func (s *Store) KeepStates(ctx context.Context, list []fanfare.Last) error {
	return s.part.Write(ctx, func(to store.Session) error {
		return to.Insert("state_put", len(list), func(i int, v store.Values) {
			l := &list[i]
			v.Int64(int64(l.Of.Topic))
			v.Text(l.Of.Key)
			v.Int64(int64(l.Of.Series))
			v.Int64(int64(l.Event.Seq))
			v.Int64(l.At.UnixNano())
			v.Bytes(l.Data)
		})
	})
}

// DropStates deletes all keys of a series.
func (s *Store) DropStates(ctx context.Context, topic, series uint32) error {
	return s.part.Write(ctx, func(to store.Session) error { return to.Run("states_delete", int64(topic), int64(series)) })
}
