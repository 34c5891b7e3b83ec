package registry

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Subscriber returns the subscriber with an id. A deleted or merged subscriber is not found; the
// hint names the subscriber into which it was merged.
func (r *Registry) Subscriber(ctx context.Context, service, id string) (people.Subscriber, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return people.Subscriber{}, err
	}
	head, err := r.subscriberRecord(ctx, svc, id)
	if err != nil {
		return people.Subscriber{}, err
	}
	if err := r.checkAvailable(ctx, head, id); err != nil {
		return people.Subscriber{}, err
	}
	return r.fullSubscriber(ctx, head)
}

// subscriberRecord finds the row that has, or had, a public id.
func (r *Registry) subscriberRecord(ctx context.Context, svc *catalog.ServiceSnapshot, id string) (*control.SubscriberRecord, error) {
	rows, err := r.records(ctx, r.candidates(svc.Number, id))
	if err != nil {
		return nil, r.readError(err)
	}
	for _, s := range rows {
		if people.HasPublicID(s, svc.Number, id) && s.Flags&control.FlagErasing == 0 {
			return s, nil
		}
	}
	return nil, people.UnknownSubscriber(id)
}

// candidates returns the rows that may have the id.
func (r *Registry) candidates(service uint32, id string) []fanfare.RowID {
	if place, ok := people.ParseSubscriberID(id); ok {
		return []fanfare.RowID{place}
	}
	first, others := r.subscribers.Lookup(r.hash.SubscriberID(service, id))
	if first == 0 {
		return nil
	}
	return append(others, first)
}

// checkAvailable rejects a subscriber that was merged or deleted.
func (r *Registry) checkAvailable(ctx context.Context, s *control.SubscriberRecord, id string) error {
	switch {
	case s.Flags&control.FlagMerged != 0:
		heads, err := r.records(ctx, []fanfare.RowID{s.Subscriber})
		if err != nil {
			return r.readError(err)
		}
		if head := heads[s.Subscriber]; head != nil {
			return mergedError(id, head)
		}
		return people.UnknownSubscriber(id)
	case s.Flags&control.FlagDeleted != 0:
		return &fanfare.Error{Code: fanfare.NotFound, Message: "subscriber " + inputerror.Quote(id) + " was deleted",
			Hint: "put the subscriber again to restore it, or erase it"}
	}
	return nil
}

func mergedError(id string, into *control.SubscriberRecord) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: "subscriber " + inputerror.Quote(id) + " was merged into another",
		Hint: "merged_into: " + people.PublicSubscriberID(into)}
}

func (r *Registry) fullSubscriber(ctx context.Context, head *control.SubscriberRecord) (people.Subscriber, error) {
	list := head.Rows()
	rows := map[fanfare.RowID]*control.SubscriberRecord{head.Place: head}
	if len(list) > 1 {
		var err error
		if rows, err = r.records(ctx, control.PlacesOf(list)); err != nil {
			return people.Subscriber{}, r.readError(err)
		}
	}
	return people.NewSubscriber(head, list, rows), nil
}

// SubscriberPlaces returns the rows with the history of a subscriber: by id all its rows,
// including those of merged subscribers; by address only the row of the address. Deleted
// subscribers are found, erased ones are not.
func (r *Registry) SubscriberPlaces(ctx context.Context, service, addressOrID string) ([]fanfare.RowID, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return nil, err
	}
	s, err := r.subscriberRecord(ctx, svc, addressOrID)
	if err == nil {
		if s.Flags&control.FlagMerged != 0 {
			return nil, r.checkAvailable(ctx, s, addressOrID)
		}
		return control.PlacesOf(s.Rows()), nil
	}
	if fanfare.CodeOf(err) != fanfare.NotFound {
		return nil, err
	}
	row, err := r.addressRecord(ctx, svc, addressOrID)
	if err == nil && row == nil {
		err = people.UnknownSubscriber(addressOrID)
	}
	if err != nil {
		return nil, err
	}
	return []fanfare.RowID{row.Place}, nil
}

