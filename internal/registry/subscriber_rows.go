package registry

import (
	"bytes"
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// Subscribers visits the rows at places, which must be sorted ascending, in that
// order. Missing ones are skipped. An error of visit ends it and is returned.
//
// A further address of a subscriber has a row of its own; id, locale, time zone
// and attributes come from the subscriber's. Rows behind the first such one are
// gathered, so that the others cost nothing more.
func (r *Registry) Subscribers(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriberRow) error) error {
	var row people.SubscriberRow
	var late []people.SubscriberRow
	var owners []fanfare.RowID // of late, 0 for a row of its own
	err := r.opt.Store.SubscriberRecords(ctx, places, func(s *control.SubscriberRecord) error {
		row = people.SubscriberRow{Place: s.Place, ID: people.PublicSubscriberID(s), Address: s.Address, Locale: s.Locale,
			TimeZone: s.TimeZone, Attributes: s.Attributes}
		if s.Flags&control.FlagErasing != 0 {
			row.Address = "" // nothing leaves for it any more
		}
		if s.Subscriber == 0 && late == nil {
			return visit(&row)
		}
		row.Attributes = bytes.Clone(s.Attributes)
		late, owners = append(late, row), append(owners, s.Subscriber)
		return nil
	})
	if err != nil || late == nil {
		return err
	}
	heads, err := r.records(ctx, owners)
	if err != nil {
		return err
	}
	for i := range late {
		if h := heads[owners[i]]; h != nil {
			late[i].ID, late[i].Locale, late[i].TimeZone, late[i].Attributes = people.PublicSubscriberID(h), h.Locale, h.TimeZone, h.Attributes
		}
		if err := visit(&late[i]); err != nil {
			return err
		}
	}
	return nil
}

// records reads rows by place; 0 is nobody's.
func (r *Registry) records(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]*control.SubscriberRecord, error) {
	found := make(map[fanfare.RowID]*control.SubscriberRecord, len(places))
	err := r.opt.Store.SubscriberRecords(ctx, control.SortPlaces(append([]fanfare.RowID(nil), places...)), func(s *control.SubscriberRecord) error {
		found[s.Place] = cloneRecord(s)
		return nil
	})
	return found, err
}

func (r *Registry) owners(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]people.Owner, error) {
	owners := make(map[fanfare.RowID]people.Owner, len(places))
	err := r.Subscribers(ctx, control.SortPlaces(places), func(s *people.SubscriberRow) error {
		owners[s.Place] = people.Owner{ID: s.ID, Address: s.Address}
		return nil
	})
	return owners, err
}

// cloneRecord copies a row out of what a visit lends.
func cloneRecord(s *control.SubscriberRecord) *control.SubscriberRecord {
	kept := *s
	kept.Attributes, kept.RowsJSON = bytes.Clone(s.Attributes), bytes.Clone(s.RowsJSON)
	return &kept
}
