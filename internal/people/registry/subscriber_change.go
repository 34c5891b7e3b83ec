package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// transactAlone runs f on a group of its own while no commit is in progress, and commits its
// changes. Only exclusive jobs call it. If something changed, the operation that f sets is added
// to the audit log.
func (w *writer) transactAlone(actor *audit.Actor, f func(g *group) error) error {
	g := w.groups[0]
	g.begin()
	defer g.release()
	if err := f(g); err != nil {
		g.undo()
		return err
	}
	if !g.finish() {
		return nil
	}
	if g.operation.Action != "" {
		g.batch.AddAudit(actor, g.operation, nil)
	}
	if err := w.r.commit(&g.batch); err != nil {
		g.undo()
		return err
	}
	w.changeSeq = g.batch.ChangeSeq
	w.publish(g)
	return nil
}

// A transaction is the change of one job. It returns the subscriptions that it ended. It may be
// called again if its group is decided again.
type transaction func(g *group) (ended []fanfare.RowID, err error)

// transact commits f together with other waiting jobs. It returns when no message is in flight for
// the ended subscriptions.
func (r *Registry) transact(ctx context.Context, f transaction) error {
	var ended []fanfare.RowID
	j := &job{actor: audit.ActorOf(ctx), decide: func(g *group) (err error) {
		ended, err = f(g)
		return err
	}}
	if err := r.writer.submit(ctx, j); err != nil {
		return err
	}
	r.waitInFlight(ended)
	return nil
}

// transactAlone is transact in a database transaction of its own.
func (r *Registry) transactAlone(ctx context.Context, f transaction) error {
	var ended []fanfare.RowID
	err := r.writer.submit(ctx, &job{exclusive: func(w *writer) error {
		return w.transactAlone(audit.ActorOf(ctx), func(g *group) (err error) {
			ended, err = f(g)
			return err
		})
	}})
	if err != nil {
		return err
	}
	r.waitInFlight(ended)
	return nil
}

func (r *Registry) waitInFlight(ended []fanfare.RowID) {
	if r.opt.WaitInFlight != nil {
		for _, place := range ended {
			r.opt.WaitInFlight(place)
		}
	}
}

// subscriberOperation is the audit operation of a change of a subscriber. It shows the generated
// id in place of an id that contains an address or that is being erased ("").
func subscriberOperation(svc *catalog.ServiceSnapshot, action, id string, place fanfare.RowID) audit.Operation {
	if id == "" || strings.Contains(id, "@") {
		id = people.SubscriberID(place)
	}
	return audit.Operation{Service: svc.Name, Action: action, Kind: kindSubscriber, Name: id}
}

// PutSubscriber creates a subscriber with a client's id, or replaces its data. Subscriptions to
// removed addresses end. An address that belongs to another subscriber is a Conflict.
func (r *Registry) PutSubscriber(ctx context.Context, service, id string, p people.SubscriberPut, check people.SubscriberCheck) (s people.Subscriber, created bool, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, false, err
	}
	f, err := r.putSubscriberTransaction(svc, id, p, check, &s, &created)
	if err == nil {
		err = r.transact(ctx, f)
	}
	return s, created && err == nil, err
}

// putSubscriberTransaction returns the transaction of PutSubscriber, which sets its results.
func (r *Registry) putSubscriberTransaction(svc *catalog.ServiceSnapshot, id string, p people.SubscriberPut, check people.SubscriberCheck, s *people.Subscriber, created *bool) (transaction, error) {
	_, ours := people.ParseSubscriberID(id)
	if !ours {
		if err := people.CheckSubscriberID(id); err != nil {
			return nil, err
		}
	}
	wants, err := r.checkSubscriber(svc, &p)
	if err != nil {
		return nil, err
	}
	return func(g *group) ([]fanfare.RowID, error) {
		head, err := g.subscriberByID(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if head != nil && head.Flags&control.FlagMerged != 0 {
			_, err := g.availableSubscriber(svc.Number, id)
			return nil, err
		}
		if err := g.checkSubscriber(check, head); err != nil {
			return nil, err
		}
		*created = head == nil || head.Flags&control.FlagDeleted != 0
		var place fanfare.RowID
		switch {
		case head != nil:
			place = head.Place
		case ours:
			return nil, people.UnknownSubscriber(id)
		default:
			if place, err = g.create(svc, id, wants); err != nil {
				return nil, err
			}
		}
		ended, err := g.replaceSubscriber(place, &p, wants)
		if err == nil {
			*s, err = g.fullSubscriber(place)
		}
		g.operation = subscriberOperation(svc, "update", s.ID, place)
		if *created {
			g.operation.Action = "create"
		}
		return ended, err
	}, nil
}

// CreateSubscriber creates a subscriber with a generated id.
func (r *Registry) CreateSubscriber(ctx context.Context, service string, p people.SubscriberPut) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	f, err := r.createSubscriberTransaction(svc, p, &s)
	if err == nil {
		err = r.transact(ctx, f)
	}
	return s, err
}

