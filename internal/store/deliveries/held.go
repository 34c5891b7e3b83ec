package deliveries

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Hold stores a batch of a paused scope.
func (s *Store) Hold(ctx context.Context, batch *fanfare.Batch) error {
	text, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	return s.begin(ctx, batch.Day, func(in store.Session) error { return hold(in, []string{string(text)}) })
}

// Rehold puts batches in the place of all that are held of a day.
func (s *Store) Rehold(ctx context.Context, of fanfare.Day, batches []fanfare.Batch) error {
	texts := make([]string, len(batches))
	for i := range batches {
		text, err := json.Marshal(&batches[i])
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	return s.write(ctx, of, func(in store.Session) error {
		if err := in.Run("held_clear"); err != nil {
			return err
		}
		return hold(in, texts)
	})
}

func hold(in store.Session, batches []string) error {
	return insertNumbered(in, "held_next", "hold", len(batches), func(i int, to store.Values) { to.Text(batches[i]) })
}

// Held reads all held batches of a day with their ids.
func (s *Store) Held(ctx context.Context, of fanfare.Day) (batches []fanfare.Batch, ids []int64, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		batches, ids = nil, nil
		return in.Each("held", func(r store.Row) error {
			var batch fanfare.Batch
			err := json.Unmarshal(r.Bytes(1), &batch)
			batches, ids = append(batches, batch), append(ids, r.Int64(0))
			return err
		})
	})
	return batches, ids, err
}

// RemoveHeld deletes held batches that were handed on.
func (s *Store) RemoveHeld(ctx context.Context, of fanfare.Day, ids []int64) error {
	return s.write(ctx, of, func(in store.Session) error {
		for _, id := range ids {
			if err := in.Run("held_delete", id); err != nil {
				return err
			}
		}
		return nil
	})
}
