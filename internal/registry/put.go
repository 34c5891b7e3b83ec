package registry

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
)

// PutSubscriptions makes each put so, and is durable when it returns. It writes
// results[i] for puts[i]; results must be as long as puts. Members that are
// wrong have their own error and do not hold up the others. The error is for
// what concerns all: the service is unknown, or nothing could be kept.
//
// A put is the same subscription as before if it has the same ID, or, without
// one, the same address, topic, channel and condition. Then nothing new is
// made: what differs is changed in place. An ID that comes with another topic or
// address ends the subscription that had it and begins a new one under that ID;
// so does one whose subscription has ended.
//
// The puts and what they point to must not be changed until it returns.
func (r *Registry) PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	if len(results) != len(puts) {
		return fmt.Errorf("registry: %d results for %d puts", len(results), len(puts))
	}
	for from := 0; from < len(puts); from += maxJob {
		to := min(from+maxJob, len(puts))
		err := r.putSome(ctx, service, puts[from:to], results[from:to])
		if err == nil {
			continue
		}
		if from == 0 {
			return err
		}
		for i := range results[from:] { // the members before are kept
			results[from+i] = people.PutResult{Err: err}
		}
		return nil
	}
	return nil
}

func (r *Registry) putSome(ctx context.Context, name string, puts []people.SubscriptionPut, results []people.PutResult) error {
	over, stop := r.patience()
	defer stop()
	p, err := r.begin(ctx, name, puts, results, nil, over)
	if err != nil {
		return err
	}
	return p.wait(over)
}

// EndSubscription ends a subscription, named by its public id. When it returns,
// the end is durable, no event that is accepted from now on matches it, and no
// letter for it is on the wire. To end it again is no error.
func (r *Registry) EndSubscription(ctx context.Context, service, id, reason string) error {
	return r.EndSubscriptionIf(ctx, service, id, reason, nil)
}

// EndSubscriptionIf is EndSubscription unless check, which is asked with the
// subscription as it is, has an error.
func (r *Registry) EndSubscriptionIf(ctx context.Context, service, id, reason string, check func(is *people.Subscription) error) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	return r.end(ctx, svc, &end{id: id, reason: reason, check: check})
}

// EndByPlace is EndSubscription for who has the place, such as a signed link.
func (r *Registry) EndByPlace(ctx context.Context, place fanfare.RowID, reason string) error {
	if place == 0 {
		return people.UnknownSubscription("")
	}
	return r.end(ctx, nil, &end{place: place, reason: reason})
}

func (r *Registry) end(ctx context.Context, svc *catalog.ServiceSnapshot, e *end) error {
	e.reason = catalog.CleanReason(e.reason)
	if err := r.writer.submit(ctx, &job{svc: svc, actor: audit.ActorOf(ctx), end: e}); err != nil {
		return err
	}
	if r.opt.AfterEnd != nil {
		r.opt.AfterEnd(e.place)
	}
	return nil
}
