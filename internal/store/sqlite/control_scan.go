package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/registry"
)

// ScanSubscribers visits the subscribers of a range.
func (c *Control) ScanSubscribers(ctx context.Context, of registry.Range, visit func(*registry.SubscriberRecord) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(selectSubscribers.between)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(of.First))
		stmt.BindInt64(2, int64(of.Last))
		var buf arena
		var r registry.SubscriberRecord
		return each(stmt, func(stmt *sqlite.Stmt) error {
			buf.reset()
			buf.subscriber(stmt, &r)
			buf.keepSubscriber(&r)
			return visit(&r)
		})
	})
}

const scanOneSubscriber = `SELECT ` + subscriptionColumns + ` FROM subscriptions WHERE place BETWEEN ?1 AND ?2 AND subscriber = ?3 ORDER BY place`

// ScanSubscriptions visits the subscriptions of a range. There is no index by
// subscriber: those of one are found by reading a partition, some milliseconds.
func (c *Control) ScanSubscriptions(ctx context.Context, of registry.Range, visit func(*registry.SubscriptionRecord) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		query := selectSubscriptions.between
		if of.Subscriber != 0 {
			query = scanOneSubscriber
		}
		stmt, err := conn.Prepare(query)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(of.First))
		stmt.BindInt64(2, int64(of.Last))
		if of.Subscriber != 0 {
			stmt.BindInt64(3, int64(of.Subscriber))
		}
		var buf arena
		var r registry.SubscriptionRecord
		return each(stmt, func(stmt *sqlite.Stmt) error {
			buf.reset()
			buf.subscription(stmt, &r)
			buf.keepSubscription(&r)
			return visit(&r)
		})
	})
}
