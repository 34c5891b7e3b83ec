package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/registry"
)

// ScanSubscribers visits the subscribers of a range.
func (c *Control) ScanSubscribers(ctx context.Context, of registry.Range, visit func(*registry.SubscriberRecord) error) error {
	var buf arena
	var r registry.SubscriberRecord
	return c.scan(ctx, selectSubscribers.between, of, func(stmt *sqlite.Stmt) error {
		buf.reset()
		buf.subscriber(stmt, &r)
		buf.keepSubscriber(&r)
		return visit(&r)
	})
}

// ScanSubscriptions visits the subscriptions of a range.
func (c *Control) ScanSubscriptions(ctx context.Context, of registry.Range, visit func(*registry.SubscriptionRecord) error) error {
	var buf arena
	var r registry.SubscriptionRecord
	return c.scan(ctx, selectSubscriptions.between, of, func(stmt *sqlite.Stmt) error {
		buf.reset()
		buf.subscription(stmt, &r)
		buf.keepSubscription(&r)
		return visit(&r)
	})
}

func (c *Control) scan(ctx context.Context, between string, of registry.Range, row func(*sqlite.Stmt) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(between)
		if err != nil {
			return err
		}
		stmt.BindInt64(1, int64(of.First))
		stmt.BindInt64(2, int64(of.Last))
		return each(stmt, row)
	})
}
