package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// SuppressionCount returns the number of suppressed addresses.
func (r *Registry) SuppressionCount() int { return r.suppressions.Len() }

// SuppressionsByReason counts suppressed addresses by reason.
func (r *Registry) SuppressionsByReason() map[string]int { return r.suppressions.CountByReason() }

// checkNotSuppressed rejects a suppressed address.
func (r *Registry) checkNotSuppressed(service uint32, kind uint8, address, at string) error {
	if r.suppressions.Len() == 0 {
		return nil
	}
	key, s, ok := r.suppressions.InForce(service, kind, address, r.opt.Now().UnixNano())
	if !ok {
		return nil
	}
	return suppression.RefusedError(key, s, at)
}

// checkNotErased is checkNotSuppressed for a direct message. It rejects only erased recipients;
// messages to other suppressed addresses are settled as suppressed.
func (r *Registry) checkNotErased(service uint32, kind uint8, address, at string) error {
	key, s, ok := r.suppressions.InForce(service, kind, address, r.opt.Now().UnixNano())
	if !ok || s.Reason != suppression.ReasonErased {
		return nil
	}
	return suppression.RefusedError(key, s, at)
}

// SuppressionReason returns why nothing may be sent to an address in normal form over a channel,
// or "". It is called before each message. seen is a value that the caller keeps for the address,
// 0 at first; it makes repeated calls cheap while the list does not change.
func (r *Registry) SuppressionReason(c *catalog.Channel, address string, seen *uint64) string {
	version := r.suppressions.Version() + 1
	if *seen == version {
		return ""
	}
	*seen = version
	if r.suppressions.Len() == 0 {
		return ""
	}
	kind := c.AddressKind()
	if !r.suppressions.HasTag(r.suppressions.Tag(kind, suppression.Fold(kind, address))) {
		return ""
	}
	svc, err := r.Snapshot().Service(c.Service)
	if err != nil {
		return ""
	}
	key, s, ok := r.suppressions.InForce(svc.Number, kind, address, r.opt.Now().UnixNano())
	switch {
	case !ok:
		return ""
	case key.Service == suppression.AllServices:
		*seen = 0 // check again while the address is suppressed
		return s.Reason + ", for all services"
	}
	*seen = 0
	return s.Reason
}

// Unsuppress removes an address from the list of a service or, without a service, from that of all
// services. An address that is not on the list is no error. Its earlier bounces no longer count.
func (r *Registry) Unsuppress(ctx context.Context, service, address string) error {
	return r.lift(ctx, service, address, people.SourceAPI, func(string) bool { return true })
}

// Unsubscribed reports whether an address is on the list of a service because its owner
// unsubscribed from everything.
func (r *Registry) Unsubscribed(service, address string) bool {
	asked, err := r.newSuppressionRecord(service, address)
	if err != nil {
		return false
	}
	is, known := r.suppressions.Get(suppression.KeyOf(&asked), r.opt.Now().UnixNano())
	return known && is.Reason == suppression.ReasonUnsubscribed
}

// LiftUnsubscribed removes an address for which Unsubscribed is true, because its owner has asked
// for messages again. It changes no other reason and no suppression for all services.
func (r *Registry) LiftUnsubscribed(ctx context.Context, service, address, source string) error {
	return r.lift(ctx, service, address, source, func(reason string) bool { return reason == suppression.ReasonUnsubscribed })
}

func (r *Registry) lift(ctx context.Context, service, address, source string, may func(reason string) bool) error {
	asked, err := r.newSuppressionRecord(service, address)
	if err != nil {
		return err
	}
	return r.transact(ctx, func(g *group) ([]fanfare.RowID, error) {
		is, known, err := g.suppression(suppression.KeyOf(&asked))
		if err == nil && known && may(is.Reason) {
			asked.Lifted, asked.At, asked.Reason, asked.Until = true, g.batch.At, is.Reason, is.Until
			g.setSuppression(asked)
			g.operation = audit.Operation{Service: service, Action: "lift", Kind: "suppression", Name: ""} // the log does not name the address
			err = g.addSuppressionNotices(control.NoticeLifted, &asked, source)
		}
		return nil, err
	})
}

