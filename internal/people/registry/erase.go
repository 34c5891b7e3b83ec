package registry

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// An Erasure is the erasure of a subscriber. It is durable once it has begun, and is deleted
// at its end.
type Erasure struct {
	Subscriber fanfare.RowID   `json:"subscriber"`
	Service    string          `json:"service"`
	Places     []fanfare.RowID `json:"places"` // all rows, ascending
	Ended      int             `json:"ended"`  // number of subscriptions that it ended
	// Names must not be found in any file afterwards: addresses, their local parts, and ids that
	// clients chose. ASCII characters are in lower case and are found in any case. Other
	// characters are listed as they were written, and once more in lower case.
	Names []string `json:"names"`
}

// minNameBytes is the minimum length of a local part or an id that is searched for. Every file
// contains shorter ones by chance.
const minNameBytes = 4

type erasures struct {
	mu  sync.Mutex
	all map[fanfare.RowID]Erasure
}

func (e *erasures) load(r *control.ErasureRecord) error {
	var one Erasure
	if err := json.Unmarshal(r.Body, &one); err != nil {
		return err
	}
	e.add(one)
	return nil
}

func (e *erasures) add(one Erasure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[fanfare.RowID]Erasure{}
	}
	e.all[one.Subscriber] = one
}

func (e *erasures) remove(place fanfare.RowID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, place)
}

// Erasures lists the erasures that have begun and not finished.
func (r *Registry) Erasures() []Erasure {
	r.erasures.mu.Lock()
	defer r.erasures.mu.Unlock()
	all := make([]Erasure, 0, len(r.erasures.all))
	for _, one := range r.erasures.all {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Erasure) int { return int(int64(a.Subscriber) - int64(b.Subscriber)) })
	return all
}

// BeginErasure ends all subscriptions of a subscriber and hides the subscriber. If suppress is
// set, its addresses are added to the suppression list. When it returns, this is durable and no
// message for its subscriptions is in flight. It also erases deleted subscribers.
func (r *Registry) BeginErasure(ctx context.Context, service, id string, suppress bool) (e Erasure, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return e, err
	}
	err = r.transactAlone(ctx, func(g *group) ([]fanfare.RowID, error) {
		head, err := g.subscriberByID(svc.Number, id)
		switch {
		case err != nil:
			return nil, err
		case head == nil:
			return nil, people.UnknownSubscriber(id)
		case head.Flags&control.FlagMerged != 0:
			_, err := g.availableSubscriber(svc.Number, id)
			return nil, err
		}
		e = Erasure{Subscriber: head.Place, Service: service, Places: control.PlacesOf(head.Rows())}
		var ended []fanfare.RowID
		for _, p := range e.Places {
			gone, err := g.hideRow(p, &e, suppress)
			if err != nil {
				return nil, err
			}
			ended = append(ended, gone...)
		}
		e.Ended = len(ended)
		body, err := json.Marshal(e)
		g.batch.Erasures = append(g.batch.Erasures, control.ErasureRecord{Place: e.Subscriber, Body: body})
		g.batch.SecureDelete = true
		g.operation = subscriberOperation(svc, "erase", "", e.Subscriber)
		return ended, err
	})
	if err == nil {
		r.erasures.add(e)
	}
	return e, err
}