// createSubscriberTransaction returns the transaction of CreateSubscriber, which sets its result.
func (r *Registry) createSubscriberTransaction(svc *catalog.ServiceSnapshot, p people.SubscriberPut, s *people.Subscriber) (transaction, error) {
	wants, err := r.checkSubscriber(svc, &p)
	if err != nil {
		return nil, err
	}
	return func(g *group) ([]fanfare.RowID, error) {
		place, err := g.create(svc, "", wants)
		if err != nil {
			return nil, err
		}
		ended, err := g.replaceSubscriber(place, &p, wants)
		if err == nil {
			*s, err = g.fullSubscriber(place)
		}
		g.operation = subscriberOperation(svc, "create", s.ID, place)
		return ended, err
	}, nil
}

// PatchSubscriber applies a JSON merge patch (RFC 7396).
func (r *Registry) PatchSubscriber(ctx context.Context, service, id string, patch json.RawMessage, check people.SubscriberCheck) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	err = r.transact(ctx, func(g *group) ([]fanfare.RowID, error) {
		head, err := g.availableSubscriber(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if err := g.checkSubscriber(check, head); err != nil {
			return nil, err
		}
		is, err := g.fullSubscriber(head.Place)
		if err != nil {
			return nil, err
		}
		p, err := people.ApplyPatch(&is, patch)
		if err != nil {
			return nil, err
		}
		wants, err := r.checkSubscriber(svc, &p)
		if err != nil {
			return nil, err
		}
		ended, err := g.replaceSubscriber(head.Place, &p, wants)
		if err == nil {
			s, err = g.fullSubscriber(is.Place)
		}
		g.operation = subscriberOperation(svc, "update", is.ID, is.Place)
		return ended, err
	})
	return s, err
}

// DeleteSubscriber ends all subscriptions of a subscriber and removes it from the lists. Its
// history and addresses are kept: a new subscription with one of the addresses restores the
// subscriber. When it returns, no message for it is in flight. A missing subscriber is no error,
// unless check returns one.
func (r *Registry) DeleteSubscriber(ctx context.Context, service, id string, check people.SubscriberCheck) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	return r.transact(ctx, func(g *group) (ended []fanfare.RowID, err error) {
		head, err := g.subscriberByID(svc.Number, id)
		if err != nil {
			return nil, err
		}
		if err := g.checkSubscriber(check, head); err != nil {
			return nil, err
		}
		if head == nil || head.Flags&(control.FlagDeleted|control.FlagMerged) != 0 {
			return nil, nil
		}
		head.Flags |= control.FlagDeleted
		g.updateRow(head)
		g.operation = subscriberOperation(svc, "delete", people.PublicSubscriberID(head), head.Place)
		for _, p := range head.Rows() {
			gone, err := g.endAll(p.Place, people.Ending{Source: people.SourceAPI, Reason: people.ReasonDeleted, Text: "the subscriber was deleted"})
			if err != nil {
				return nil, err
			}
			ended = append(ended, gone...)
		}
		return ended, nil
	})
}

// create adds the first row of a subscriber, with its first address.
func (g *group) create(svc *catalog.ServiceSnapshot, id string, wants []checkedAddress) (fanfare.RowID, error) {
	s := control.SubscriberRecord{Service: svc.Number, ID: id}
	if len(wants) == 0 {
		if id == "" {
			return 0, inputerror.Invalid("/addresses", "add an address, or give the subscriber an id", "a subscriber needs an address or an id")
		}
		return g.addRow(people.PartitionOf(svc.Name, 0, id), s, 0, "")
	}
	first := &wants[0]
	row, err := g.addressRow(svc.Number, first)
	if err != nil {
		return 0, err
	}
	if row != nil {
		return 0, g.addressConflict("/addresses/0/address", row)
	}
	s.Kind, s.Address = first.kind, first.address
	return g.addRow(first.partition, s, first.hash, "/addresses/0/address")
}

