package server

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

// people are the rows behind some members, sorted by place.
type people struct {
	subscribers   []registry.SubscriberRow
	subscriptions []registry.SubscriptionRow
}

func (p *people) subscriber(place fanfare.RowID) *registry.SubscriberRow {
	i, ok := slices.BinarySearchFunc(p.subscribers, place, func(r registry.SubscriberRow, place fanfare.RowID) int {
		return int(int64(r.Place) - int64(place))
	})
	if !ok {
		return nil
	}
	return &p.subscribers[i]
}

func (p *people) subscription(place fanfare.RowID) *registry.SubscriptionRow {
	i, ok := slices.BinarySearchFunc(p.subscriptions, place, func(r registry.SubscriptionRow, place fanfare.RowID) int {
		return int(int64(r.Place) - int64(place))
	})
	if !ok {
		return nil
	}
	return &p.subscriptions[i]
}

// read fetches people and subscriptions as they are now.
func (l *loader) read(ctx context.Context, members []pending) (*people, error) {
	who := make([]fanfare.RowID, 0, len(members))
	what := make([]fanfare.RowID, 0, len(members))
	for i := range members {
		who = append(who, members[i].member.Subscriber)
		what = append(what, members[i].member.Subscriptions...)
	}
	slices.Sort(who)
	slices.Sort(what)
	p := &people{}
	var arena []byte
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		start := len(arena)
		arena = append(arena, b...)
		return arena[start:len(arena):len(arena)]
	}
	err := l.registry.Subscribers(ctx, slices.Compact(who), func(r *registry.SubscriberRow) error {
		row := *r
		row.Attributes = keep(r.Attributes)
		p.subscribers = append(p.subscribers, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.registry.Subscriptions(ctx, slices.Compact(what), func(r *registry.SubscriptionRow) error {
		row := *r
		row.Params, row.Data = keep(r.Params), keep(r.Data)
		p.subscriptions = append(p.subscriptions, row)
		return nil
	})
	return p, err
}
