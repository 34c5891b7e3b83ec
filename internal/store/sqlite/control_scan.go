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

// ScanSubscriptions visits the subscriptions of a range.
func (c *Control) ScanSubscriptions(ctx context.Context, of registry.Range, visit func(*registry.SubscriptionRecord) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(selectSubscriptions.between)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(of.First))
		stmt.BindInt64(2, int64(of.Last))
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