// suppressionService returns the number of a service; "" is all services.
func (r *Registry) suppressionService(name string) (uint32, error) {
	if name == "" {
		return suppression.AllServices, nil
	}
	svc, err := r.Snapshot().Service(name)
	if err != nil {
		return 0, err
	}
	return svc.Number, nil
}

// newSuppressionRecord returns the record of an address; without a service, for all services.
func (r *Registry) newSuppressionRecord(service, address string) (suppression.Record, error) {
	number, err := r.suppressionService(service)
	if err != nil {
		return suppression.Record{}, err
	}
	kind := addresskind.OfAddress(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return suppression.Record{}, inputerror.Invalid("/address", "", "%s", people.AddressProblem(address, "", err))
	}
	s := r.suppressions.NewRecord(number, kind, normal)
	s.Address = normal
	return s, nil
}

// Suppress adds addresses to the suppression list because of bounces, all or none. When it
// returns, this is durable and in force. An address that is already on the list keeps the stronger
// reason and the longer time, so that repeating a call changes nothing. The pointer of an error
// begins with the index of the request.
func (r *Registry) Suppress(ctx context.Context, asks []suppression.Request) error {
	records := make([]suppression.Record, len(asks))
	for i := range asks {
		record, err := r.CheckSuppression(&asks[i])
		if err != nil {
			return inputerror.WithPrefix(fmt.Sprintf("/%d", i), err)
		}
		records[i] = record
	}
	_, err := r.suppress(ctx, records, people.SourceReturn)
	return err
}

// SuppressRecords adds records of CheckSuppression on behalf of an API client. It reports which of
// them changed the list.
func (r *Registry) SuppressRecords(ctx context.Context, records []suppression.Record) (added []bool, err error) {
	return r.suppress(ctx, records, people.SourceAPI)
}

func (r *Registry) suppress(ctx context.Context, records []suppression.Record, source string) (added []bool, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	added = make([]bool, len(records))
	err = r.transact(ctx, func(g *group) ([]fanfare.RowID, error) {
		if err := g.prefetchAddressRows(records); err != nil {
			return nil, err
		}
		for i := range records {
			var err error
			if added[i], err = g.suppress(records[i], source); err != nil {
				return nil, err
			}
		}
		g.operation = audit.Operation{Service: g.w.r.Snapshot().ServiceNames[records[0].Service], Action: "suppress", Kind: "suppression", Name: ""} // the log does not name the addresses
		return nil, nil
	})
	return added, err
}

// CheckSuppression returns the record of a request.
func (r *Registry) CheckSuppression(ask *suppression.Request) (s suppression.Record, err error) {
	if !slices.Contains(suppression.Reasons, ask.Reason) {
		return s, inputerror.Invalid("/reason", "use one of "+strings.Join(suppression.Reasons, ", "), "unknown reason %s", inputerror.Quote(ask.Reason))
	}
	if len(ask.Source) > suppression.MaxSourceBytes || strings.ContainsFunc(ask.Source, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return s, inputerror.Invalid("/source", "", "the source must be one line of at most %d bytes", suppression.MaxSourceBytes)
	}
	if !ask.Until.IsZero() && !ask.Until.After(r.opt.Now()) {
		return s, inputerror.Invalid("/until", "use a time in the future, or omit until for a permanent suppression", "%s is in the past", ask.Until.UTC().Format(time.RFC3339))
	}
	if ask.Hash != "" && ask.Address == "" {
		var service uint32
		if service, err = r.suppressionService(ask.Service); err == nil {
			s, err = r.suppressions.ParseHash(ask.Hash)
			s.Service = service
		}
	} else {
		s, err = r.newSuppressionRecord(ask.Service, ask.Address)
	}
	if err != nil {
		return s, err
	}
	s.Reason, s.Source = ask.Reason, ask.Source
	if !ask.Until.IsZero() && ask.Until.Before(suppression.LastNano) {
		s.Until = ask.Until.UnixNano()
	}
	if s.Reason == suppression.ReasonErased {
		s.Address, s.Source = "", ""
	}
	return s, nil
}

