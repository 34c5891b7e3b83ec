package registry

import (
	"context"
	"errors"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// FindDirectRecipients looks up the recipients of a message over a channel and sets their rows. A
// invalid recipient gets an error with the pointer /to or /subscriber. Nothing is stored.
func (r *Registry) FindDirectRecipients(ctx context.Context, service string, channel *catalog.Channel, all []people.DirectRecipient) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	candidates := make(map[fanfare.RowID][]int, len(all))
	var places []fanfare.RowID
	for i := range all {
		a := &all[i]
		if a.Subscriber != "" {
			if err := r.findNamed(ctx, svc, channel, a); err != nil {
				return err
			}
			continue
		}
		w := subscriptionChange{channel: channel}
		if a.Err = r.checkAddress(svc, &people.SubscriptionPut{To: a.Address}, &w); a.Err != nil {
			continue
		}
		a.Address = w.address
		first, others := r.addresses.Lookup(r.hash.Address(svc.Number, w.kind, w.address))
		for _, p := range append([]fanfare.RowID{first}, others...) {
			if p != 0 {
				candidates[p] = append(candidates[p], i)
				places = append(places, p)
			}
		}
	}
	kind := channel.AddressKind()
	err = r.opt.Store.SubscriberRecords(ctx, control.SortPlaces(places), func(s *control.SubscriberRecord) error {
		for _, i := range candidates[s.Place] {
			if a := &all[i]; s.Service == svc.Number && s.Kind == kind && s.Address == a.Address && s.HasAddress() {
				a.Place = s.Place
			}
		}
		return nil
	})
	if err != nil {
		return r.readError(err)
	}
	for i := range all {
		if a := &all[i]; a.Err == nil && a.Subscriber == "" {
			a.Err = r.checkNotErased(svc.Number, kind, a.Address, "/to")
		}
	}
	return nil
}

// findNamed finds the address of a named subscriber for a channel.
func (r *Registry) findNamed(ctx context.Context, svc *catalog.ServiceSnapshot, channel *catalog.Channel, a *people.DirectRecipient) error {
	head, err := r.subscriberRecord(ctx, svc, a.Subscriber)
	if err == nil {
		err = r.checkAvailable(ctx, head, a.Subscriber)
	}
	if e, ours := errors.AsType[*fanfare.Error](err); ours && e.Code == fanfare.NotFound {
		a.Err = inputerror.Invalid("/subscriber", e.Hint, "%s", e.Message)
		return nil
	}
	if err != nil {
		return err
	}
	rows := map[fanfare.RowID]*control.SubscriberRecord{head.Place: head}
	if len(head.RowsJSON) > 0 {
		if rows, err = r.records(ctx, control.PlacesOf(head.Rows())); err != nil {
			return r.readError(err)
		}
	}
	kind := channel.AddressKind()
	for _, p := range head.Rows() {
		if row := rows[p.Place]; row != nil && row.HasAddress() && row.Kind == kind {
			a.Place, a.Address = row.Place, row.Address
			return nil
		}
	}
	a.Err = inputerror.Invalid("/subscriber", "add an address to the subscriber, or set \"to\" to an address", "subscriber %s has no %s address", inputerror.Quote(a.Subscriber), addresskind.Names[kind])
	return nil
}

// CreateDirectRecipients creates a subscriber for each valid address that has none. The
// subscribers are durable when it returns. After an error nothing is stored.
func (r *Registry) CreateDirectRecipients(ctx context.Context, service string, channel *catalog.Channel, all []people.DirectRecipient) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	missing := make([]int, 0, len(all))
	for i := range all {
		if all[i].Err == nil && all[i].Place == 0 {
			missing = append(missing, i)
		}
	}
	for some := range slices.Chunk(missing, maxJobChanges) {
		j := &job{svc: svc, recipientsOnly: true, changes: make([]subscriptionChange, len(some))}
		for k, i := range some {
			w := &j.changes[k]
			*w = subscriptionChange{put: &people.SubscriptionPut{To: all[i].Address}, channel: channel, service: svc.Number, direct: true}
			if w.err = r.checkAddress(svc, w.put, w); w.err == nil {
				w.addressHash = r.hash.Address(svc.Number, w.kind, w.address)
			}
		}
		if err := r.writer.submit(ctx, j); err != nil {
			return err
		}
		for k, i := range some {
			all[i].Place, all[i].Err = j.changes[k].place, j.changes[k].err
		}
	}
	return nil
}

// createDirectRecipients finds or creates the subscriber of each change of the job.
func (g *group) createDirectRecipients(j *job) {
	for i := range j.changes {
		w := &j.changes[i]
		if w.err != nil {
			continue
		}
		w.place, _, w.err = g.owner(w)
		if g.aborted {
			w.err = nil // the job will be decided again
			return
		}
	}
}
