package deliveries

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// advance stores which events are the last ones of their keys: of several events of a key, the
// highest. It writes in the same order in every transaction.
func advance(in store.Session, fresh []*fanfare.MatchResult) error {
	type place struct {
		topic uint32
		key   string
	}
	last := map[place]*fanfare.MatchResult{}
	for _, f := range fresh {
		if f.Key == nil {
			continue
		}
		at := place{f.Key.Topic, f.Key.Key}
		if known := last[at]; known == nil || f.Posted.Seq > known.Posted.Seq {
			last[at] = f
		}
	}
	if len(last) == 0 {
		return nil
	}
	rows := make([]*fanfare.MatchResult, 0, len(last))
	for _, f := range last {
		rows = append(rows, f)
	}
	slices.SortFunc(rows, func(a, b *fanfare.MatchResult) int {
		return cmp.Or(cmp.Compare(a.Key.Topic, b.Key.Topic), cmp.Compare(a.Key.Key, b.Key.Key))
	})
	return in.Insert("advance", len(rows), func(i int, to store.Values) {
		to.Int64(int64(rows[i].Key.Topic))
		to.Text(rows[i].Key.Key)
		to.Int64(int64(rows[i].Key.Series))
		to.Int64(int64(rows[i].Posted.Seq))
	})
}

// States visits the last events of the keys that advanced on a day and were not
// carried over since. The data of a damaged event is null.
func (s *Store) States(ctx context.Context, of fanfare.Day, visit func(*fanfare.Last) error) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("advances", func(r store.Row) error { return visitLast(of, r, visit) })
	})
}

// SomeStates is States for the first of them.
func (s *Store) SomeStates(ctx context.Context, of fanfare.Day, limit int, visit func(*fanfare.Last) error) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("advances_some", func(r store.Row) error { return visitLast(of, r, visit) }, int64(limit))
	})
}

// StatesOf is States for some keys.
func (s *Store) StatesOf(ctx context.Context, of fanfare.Day, keys []fanfare.KeyRef, visit func(*fanfare.Last) error) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.EachOf("advances_of", len(keys), func(i int) []any { return []any{int64(keys[i].Topic), keys[i].Key} },
			func(_ int, r store.Row) error { return visitLast(of, r, visit) })
	})
}

func visitLast(of fanfare.Day, r store.Row, visit func(*fanfare.Last) error) error {
	var posted fanfare.AcceptedEvent
	ref := fanfare.EventRef{Day: of, Seq: fanfare.EventSeq(r.Int64(3))}
	if err := decodePosted(ref, r.Bytes(4), &posted); err != nil {
		// The previous value of the key is unknown: with null, no condition is true for a change from it. An older value could
		// make one true.
		posted = fanfare.AcceptedEvent{ReceivedAt: of.Time(), Event: fanfare.Event{Data: json.RawMessage("null")}}
	}
	return visit(&fanfare.Last{
		Of:    fanfare.KeyRef{Topic: uint32(r.Int64(0)), Key: r.Text(1), Series: uint32(r.Int64(2))},
		Event: ref, At: posted.ReceivedAt, Data: posted.Event.Data,
	})
}

// DropStates deletes states of a day that were archived. It keeps states that have advanced
// since they were read.
func (s *Store) DropStates(ctx context.Context, of fanfare.Day, kept []fanfare.Last) error {
	return s.write(ctx, of, func(in store.Session) error {
		for i := range kept {
			l := &kept[i]
			if err := in.Run("advance_delete", int64(l.Of.Topic), l.Of.Key, int64(l.Event.Seq)); err != nil {
				return err
			}
		}
		return nil
	})
}