// suppress adds an address to the list if that changes the list.
func (g *group) suppress(asked suppression.Record, source string) (more bool, err error) {
	is, known, err := g.suppression(suppression.KeyOf(&asked))
	if err != nil {
		return false, err
	}
	asked.At = g.batch.At
	if known {
		stronger, longer := suppression.Strength(asked.Reason) > suppression.Strength(is.Reason), suppression.Outlasts(asked.Until, is.Until)
		if !stronger && !longer || is.Reason == suppression.ReasonErased {
			return false, nil
		}
		if !stronger {
			asked.Reason, asked.At = is.Reason, is.At
		}
		if !longer {
			asked.Until = is.Until
		}
	}
	g.setSuppression(asked)
	return true, g.addSuppressionNotices(control.NoticeSuppressed, &asked, source)
}

// suppression returns the suppression of an address with the changes of the group.
func (g *group) suppression(key suppression.Key) (s suppression.State, known bool, err error) {
	if r, ok := g.suppressions[key]; ok {
		return suppression.State{Reason: r.Reason, At: r.At, Until: r.Until, Tag: r.Tag}, !r.Lifted, nil
	}
	if g.w.committing != nil && len(g.w.committing.suppressions) > 0 {
		if g.w.waitCommit(); g.aborted {
			return s, false, errAborted
		}
	}
	s, known = g.w.r.suppressions.Get(key, g.batch.At)
	return s, known, nil
}

// setSuppression changes the suppression of an address.
func (g *group) setSuppression(s suppression.Record) {
	g.changeCount++
	if g.suppressions == nil {
		g.suppressions = map[suppression.Key]suppression.Record{}
	}
	g.suppressions[suppression.KeyOf(&s)] = s
	g.batch.Suppressions = append(g.batch.Suppressions, s)
}

// checkOwnerNotSuppressed rejects a further subscription of a suppressed address. Existing
// subscriptions may be changed.
func (g *group) checkOwnerNotSuppressed(owner fanfare.RowID, isNew bool) error {
	if isNew || g.w.r.suppressions.Len() == 0 {
		return nil // a new subscriber was checked before
	}
	row, err := g.subscriber(owner)
	if err != nil {
		return g.w.r.readError(err)
	}
	if row.Kind == 0 {
		return nil
	}
	return g.w.r.checkNotSuppressed(row.Service, row.Kind, row.Address, "/to")
}

// forgetAddress keeps only the hash of a suppressed address. With suppress, its service never
// sends to it again.
func (g *group) forgetAddress(row *control.SubscriberRecord, suppress bool) error {
	asked := g.w.r.suppressions.NewRecord(row.Service, row.Kind, row.Address)
	asked.Reason, asked.At = suppression.ReasonErased, g.batch.At
	for _, service := range [...]uint32{row.Service, suppression.AllServices} {
		asked.Service = service
		is, known, err := g.suppression(suppression.KeyOf(&asked))
		switch {
		case err != nil:
			return err
		case service == row.Service && suppress:
			g.setSuppression(asked)
		case known:
			bare := asked
			bare.Reason, bare.At, bare.Until = is.Reason, is.At, is.Until
			g.setSuppression(bare)
		}
	}
	return nil
}

func (r *Registry) newSuppression(s *suppression.Record) suppression.Suppression {
	shown := suppression.Suppression{Address: s.Address, Reason: s.Reason, Source: s.Source, At: time.Unix(0, s.At).UTC(), AllServices: s.Service == suppression.AllServices}
	if s.Address == "" {
		shown.Hash = r.suppressions.HashText(s)
	}
	if s.Until != 0 {
		shown.Until = time.Unix(0, s.Until).UTC()
	}
	return shown
}