// FindSubscriber returns the row of one address: the named one, or the first one of the
// subscriber.
func (r *Registry) FindSubscriber(ctx context.Context, service, addressOrID string) (fanfare.RowID, error) {
	places, err := r.SubscriberPlaces(ctx, service, addressOrID)
	if err != nil || len(places) == 1 {
		return append(places, 0)[0], err
	}
	rows, err := r.records(ctx, places)
	if err != nil {
		return 0, r.readError(err)
	}
	for _, row := range rows {
		if row.Subscriber != 0 {
			continue
		}
		for _, p := range row.Rows() {
			if rows[p.Place] != nil && rows[p.Place].HasAddress() {
				return p.Place, nil
			}
		}
	}
	return places[0], nil
}

// addressRecord finds the row that has an address, or nil. Invalid addresses have no row.
func (r *Registry) addressRecord(ctx context.Context, svc *catalog.ServiceSnapshot, address string) (*control.SubscriberRecord, error) {
	kind := addresskind.OfAddress(address)
	normal, bad := r.normal(kind, address)
	if bad != nil {
		return nil, nil //nolint:nilerr // an invalid address has no subscriber
	}
	first, others := r.addresses.Lookup(r.hash.Address(svc.Number, kind, normal))
	if first == 0 {
		return nil, nil
	}
	rows, err := r.records(ctx, append(others, first))
	if err != nil {
		return nil, r.readError(err)
	}
	for _, s := range rows {
		if s.Service == svc.Number && s.HasAddress() && s.Kind == kind && s.Address == normal {
			return s, nil
		}
	}
	return nil, nil
}

// AddressPlaces returns the rows of an address in any spelling, by row id.
func (r *Registry) AddressPlaces(ctx context.Context, service, address string) (places []fanfare.RowID, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return nil, err
	}
	kind := addresskind.OfAddress(address)
	normal, bad := r.normal(kind, address)
	if bad != nil {
		return nil, nil //nolint:nilerr // an invalid address has no subscriber
	}
	folded := suppression.Fold(kind, normal)
	rows, err := r.records(ctx, r.rowsWithAddressHash(svc.Number, kind, folded))
	if err != nil {
		return nil, r.readError(err)
	}
	for place, s := range rows {
		if s.Service == svc.Number && s.HasAddress() && s.Kind == kind && suppression.Fold(kind, s.Address) == folded {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places, nil
}

// AddressRow returns the row of an address. The address of a deleted subscriber is not found.
func (r *Registry) AddressRow(ctx context.Context, service, address string) (fanfare.RowID, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return 0, err
	}
	row, err := r.addressRecord(ctx, svc, address)
	if err != nil {
		return 0, err
	}
	if row == nil {
		return 0, people.UnknownSubscriber(address)
	}
	heads, err := r.records(ctx, []fanfare.RowID{row.Head()})
	if err != nil {
		return 0, r.readError(err)
	}
	head := heads[row.Head()]
	if head == nil || head.Flags&control.FlagErasing != 0 {
		return 0, people.UnknownSubscriber(address)
	}
	return row.Place, r.checkAvailable(ctx, head, address)
}

// SubscriberByAddress returns the subscriber that has an address.
func (r *Registry) SubscriberByAddress(ctx context.Context, service, address string) (people.Subscriber, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return people.Subscriber{}, err
	}
	row, err := r.addressRecord(ctx, svc, address)
	if err != nil {
		return people.Subscriber{}, err
	}
	if row == nil {
		return people.Subscriber{}, people.UnknownSubscriber(address)
	}
	heads, err := r.records(ctx, []fanfare.RowID{row.Head()})
	if err != nil {
		return people.Subscriber{}, r.readError(err)
	}
	head := heads[row.Head()]
	if head == nil || head.Flags&control.FlagDeleted != 0 {
		return people.Subscriber{}, people.UnknownSubscriber(address)
	}
	return r.fullSubscriber(ctx, head)
}

