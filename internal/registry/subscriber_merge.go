package registry

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// MergeSubscriber moves all of one subscriber to another: addresses, what goes to
// them, and history. Nothing is copied: the rows stay where they are and belong to
// the other from then on, in whatever partition they lie. What the other does not
// say of itself (locale, time zone, single attributes) it takes over. The former
// id is not found any more; who asks for it is told the other's. To merge again
// what was merged is no error.
func (r *Registry) MergeSubscriber(ctx context.Context, service, id, into string) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	err = r.changeAlone(ctx, func(g *group) ([]fanfare.RowID, error) {
		other, err := g.present(svc.Number, into)
		if err != nil {
			return nil, inputerror.WithPointer("/into", err)
		}
		from, err := g.named(svc.Number, id)
		if err != nil {
			return nil, err
		}
		switch {
		case from == nil:
			return nil, people.UnknownSubscriber(id)
		case from.Place == other.Place:
			return nil, inputerror.Invalid("/into", "name another subscriber", "a subscriber cannot be merged into itself")
		case from.Flags&control.FlagMerged == 0:
			if err := g.merge(from, other); err != nil {
				return nil, err
			}
			g.deed = subscriberDeed(svc, "merge", from.ID, from.Place)
		case from.Subscriber != other.Place:
			_, err := g.present(svc.Number, id)
			return nil, err
		}
		s, err = g.shown(other.Place)
		return nil, err
	})
	return s, err
}

// merge makes all rows of one subscriber the other's.
func (g *group) merge(from, other *control.SubscriberRecord) error {
	moving := from.Rows()
	list := append(other.Rows(), moving...)
	addresses := 0
	for _, p := range list {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return g.w.r.unreadable(err)
		}
		if row.HasAddress() {
			addresses++
		}
	}
	if addresses > people.MaxAddresses {
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("together they have %d addresses, more than %d", addresses, people.MaxAddresses), Hint: "take some away first"}
	}
	for _, p := range moving {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return g.w.r.unreadable(err)
		}
		row.Subscriber = other.Place
		g.touch(row)
	}
	if other.Locale == "" {
		other.Locale = from.Locale
	}
	if other.TimeZone == "" {
		other.TimeZone = from.TimeZone
	}
	attributes, err := people.MergeAttributes(other.Attributes, from.Attributes)
	if err != nil {
		return err
	}
	if err := g.w.r.Snapshot().SubscriberSchemas.CheckAttributes(other.Service, attributes); err != nil {
		return err
	}
	other.Attributes = attributes
	other.SetRows(list)
	g.touch(other)
	from.Flags = from.Flags&^control.FlagDeleted | control.FlagMerged
	from.RowsJSON, from.Locale, from.TimeZone, from.Attributes = nil, "", "", nil
	return g.rezone(other.Place)
}
