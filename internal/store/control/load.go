package control

import (
	"context"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Load visits all records. It reads subscribers and subscriptions at the same time.
func (s *Store) Load(ctx context.Context, v Loader) error {
	if err := s.part.Read(ctx, func(from store.Session) error { return loadSmall(from, v) }); err != nil {
		return err
	}
	if v.Total != nil {
		if err := s.part.Read(ctx, func(from store.Session) error { return countSubscriptions(from, v.Total) }); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return s.part.Read(ctx, func(from store.Session) error { return from.Each(subscribers.all, readSubscribers(v.Subscriber)) })
	})
	g.Go(func() error {
		return s.part.Read(ctx, func(from store.Session) error { return from.Each(subscriptions.all, readSubscriptions(v.Subscription)) })
	})
	return g.Wait()
}

// countSubscriptions adds the number of rows in each partition. It does not read the table, because that would take seconds.
func countSubscriptions(s store.Session, total func(int64)) error {
	var n int64
	for partition := range fanfare.Partitions {
		first := int64(fanfare.NewRowID(partition, 0))
		err := s.Each("subscriptions_last", func(r store.Row) error {
			if !r.IsNull(0) {
				n += r.Int64(0) - first + 1
			}
			return nil
		}, first, first+fanfare.MaxLocal)
		if err != nil {
			return err
		}
	}
	total(n)
	return nil
}

func loadSmall(s store.Session, v Loader) error {
	err := s.Each("change_seq", func(r store.Row) error {
		v.ChangeSeq(uint64(r.Int64(0)))
		return nil
	})
	if err != nil {
		return err
	}
	if err := Config(s, v.Config); err != nil {
		return err
	}
	if err := loadForgotten(s, v); err != nil {
		return err
	}
	return s.Each("filters", func(r store.Row) error {
		return v.Filter(&FilterRecord{Number: uint32(r.Int64(0)), Text: r.Text(1)})
	})
}

// Services visits the services that are not deleted, in the order of their numbers, by name and stored form.
func Services(s store.Session, visit func(name string, body []byte) error) error {
	return s.Each("services", func(r store.Row) error { return visit(r.Text(0), r.Bytes(1)) })
}

// Config visits the stored configuration. It visits services first, because the other objects belong to a service.
func Config(s store.Session, visit func(*ConfigRecord) error) error {
	return s.Each("config", func(r store.Row) error {
		return visit(&ConfigRecord{
			Kind: r.Text(0), Number: uint32(r.Int64(1)), Service: uint32(r.Int64(2)),
			Name: r.Text(3), Body: r.Bytes(4), Deleted: r.Int64(5) != 0,
		})
	})
}