// checkSubscriber calls check with the current subscriber.
func (g *group) checkSubscriber(check people.SubscriberCheck, head *control.SubscriberRecord) error {
	if check == nil {
		return nil
	}
	if head == nil || head.Flags&(control.FlagDeleted|control.FlagMerged) != 0 {
		return check(nil)
	}
	s, err := g.fullSubscriber(head.Place)
	if err != nil {
		return err
	}
	return check(&s)
}

// fullSubscriber returns the subscriber with the changes of the group.
func (g *group) fullSubscriber(place fanfare.RowID) (people.Subscriber, error) {
	head, err := g.subscriber(place)
	if err != nil {
		return people.Subscriber{}, g.w.r.readError(err)
	}
	list := head.Rows()
	rows := make(map[fanfare.RowID]*control.SubscriberRecord, len(list))
	for _, p := range list {
		if rows[p.Place], err = g.subscriber(p.Place); err != nil {
			return people.Subscriber{}, g.w.r.readError(err)
		}
	}
	return people.NewSubscriber(head, list, rows), nil
}

// PutSubscribers puts subscribers in order, and is durable when it returns. It writes results[i]
// for lines[i]; a wrong line has its own error and does not stop the others. The returned error
// concerns all. It returns when no message is in flight for the ended subscriptions.
func (r *Registry) PutSubscribers(ctx context.Context, service string, lines []people.ImportedSubscriber, results []people.PutResult) error {
	if len(results) != len(lines) {
		return fmt.Errorf("registry: got %d results for %d lines", len(results), len(lines))
	}
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	shown := make([]people.Subscriber, len(lines))
	ended := make([][]fanfare.RowID, len(lines))
	jobs := make([]*job, len(lines))
	for i := range lines {
		result := &results[i]
		*result = people.PutResult{}
		var f transaction
		if lines[i].ID != "" {
			f, result.Err = r.putSubscriberTransaction(svc, lines[i].ID, lines[i].SubscriberPut, nil, &shown[i], &result.Created)
		} else {
			result.Created = true
			f, result.Err = r.createSubscriberTransaction(svc, lines[i].SubscriberPut, &shown[i])
		}
		if result.Err != nil {
			continue
		}
		j := &job{actor: audit.ActorOf(ctx), decide: func(g *group) (err error) {
			ended[i], err = f(g)
			return err
		}}
		if result.Err = r.writer.enqueue(ctx, j, nil); result.Err == nil {
			jobs[i] = j
		}
	}
	for i, j := range jobs {
		if j == nil {
			continue
		}
		<-j.done
		if results[i].Err = j.err; j.err == nil {
			results[i].ID = shown[i].ID
			r.waitInFlight(ended[i])
		}
	}
	return nil
}

// A checkedAddress is a valid address.
type checkedAddress struct {
	kind      uint8
	partition int
	address   string // normal form
	hash      uint64
	label     string
}

// checkSubscriber checks p, and returns its addresses in normal form.
func (r *Registry) checkSubscriber(svc *catalog.ServiceSnapshot, p *people.SubscriberPut) ([]checkedAddress, error) {
	if len(p.Addresses) > people.MaxAddresses {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/addresses", Message: fmt.Sprintf("the subscriber has %d addresses; at most %d are allowed", len(p.Addresses), people.MaxAddresses)}
	}
	if string(p.Attributes) == "null" {
		p.Attributes = nil
	}
	free := people.SubscriptionPut{Locale: p.Locale, TimeZone: p.TimeZone, Attributes: p.Attributes}
	if err := people.CheckFields(&r.fieldCache, &free); err != nil {
		return nil, err
	}
	if err := r.Snapshot().SubscriberSchemas.CheckAttributes(svc.Number, p.Attributes); err != nil {
		return nil, err
	}
	wants := make([]checkedAddress, 0, len(p.Addresses))
	for i := range p.Addresses {
		w, err := r.checkOneAddress(svc, &p.Addresses[i])
		if err != nil {
			return nil, inputerror.WithPrefix(fmt.Sprintf("/addresses/%d", i), err)
		}
		for _, other := range wants {
			if other.kind == w.kind && other.address == w.address {
				return nil, inputerror.Invalid(fmt.Sprintf("/addresses/%d/address", i), "", "the address is listed twice")
			}
		}
		wants = append(wants, w)
	}
	return wants, nil
}

