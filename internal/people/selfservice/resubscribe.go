package selfservice

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
)

// nothingAtAll is the reason for ending subscriptions whose owner unsubscribed from everything.
const nothingAtAll = "the owner of the address had unsubscribed from everything"

// liftUnwanted removes an address from the suppression list if its owner unsubscribed from
// everything and has now confirmed a new subscription. All earlier subscriptions of the owner
// end. Source is the source of the confirmation.
func liftUnwanted(ctx context.Context, r *registry.Registry, service, address, source string) error {
	if !r.Unsubscribed(service, address) {
		return nil
	}
	before, err := ofAddress(ctx, r, service, people.SubscriptionFilter{Subscriber: address})
	if err != nil {
		return err
	}
	var ends []fanfare.RowID
	for i := range before {
		if before[i].State != "ended" {
			ends = append(ends, before[i].Place)
		}
	}
	if len(ends) > 0 {
		if _, err := r.EndSubscriptions(ctx, service, ends, people.Ending{Source: source, Reason: "unwanted", Text: nothingAtAll}); err != nil {
			return err
		}
	}
	return r.LiftUnsubscribed(ctx, service, address, source)
}

// ofAddress lists the subscriptions to one address of a subscriber.
func ofAddress(ctx context.Context, r *registry.Registry, service string, f people.SubscriptionFilter) (all []people.Subscription, err error) {
	for after := fanfare.RowID(0); ; {
		page, next, err := r.SubscriptionPage(ctx, service, f, after, 1000)
		if err != nil {
			if fanfare.CodeOf(err) == fanfare.NotFound {
				err = nil // no subscriber has it
			}
			return all, err
		}
		for i := range page {
			if page[i].To == f.Subscriber { // a person can have several addresses, and an id that looks like one
				all = append(all, page[i])
			}
		}
		if after = next; next == 0 {
			return all, nil
		}
	}
}
