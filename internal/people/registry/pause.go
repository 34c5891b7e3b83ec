package registry

import (
	"context"
	"errors"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// PauseSubscription pauses a subscription with a public id. When it returns, the pause is durable,
// events that are accepted from now on do not match it, and no message for it is in flight. As
// with an end, waiting messages are not sent. Pausing it again is no error.
func (r *Registry) PauseSubscription(ctx context.Context, service, id string, check func(is *people.Subscription) error) error {
	return r.setPaused(ctx, service, id, true, check)
}

// ResumeSubscription resumes a subscription: events that are accepted from now on match it again.
// If its condition no longer fits the topic, it stays paused and the error says why. Resuming an
// active subscription is no error.
func (r *Registry) ResumeSubscription(ctx context.Context, service, id string, check func(is *people.Subscription) error) error {
	return r.setPaused(ctx, service, id, false, check)
}

func (r *Registry) setPaused(ctx context.Context, service, id string, paused bool, check func(is *people.Subscription) error) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	return r.transact(ctx, func(g *group) (silenced []fanfare.RowID, err error) {
		place, err := g.byID(svc, id)
		if err != nil {
			return nil, err
		}
		s, err := g.subscription(place)
		if err != nil {
			return nil, r.readError(err)
		}
		if check != nil {
			if err := g.checkSubscription(check, place); err != nil {
				return nil, err
			}
		}
		if s.Ended {
			return nil, &fanfare.Error{Code: fanfare.Conflict, Message: "the subscription has ended", Hint: "send the subscription again with PUT to create a new one"}
		}
		if paused {
			silenced = []fanfare.RowID{place}
		}
		if s.Paused == paused {
			return silenced, nil
		}
		if !paused {
			if err := g.checkResume(s); err != nil {
				return nil, err
			}
		}
		if s, err = g.change(place); err != nil {
			return nil, r.readError(err)
		}
		s.SetPaused(paused)
		g.operation = audit.Operation{Service: svc.Name, Action: "resume", Kind: kindSubscription, Name: auditID(s.ID, place)}
		if paused {
			g.operation.Action = "pause"
		}
		return silenced, nil
	})
}

// checkResume rejects a subscription whose condition no longer fits its topic or exceeds the
// matching budget.
func (g *group) checkResume(s *control.SubscriptionRecord) error {
	r := g.w.r
	topic := r.Snapshot().Topics[s.Topic]
	p := people.SubscriptionPut{ID: s.ID, Topic: topic.Name, Filter: r.filters.Text(s.Filter), Rule: topic.RuleName(s.Rule), Params: s.Params, State: people.StateActive}
	w := subscriptionChange{put: &p, service: topic.ServiceNumber, topic: topic, subscription: s.Place}
	if s.ID != "" {
		w.idHash = r.hash.ClientID(topic.ServiceNumber, s.ID)
	}
	if err := r.checkCondition(&p, &w); err != nil {
		e := &fanfare.Error{Code: fanfare.Conflict, Message: "the condition is no longer valid for topic " + inputerror.Quote(topic.Name) + ": " + err.Error(),
			Hint: "replace the subscription (PUT) with one that has a valid condition and the state active, or end it"}
		if cause, ok := errors.AsType[*fanfare.Error](err); ok {
			e.Message = "the condition is no longer valid for topic " + inputerror.Quote(topic.Name) + ": " + cause.Message
		}
		return e
	}
	return g.checkBudget(&w)
}

// countSubscription adds n to the counts of a subscription's configuration.
func (w *writer) countSubscription(s *control.SubscriptionRecord, n int64) {
	if s.Ended {
		return
	}
	w.usage.Channels[s.Channel] += n
	if s.Slot != 0 {
		w.usage.Waiting[s.Topic] += n
	}
	if s.Paused {
		w.usage.Paused[state.TopicRule{Topic: s.Topic, Rule: s.Rule}] += n
	}
}