// Suppression returns the suppression of an address in the service or, by default, in all
// services. Without a service it returns the latter. NotFound means that the address is not
// suppressed.
func (r *Registry) Suppression(ctx context.Context, service, address string) (suppression.Suppression, error) {
	asked, err := r.newSuppressionRecord(service, address)
	if err != nil {
		return suppression.Suppression{}, err
	}
	key, is, ok := r.suppressions.InForce(asked.Service, asked.Kind, asked.Address, r.opt.Now().UnixNano())
	if !ok {
		return suppression.Suppression{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the address is not suppressed"}
	}
	kept := []suppression.Record{key.Record(is)}
	if err := r.opt.Store.SuppressionRecords(ctx, kept); err != nil {
		return suppression.Suppression{}, r.readError(err)
	}
	shown := r.newSuppression(&kept[0])
	shown.Address, shown.Hash = asked.Address, "" // the caller has the address
	return shown, nil
}

// suppressionPageRows is the number of suppressions that are read from the store at a time.
const suppressionPageRows = 1000

// Suppressions returns a page of the list after a cursor (nil: from the start), the latest first,
// and the start of the next page, nil at the end.
func (r *Registry) Suppressions(ctx context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error) {
	all, err := r.selectSuppressions(f, after, limit+1)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > limit {
		all = all[:limit]
		last := &all[limit-1]
		next = &suppression.Cursor{At: last.At, Kind: last.Kind, Hash: last.Hash}
	}
	err = r.readSuppressions(ctx, all, func(s *suppression.Suppression) error {
		page = append(page, *s)
		return nil
	})
	return page, next, err
}

// EachSuppression visits the whole list as it is at the start, the latest first.
func (r *Registry) EachSuppression(ctx context.Context, f suppression.Filter, visit func(*suppression.Suppression) error) error {
	all, err := r.selectSuppressions(f, nil, 0)
	if err != nil {
		return err
	}
	return r.readSuppressions(ctx, all, visit)
}

// selectSuppressions returns the first records in memory that match a filter, after a cursor, in the
// order of the list: at most limit, or all with 0.
func (r *Registry) selectSuppressions(f suppression.Filter, after *suppression.Cursor, limit int) ([]suppression.Record, error) {
	service, err := r.suppressionService(f.Service)
	if err != nil {
		return nil, err
	}
	return r.suppressions.Select(service, f.Reason, after, r.opt.Now().UnixNano(), limit), nil
}

// readSuppressions completes records from the store and visits them.
func (r *Registry) readSuppressions(ctx context.Context, all []suppression.Record, visit func(*suppression.Suppression) error) error {
	for some := range slices.Chunk(all, suppressionPageRows) {
		if err := r.opt.Store.SuppressionRecords(ctx, some); err != nil {
			return r.readError(err)
		}
		for i := range some {
			shown := r.newSuppression(&some[i])
			if err := visit(&shown); err != nil {
				return err
			}
		}
	}
	return nil
}

// TrimSuppressions removes expired suppressions.
func (r *Registry) TrimSuppressions(ctx context.Context) error {
	over := r.suppressions.Expired(r.opt.Now().UnixNano(), maxJobChanges)
	if len(over) == 0 {
		return nil
	}
	return r.transact(audit.WithoutActor(ctx), func(g *group) ([]fanfare.RowID, error) {
		for i := range over {
			_, renewed, err := g.suppression(suppression.KeyOf(&over[i]))
			if err != nil {
				return nil, err
			}
			if !renewed {
				g.setSuppression(over[i])
			}
		}
		return nil, nil
	})
}

// SuppressionsOf visits the suppressions of the addresses of a subscriber.
func (r *Registry) SuppressionsOf(ctx context.Context, service string, places []fanfare.RowID, visit func(*suppression.Suppression) error) error {
	rows, err := r.records(ctx, places)
	if err != nil {
		return r.readError(err)
	}
	for _, p := range places {
		row := rows[p]
		if row == nil || row.Address == "" {
			continue
		}
		s, err := r.Suppression(ctx, service, row.Address)
		if fanfare.CodeOf(err) == fanfare.NotFound {
			continue
		}
		if err == nil {
			err = visit(&s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// NewBounceRecord returns the record of an address of a service, without a bounce.
func (r *Registry) NewBounceRecord(service, address string) (control.BounceRecord, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return control.BounceRecord{}, err
	}
	kind := addresskind.OfAddress(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return control.BounceRecord{}, inputerror.Invalid("", "", "%s", people.AddressProblem(address, "", err))
	}
	s := r.suppressions.NewRecord(svc.Number, kind, normal)
	return control.BounceRecord{Service: s.Service, AddressKind: s.Kind, Hash: s.Hash}, nil
}