// maxScanRows is the maximum number of rows that are scanned for a page. A page may therefore be
// short even if more follow; next is then set.
const maxScanRows = 100_000

// errEnough ends a scan.
var errEnough = errors.New("registry: enough")

// SubscriberPage lists subscribers by row id, those after the row after. next is the start of the
// next page, 0 at the end.
func (r *Registry) SubscriberPage(ctx context.Context, service string, after fanfare.RowID, limit int) (page []people.Subscriber, next fanfare.RowID, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return nil, 0, err
	}
	var heads []*control.SubscriberRecord
	seen := 0
	err = r.opt.Store.ScanSubscribers(ctx, control.Range{First: after + 1, Last: ^fanfare.RowID(0)}, func(s *control.SubscriberRecord) error {
		if len(heads) == limit || seen == maxScanRows {
			next = after
			return errEnough
		}
		seen++
		after = s.Place
		if s.Service == svc.Number && s.Subscriber == 0 && s.Flags&(control.FlagDeleted|control.FlagErasing|control.FlagErased) == 0 {
			heads = append(heads, cloneRecord(s))
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, 0, r.readError(err)
	}
	var others []fanfare.RowID
	for _, h := range heads {
		if len(h.RowsJSON) > 0 {
			others = append(others, control.PlacesOf(h.Rows())...)
		}
	}
	rows, err := r.records(ctx, others)
	if err != nil {
		return nil, 0, r.readError(err)
	}
	page = make([]people.Subscriber, len(heads))
	for i, h := range heads {
		rows[h.Place] = h
		page[i] = people.NewSubscriber(h, h.Rows(), rows)
	}
	return page, next, nil
}

// Subscribers visits the rows at places, which must be sorted, in that order. Missing rows are
// skipped. It stops at an error of visit and returns it.
//
// A further address of a subscriber has a row of its own; its id, locale, time zone and attributes
// come from the subscriber's first row. From the first such row on, rows are collected, so that
// other calls pay nothing for it.
func (r *Registry) Subscribers(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriberRow) error) error {
	var row people.SubscriberRow
	var late []people.SubscriberRow
	var owners []fanfare.RowID // of late; 0 for a first row
	err := r.opt.Store.SubscriberRecords(ctx, places, func(s *control.SubscriberRecord) error {
		row = people.SubscriberRow{Place: s.Place, ID: people.PublicSubscriberID(s), Address: s.Address, Locale: s.Locale,
			TimeZone: s.TimeZone, Attributes: s.Attributes}
		if s.Flags&control.FlagErasing != 0 {
			row.Address = "" // no more messages are sent to it
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

// records reads rows. Row id 0 is never used.
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

// cloneRecord copies a row that is valid only during a visit.
func cloneRecord(s *control.SubscriberRecord) *control.SubscriberRecord {
	kept := *s
	kept.Attributes, kept.RowsJSON = bytes.Clone(s.Attributes), bytes.Clone(s.RowsJSON)
	return &kept
}

// PersonalRecord returns a subscriber, even a deleted one, and all its rows.
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
		return people.Subscriber{}, nil, r.checkAvailable(ctx, head, id)
	}
	s, err := r.fullSubscriber(ctx, head)
	return s, control.PlacesOf(head.Rows()), err
}

// PersonalAudit visits the audit entries about a subscriber and its subscriptions, the latest
// first.
func (r *Registry) PersonalAudit(ctx context.Context, service string, places []fanfare.RowID, visit func(*audit.Entry) error) error {
	names := map[audit.Operation]bool{}
	rows, err := r.records(ctx, places)
	if err != nil {
		return r.readError(err)
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
			return r.readError(err)
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
		return r.readError(err)
	}
	return visited
}