func (r *Registry) checkOneAddress(svc *catalog.ServiceSnapshot, a *people.Address) (w checkedAddress, err error) {
	if w.kind = addresskind.Parse(a.Kind); w.kind == 0 {
		return w, inputerror.Invalid("/kind", "use mail, url or phone", "unknown address kind %s", inputerror.Quote(a.Kind))
	}
	if a.Address == "" {
		return w, inputerror.Invalid("/address", "", "address is missing")
	}
	if len(a.Label) > people.MaxLabelBytes || strings.ContainsAny(a.Label, "\r\n\x00") {
		return w, inputerror.Invalid("/label", "", "a label must be one line of at most %d bytes", people.MaxLabelBytes)
	}
	if strings.ContainsAny(a.Address, "\r\n\x00") {
		return w, inputerror.Invalid("/address", "", "address contains a line break or a zero byte")
	}
	if w.address, err = r.normal(w.kind, a.Address); err != nil {
		return w, inputerror.Invalid("/address", "", "%s", people.AddressProblem(a.Address, "", err))
	}
	w.label = a.Label
	w.partition = people.PartitionOf(svc.Name, w.kind, w.address)
	w.hash = r.hash.Address(svc.Number, w.kind, w.address)
	return w, nil
}

// MergeSubscriber moves the addresses, subscriptions and history of a subscriber to another one.
// Nothing is copied: the rows keep their ids and partitions and belong to the other subscriber
// from then on. The other subscriber takes over locale, time zone and attributes that it does not
// have. The former id is not found any more; the error names the new id. Merging again is no
// error.
func (r *Registry) MergeSubscriber(ctx context.Context, service, id, into string) (s people.Subscriber, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return s, err
	}
	err = r.transactAlone(ctx, func(g *group) ([]fanfare.RowID, error) {
		other, err := g.availableSubscriber(svc.Number, into)
		if err != nil {
			return nil, inputerror.WithPointer("/into", err)
		}
		from, err := g.subscriberByID(svc.Number, id)
		if err != nil {
			return nil, err
		}
		switch {
		case from == nil:
			return nil, people.UnknownSubscriber(id)
		case from.Place == other.Place:
			return nil, inputerror.Invalid("/into", "choose another subscriber", "a subscriber cannot be merged into itself")
		case from.Flags&control.FlagMerged == 0:
			if err := g.merge(from, other); err != nil {
				return nil, err
			}
			g.operation = subscriberOperation(svc, "merge", from.ID, from.Place)
		case from.Subscriber != other.Place:
			_, err := g.availableSubscriber(svc.Number, id)
			return nil, err
		}
		s, err = g.fullSubscriber(other.Place)
		return nil, err
	})
	return s, err
}

// merge gives all rows of a subscriber to the other one.
func (g *group) merge(from, other *control.SubscriberRecord) error {
	moving := from.Rows()
	list := append(other.Rows(), moving...)
	addresses := 0
	for _, p := range list {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return g.w.r.readError(err)
		}
		if row.HasAddress() {
			addresses++
		}
	}
	if addresses > people.MaxAddresses {
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the two subscribers have %d addresses; at most %d are allowed", addresses, people.MaxAddresses), Hint: "remove some addresses first"}
	}
	for _, p := range moving {
		row, err := g.subscriber(p.Place)
		if err != nil {
			return g.w.r.readError(err)
		}
		row.Subscriber = other.Place
		g.updateRow(row)
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
	g.updateRow(other)
	from.Flags = from.Flags&^control.FlagDeleted | control.FlagMerged
	from.RowsJSON, from.Locale, from.TimeZone, from.Attributes = nil, "", "", nil
	return g.updateTimeZone(other.Place)
}
