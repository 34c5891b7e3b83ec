package registry

import (
	"context"
	"math"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// PersonalRecord returns a subscriber that may have been deleted, and all its
// places.
func (r *Registry) PersonalRecord(ctx context.Context, service, id string) (people.Subscriber, []fanfare.RowID, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return people.Subscriber{}, nil, err
	}
	head, err := r.subscriberRecord(ctx, svc, id)
	if err != nil {
		return people.Subscriber{}, nil, err
	}
	if head.Flags&control.FlagMerged != 0 {
		return people.Subscriber{}, nil, r.present(ctx, head, id)
	}
	s, err := r.fullSubscriber(ctx, head)
	return s, control.PlacesOf(head.Rows()), err
}

// PersonalAudit visits the lines of the audit about a subscriber and its
// subscriptions, the latest first.
func (r *Registry) PersonalAudit(ctx context.Context, service string, places []fanfare.RowID, visit func(*audit.Entry) error) error {
	names := map[audit.Operation]bool{}
	rows, err := r.records(ctx, places)
	if err != nil {
		return r.unreadable(err)
	}
	for _, p := range places {
		names[audit.Operation{Service: service, Kind: kindSubscriber, Name: people.SubscriberID(p)}] = true
		if row := rows[p]; row != nil && row.ID != "" {
			names[audit.Operation{Service: service, Kind: kindSubscriber, Name: row.ID}] = true
		}
		err := r.opt.Store.SubscriptionRecords(ctx, r.subscriptionsOfRow.Of(p), func(s *control.SubscriptionRecord) error {
			names[audit.Operation{Service: service, Kind: kindSubscription, Name: fanfare.SubscriptionID(s.Place)}] = true
			if s.ID != "" {
				names[audit.Operation{Service: service, Kind: kindSubscription, Name: s.ID}] = true
			}
			return nil
		})
		if err != nil {
			return r.unreadable(err)
		}
	}
	var visited error
	err = r.opt.Store.AuditEntries(ctx, 0, math.MaxInt64, func(line *audit.Entry) bool {
		if names[audit.Operation{Service: line.Service, Kind: line.Kind, Name: line.Name}] {
			visited = visit(line)
		}
		return visited == nil
	})
	if err != nil {
		return r.unreadable(err)
	}
	return visited
}
