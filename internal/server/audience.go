package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

// audiences hold hits against the conditions of senders over people.
type audiences struct {
	registry *registry.Registry

	mu    sync.Mutex
	known map[audienceKey]*condition.Audience
}

type audienceKey struct{ filter, schema string }

const (
	// maxAudiences is how many conditions stay compiled. Beyond, all are dropped and
	// compiled again when they come.
	maxAudiences = 256
	// audienceHits is how many hits are looked at together: so many people are in
	// memory at a time.
	audienceHits = 4096
)

// errUnread means that what an event is matched with could not be read, which says
// nothing about the event.
var errUnread = errors.New("what decides who gets an event could not be read")

// strictly compiles a condition as intake takes it: it names only attributes that the
// service's schema has.
func (s *audiences) strictly(service, filter string) (*condition.Audience, error) {
	svc := s.registry.Configuration().Service(service)
	if svc == nil {
		return s.compiled(filter, nil)
	}
	return s.compiled(filter, svc.SubscriberSchema)
}

func (s *audiences) compiled(filter string, schema json.RawMessage) (*condition.Audience, error) {
	key := audienceKey{filter, string(schema)}
	s.mu.Lock()
	a := s.known[key]
	s.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, err := condition.NewAudience(filter, schema)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxAudiences {
		s.known = map[audienceKey]*condition.Audience{}
	}
	s.known[key] = a
	return a, nil
}

// narrow returns those of the hits that are in the event's audience, and counts the
// others in it. What intake took is not refused because the schema has changed since.
func (s *audiences) narrow(ctx context.Context, posted *fanfare.AcceptedEvent, hits []fanfare.Hit) ([]fanfare.Hit, error) {
	a, err := s.compiled(posted.Audience.Filter, nil)
	if err != nil {
		return nil, err
	}
	inside := hits[:0]
	for rest := hits; len(rest) > 0; {
		some := rest[:min(len(rest), audienceHits)]
		rest = rest[len(some):]
		var in map[fanfare.RowID]bool
		err := retry.WhileAway(ctx, func() (err error) {
			in, err = s.members(ctx, a, some)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnread, err)
		}
		for _, hit := range some {
			if in[hit.Place] {
				inside = append(inside, hit)
			}
		}
	}
	posted.Audience.Outside = int64(len(hits) - len(inside))
	return inside, nil
}

// members tells which subscriptions are in the audience.
func (s *audiences) members(ctx context.Context, a *condition.Audience, hits []fanfare.Hit) (map[fanfare.RowID]bool, error) {
	places, people := make([]fanfare.RowID, len(hits)), make([]fanfare.RowID, len(hits))
	of := make(map[fanfare.RowID][]fanfare.RowID, len(hits)) // subscriptions of each subscriber
	for i, hit := range hits {
		places[i], people[i] = hit.Place, hit.Subscriber
		of[hit.Subscriber] = append(of[hit.Subscriber], hit.Place)
	}
	params := map[fanfare.RowID][]byte{}
	if a.ReadsParams() {
		slices.Sort(places)
		err := s.registry.Subscriptions(ctx, places, func(r *registry.SubscriptionRow) error {
			params[r.Place] = bytes.Clone(r.Params)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	in := make(map[fanfare.RowID]bool, len(hits))
	slices.Sort(people)
	err := s.registry.Subscribers(ctx, slices.Compact(people), func(r *registry.SubscriberRow) error {
		who := condition.Person{ID: r.ID, Locale: r.Locale, TimeZone: r.TimeZone, Attributes: r.Attributes}
		has := !a.ReadsParams() && a.Has(&who)
		for _, place := range of[r.Place] {
			if a.ReadsParams() {
				who.Params = params[place]
				has = a.Has(&who)
			}
			in[place] = has
		}
		return nil
	})
	return in, err
}
