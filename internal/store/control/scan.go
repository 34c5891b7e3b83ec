package control

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// ScanSubscribers visits the subscribers of a range.
func (s *Store) ScanSubscribers(ctx context.Context, of Range, visit func(*SubscriberRecord) error) error {
	return s.part.Read(ctx, func(from store.Session) error { return subscribers.scan(from, of, keptSubscribers(visit)) })
}

// ScanSubscriptions visits the subscriptions of a range.
func (s *Store) ScanSubscriptions(ctx context.Context, of Range, visit func(*SubscriptionRecord) error) error {
	return s.part.Read(ctx, func(from store.Session) error { return subscriptions.scan(from, of, keptSubscriptions(visit)) })
}

// rowsAtOnce is how many rows a scan reads at a time. A database may send all rows that a statement finds although the visitor needs only a
// few.
const rowsAtOnce = 1000

func (t table) scan(s store.Session, of Range, visit func(store.Row) error) error {
	next, last := int64(of.First), int64(of.Last)
	return inPieces(func() (rows int, err error) {
		err = s.Each(t.between, func(r store.Row) error {
			rows++
			next = r.Int64(0) + 1
			return visit(r)
		}, next, last, int64(rowsAtOnce))
		return rows, err
	})
}

// inPieces reads pieces until one has fewer rows than the limit.
func inPieces(read func() (rows int, err error)) error {
	for {
		rows, err := read()
		if err != nil || rows < rowsAtOnce {
			return err
		}
	}
}

// SubscriberRecords visits the subscribers at places.
func (s *Store) SubscriberRecords(ctx context.Context, places []fanfare.RowID, visit func(*SubscriberRecord) error) error {
	return s.part.Read(ctx, func(from store.Session) error { return subscribers.lookup(from, places, keptSubscribers(visit)) })
}

// SubscriptionRecords visits the subscriptions at places.
func (s *Store) SubscriptionRecords(ctx context.Context, places []fanfare.RowID, visit func(*SubscriptionRecord) error) error {
	return s.part.Read(ctx, func(from store.Session) error { return subscriptions.lookup(from, places, keptSubscriptions(visit)) })
}
