package match

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxAudiences is the number of audience filters that stay compiled. Beyond it, all are
	// dropped and compiled again when they are needed.
	maxAudiences = 256
	// audienceBatch is the number of hits whose subscribers are in memory at a time.
	audienceBatch = 4096
)

// Audiences evaluates the audience filters of senders. It is safe for concurrent use.
type Audiences struct {
	registry *registry.Registry

	mu       sync.Mutex
	compiled map[audienceKey]*condition.Audience
}

type audienceKey struct{ filter, schema string }

// NewAudiences returns Audiences over the subscribers of a registry.
func NewAudiences(r *registry.Registry) *Audiences { return &Audiences{registry: r} }

// Check returns an error if a filter does not compile, or uses an attribute that is not in the
// service's schema of subscribers.
func (a *Audiences) Check(service, filter string) error {
	var schema json.RawMessage
	if svc := a.registry.Configuration().Service(service); svc != nil {
		schema = svc.SubscriberSchema
	}
	_, err := a.compile(filter, schema)
	return err
}

func (a *Audiences) compile(filter string, schema json.RawMessage) (*condition.Audience, error) {
	key := audienceKey{filter, string(schema)}
	a.mu.Lock()
	audience := a.compiled[key]
	a.mu.Unlock()
	if audience != nil {
		return audience, nil
	}
	audience, err := condition.NewAudience(filter, schema)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.compiled == nil || len(a.compiled) >= maxAudiences {
		a.compiled = map[audienceKey]*condition.Audience{}
	}
	a.compiled[key] = audience
	return audience, nil
}

// Narrow returns the hits that are in the audience of an event, and counts the others in the
// event. It reuses the memory of hits. It ignores the schema of subscribers, which may have
// changed since the event was accepted.
func (a *Audiences) Narrow(ctx context.Context, event *fanfare.AcceptedEvent, hits []fanfare.Hit) ([]fanfare.Hit, error) {
	audience, err := a.compile(event.Audience.Filter, nil)
	if err != nil {
		return nil, err
	}
	inside := hits[:0]
	for rest := hits; len(rest) > 0; {
		batch := rest[:min(len(rest), audienceBatch)]
		rest = rest[len(batch):]
		var in map[fanfare.RowID]bool
		err := retry.WhileAway(ctx, func() (err error) {
			in, err = a.evaluate(ctx, audience, batch)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnread, err)
		}
		for _, hit := range batch {
			if in[hit.Place] {
				inside = append(inside, hit)
			}
		}
	}
	event.Audience.Outside = int64(len(hits) - len(inside))
	return inside, nil
}

// evaluate reports which subscriptions are in an audience.
func (a *Audiences) evaluate(ctx context.Context, audience *condition.Audience, hits []fanfare.Hit) (map[fanfare.RowID]bool, error) {
	subscriptions, subscribers := make([]fanfare.RowID, len(hits)), make([]fanfare.RowID, len(hits))
	owned := make(map[fanfare.RowID][]fanfare.RowID, len(hits)) // subscriptions of each subscriber
	for i, hit := range hits {
		subscriptions[i], subscribers[i] = hit.Place, hit.Subscriber
		owned[hit.Subscriber] = append(owned[hit.Subscriber], hit.Place)
	}
	type details struct{ params, data []byte }
	of := map[fanfare.RowID]details{}
	if audience.ReadsSubscription() {
		slices.Sort(subscriptions)
		err := a.registry.Subscriptions(ctx, subscriptions, func(r *people.SubscriptionRow) error {
			of[r.Place] = details{bytes.Clone(r.Params), bytes.Clone(r.Data)}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	in := make(map[fanfare.RowID]bool, len(hits))
	slices.Sort(subscribers)
	err := a.registry.Subscribers(ctx, slices.Compact(subscribers), func(r *people.SubscriberRow) error {
		person := condition.Person{ID: r.ID, Locale: r.Locale, TimeZone: r.TimeZone, Attributes: r.Attributes}
		has := !audience.ReadsSubscription() && audience.Has(&person)
		for _, id := range owned[r.Place] {
			if audience.ReadsSubscription() {
				person.Params, person.Data = of[id].params, of[id].data
				has = audience.Has(&person)
			}
			in[id] = has
		}
		return nil
	})
	return in, err
}