// hideRow removes a row from the indexes and ends its subscriptions.
func (g *group) hideRow(place fanfare.RowID, e *Erasure, suppress bool) ([]fanfare.RowID, error) {
	r := g.w.r
	row, err := g.subscriber(place)
	if err != nil {
		return nil, r.readError(err)
	}
	if row.Kind != 0 {
		e.addNames(row.Address)
		local, _, _ := strings.Cut(row.Address, "@")
		e.addNames(local)
		if err := g.forgetAddress(row, suppress && row.HasAddress()); err != nil {
			return nil, err
		}
	}
	if row.HasAddress() {
		g.removeAddress(row)
	}
	if row.ID != "" {
		e.addNames(row.ID)
		g.remove(&r.subscribers, r.hash.SubscriberID(row.Service, row.ID), place)
	}
	row.Flags |= control.FlagErasing
	g.updateRow(row)
	all, err := g.subscriptionsOf(place, func(*control.SubscriptionRecord) bool { return true })
	if err != nil {
		return nil, err
	}
	var ended []fanfare.RowID
	for _, p := range all {
		s, err := g.subscription(p)
		if err != nil {
			return nil, r.readError(err)
		}
		e.addNames(s.ID)
		if s.Ended {
			continue
		}
		ended = append(ended, p)
		if err := g.endRow(p, people.Ending{Source: people.SourceAPI, Reason: people.ReasonErased, Text: "erased"}); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

func (e *Erasure) addNames(name string) {
	for _, name := range [...]string{lowerASCII(name), strings.ToLower(name)} {
		if len(name) >= minNameBytes && !slices.Contains(e.Names, name) {
			e.Names = append(e.Names, name)
		}
	}
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// FinishErasures empties the rows of subscribers whose erasure has begun, and ends the erasures.
// After that the files of the store contain nothing about them. All other data must be erased
// before. It may be repeated after an error or a crash.
func (r *Registry) FinishErasures(ctx context.Context, all []Erasure) error {
	err := r.transactAlone(ctx, func(g *group) ([]fanfare.RowID, error) {
		g.batch.SecureDelete = true
		ids := map[audit.Operation]string{}
		for i := range all {
			for _, p := range all[i].Places {
				if err := g.eraseRow(all[i].Service, p, ids); err != nil {
					return nil, err
				}
			}
		}
		if err := g.renameInAudit(ids); err != nil {
			return nil, err
		}
		return nil, g.eraseFilters(all)
	})
	if err != nil {
		return err
	}
	var names [][]byte
	for i := range all {
		for _, n := range all[i].Names {
			names = append(names, []byte(n))
		}
	}
	if err := r.opt.Store.Scrub(names); err != nil {
		return r.readError(err)
	}
	err = r.transactAlone(ctx, func(g *group) ([]fanfare.RowID, error) {
		g.batch.SecureDelete = true
		for i := range all {
			g.batch.Erasures = append(g.batch.Erasures, control.ErasureRecord{Place: all[i].Subscriber})
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	if err := r.opt.Store.Scrub(nil); err != nil {
		return r.readError(err)
	}
	for i := range all {
		r.erasures.remove(all[i].Subscriber)
	}
	return nil
}

// eraseRow empties a row and its subscriptions, and removes their use of filters. It adds the
// names in the audit log, and the names that replace them, to ids.
func (g *group) eraseRow(service string, place fanfare.RowID, ids map[audit.Operation]string) error {
	r := g.w.r
	row, err := g.subscriber(place)
	if err != nil {
		return r.readError(err)
	}
	if row == nil {
		return nil
	}
	if row.ID != "" {
		ids[audit.Operation{Service: service, Kind: kindSubscriber, Name: row.ID}] = people.SubscriberID(place)
	}
	*row = control.SubscriberRecord{Place: row.Place, Service: row.Service, Flags: control.FlagErased}
	g.updateRow(row)
	all, err := g.subscriptionsOf(place, func(*control.SubscriptionRecord) bool { return true })
	if err != nil {
		return err
	}
	for _, p := range all {
		s, err := g.change(p)
		if err != nil {
			return r.readError(err)
		}
		if s.ID != "" {
			ids[audit.Operation{Service: service, Kind: kindSubscription, Name: s.ID}] = fanfare.SubscriptionID(p)
			g.remove(&r.identities, r.hash.ClientID(row.Service, s.ID), p)
		}
		s.ID, s.Filter, s.Params, s.Data, s.Title, s.Description, s.Reason = "", 0, nil, nil, "", "", "erased"
		g.batch.DeletedConsents = append(g.batch.DeletedConsents, p)
	}
	return nil
}

// renameInAudit replaces ids that clients chose with generated ids.
func (g *group) renameInAudit(ids map[audit.Operation]string) error {
	if len(ids) == 0 {
		return nil
	}
	names := map[int64]string{}
	err := g.w.r.opt.Store.AuditEntries(context.Background(), 0, math.MaxInt64, func(line *audit.Entry) bool {
		if name, ok := ids[audit.Operation{Service: line.Service, Kind: line.Kind, Name: line.Name}]; ok {
			names[line.ID] = name
		}
		return true
	})
	if err != nil {
		return g.w.r.readError(err)
	}
	g.batch.RenamedAuditEntries = names
	return nil
}

// eraseFilters deletes the filter texts that contain a name of an erased subscriber and that no
// other subscriber uses.
func (g *group) eraseFilters(all []Erasure) error {
	r := g.w.r
	naming := map[uint32]bool{}
	erased := map[fanfare.RowID]bool{}
	for i := range all {
		for _, n := range r.filters.Containing(all[i].Names) {
			naming[n] = true
		}
		for _, p := range all[i].Places {
			erased[p] = true
		}
	}
	if len(naming) == 0 {
		return nil
	}
	err := r.opt.Store.ScanSubscriptions(context.Background(), control.Range{First: 1, Last: ^fanfare.RowID(0)}, func(s *control.SubscriptionRecord) error {
		if naming[s.Filter] && !erased[s.Subscriber] {
			delete(naming, s.Filter)
		}
		return nil
	})
	if err != nil {
		return r.readError(err)
	}
	for n := range naming {
		g.batch.ErasedFilters = append(g.batch.ErasedFilters, n)
	}
	return nil
}
