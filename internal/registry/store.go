package registry

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Store is what the registry needs of a database. One goroutine writes (Load,
// then Commit); any number read at the same time.
type Store interface {
	// Load visits everything that is kept: first the change sequence and the
	// configuration, then the filters, then subscribers and subscriptions, each
	// of these two in ascending order of place and from a goroutine of its own.
	// It is called once, before any Commit.
	Load(ctx context.Context, v control.Loader) error

	// Commit keeps all of b in one transaction, durably, or nothing of it. An
	// error that a user can meet wraps a *fanfare.Error (DiskFull when there is no
	// room, else Unavailable) and the cause. The store is usable after an error.
	Commit(b *control.Batch) error

	// SubscriberRecords and SubscriptionRecords visit the rows at places, which
	// are sorted ascending, in that order; missing ones are skipped. The
	// strings of a record may be kept, its bytes only until visit returns.
	SubscriberRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriberRecord) error) error
	SubscriptionRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriptionRecord) error) error

	// ScanSubscribers and ScanSubscriptions visit the rows of a range in
	// ascending order until visit returns an error, which they return.
	ScanSubscribers(ctx context.Context, of control.Range, visit func(*control.SubscriberRecord) error) error
	ScanSubscriptions(ctx context.Context, of control.Range, visit func(*control.SubscriptionRecord) error) error
	// AuditRecords visits the audit from id to down to id from, the latest first,
	// until visit returns false; AuditBounds is its lowest and highest id, or 0.
	AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)

	// SuppressionRecords reads what is kept of some suppressed addresses, of which
	// service, kind and hash are known. What is not there stays as it is.
	SuppressionRecords(ctx context.Context, of []suppression.Record) error

	// File returns the bytes of a file that a template has, nil where it is not kept.
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)

	// ConsentRecords visits what is kept of the subscriptions at places, of each the
	// oldest first. Nothing of a record may be kept.
	ConsentRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.ConsentRecord) error) error

	// Scrub makes sure that names, in lower case, are nowhere in the database but
	// in rows that are kept. It may run beside Commit.
	Scrub(names [][]byte) error
}
