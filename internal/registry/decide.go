package registry

import (
	"bytes"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// put decides on each want of the job. A want that cannot be decided on gets
// its own error.
func (g *group) put(j *job) {
	r := g.w.r
	if conf := r.Snapshot(); conf != j.conf {
		// The configuration changed after the caller checked.
		svc, err := conf.Service(j.svc.Name)
		for i := range j.wants {
			if w := &j.wants[i]; err != nil {
				w.err = err
			} else if w.err == nil {
				r.check(svc, w.put, w)
			}
		}
	}
	for i := range j.wants {
		background.Yield(i)
		w := &j.wants[i]
		if w.err != nil {
			continue
		}
		deed, fields, err := g.putOne(w)
		if g.aborted {
			return // it will be decided on anew
		}
		if w.err = err; err == nil {
			g.noteConsent(w)
			g.tellPut(w, fields)
			g.notePut(j, w, deed, fields)
		}
	}
}

// putOne says what was done, create, update, replace or nothing, and to which
// fields.
func (g *group) putOne(w *want) (deed string, fields []string, err error) {
	w.created, w.replaced, w.silenced, w.touched = false, 0, 0, nil
	filter := w.filter
	if w.put.Filter != "" && (filter == 0 || !g.w.r.filters.is(filter, w.put.Filter)) { // new, or forgotten since the caller looked
		filter = g.filter(w.put.Filter)
	}
	if err := g.allowed(w); err != nil {
		return "", nil, err
	}
	if err := g.affords(w); err != nil {
		return "", nil, err
	}
	owner, isNew, err := g.owner(w)
	if err != nil {
		return "", nil, err
	}
	asked := control.SubscriptionRecord{
		Subscriber: owner, Topic: w.topic.Number, Channel: w.channel.Number, ID: w.put.ID,
		Filter: filter, Rule: w.rule, Params: w.params, Data: w.put.Data, Paused: w.put.State == people.StatePaused,
	}
	if slices.Contains(w.touched, "time_zone") {
		if err := g.rezoneOf(owner); err != nil {
			return "", nil, err
		}
	}
	hash := w.idHash
	if asked.ID == "" {
		hash = g.w.r.hash.natural(&asked)
	}
	var old fanfare.RowID
	if !isNew || asked.ID != "" { // a new subscriber has no subscriptions yet
		if old, err = g.find(hash, w.topic.ServiceNumber, &asked); err != nil {
			return "", nil, err
		}
	}
	deed = "create"
	if old != 0 {
		s, err := g.subscription(old)
		if err != nil {
			return "", nil, err
		}
		if w.put.State == "" {
			asked.Paused = s.Paused && !s.Ended
		}
		if !s.Ended && s.Topic == asked.Topic && s.Subscriber == asked.Subscriber {
			if w.place = old; asked.Paused && !s.Paused {
				w.silenced = old
			}
			if asked.Slot = s.Slot; w.put.Cadence != "" {
				if asked.Slot, err = g.slotFor(owner, w.cadence); err != nil {
					return "", nil, err
				}
			}
			changed, err := g.update(s, &asked)
			if fields = append(w.touched, changed...); len(fields) > 0 {
				return "update", fields, err
			}
			return "", nil, err
		}
		if err := g.mayAdd(owner, isNew); err != nil {
			return "", nil, err
		}
		if !s.Ended {
			if err := g.endPlace(old, people.Ending{Source: people.SourceAPI, Reason: people.ReasonReplaced, Text: "replaced"}); err != nil {
				return "", nil, err
			}
			deed, w.replaced = "replace", old
		}
	} else if err := g.mayAdd(owner, isNew); err != nil {
		return "", nil, err
	}
	if w.put.Cadence == "" {
		w.cadence = w.topic.Cadence
	}
	if asked.Slot, err = g.slotFor(owner, w.cadence); err != nil {
		return "", nil, err
	}
	partition := owner.Partition()
	local := &g.w.nextSubscription[partition]
	if *local > fanfare.MaxLocal {
		return "", nil, full()
	}
	asked.Place = fanfare.NewRowID(partition, *local)
	*local++
	if old != 0 {
		g.replace(&g.w.r.identities, hash, old, asked.Place)
	} else {
		g.insert(&g.w.r.identities, hash, asked.Place)
	}
	w.place, w.created = asked.Place, true
	g.batch.Subscriptions[partition] = append(g.batch.Subscriptions[partition], asked)
	return deed, nil, nil
}

// notePut adds the line about a put to the audit.
func (g *group) notePut(j *job, w *want, deed string, fields []string) {
	if j.actor == nil || deed == "" {
		return
	}
	g.batch.AddAudit(j.actor, audit.Operation{Service: j.svc.Name, Action: deed, Kind: kindSubscription, Name: auditID(w.put.ID, w.place)}, &audit.Detail{Changed: fields})
}

// auditID is the id under which the audit names a subscription: its public one,
// but for an id that a client has made of an address.
func auditID(id string, place fanfare.RowID) string {
	if id == "" || strings.Contains(id, "@") {
		return fanfare.SubscriptionID(place)
	}
	return id
}

func full() error {
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "the partition is full: no place is left for one more"}
}

// allowed asks the put's own check, if it has one.
func (g *group) allowed(w *want) error {
	if w.put.Check == nil {
		return nil
	}
	if w.put.ID == "" {
		return w.put.Check(nil)
	}
	old, err := g.find(w.idHash, w.topic.ServiceNumber, &control.SubscriptionRecord{ID: w.put.ID})
	if err != nil {
		return err
	}
	return g.ask(w.put.Check, old)
}

// ask calls check with the subscription at a place, nil if there is none there
// that is active.
func (g *group) ask(check func(*people.Subscription) error, place fanfare.RowID) error {
	if place == 0 {
		return check(nil)
	}
	s, err := g.subscription(place)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	if s.Ended {
		return check(nil)
	}
	is := g.w.r.fullRecord(s)
	row, err := g.subscriber(s.Subscriber)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	is.To = row.Address
	if row, err = g.subscriber(row.Head()); err != nil {
		return g.w.r.unreadable(err)
	}
	is.Subscriber = people.PublicSubscriberID(row)
	return check(&is)
}

// owner finds or makes the subscriber.
func (g *group) owner(w *want) (place fanfare.RowID, isNew bool, err error) {
	if w.put.Subscriber != "" {
		return g.ownerNamed(w)
	}
	table := &g.w.r.addresses
	local := &g.w.nextSubscriber[w.partition]
	if *local > fanfare.MaxLocal {
		return 0, false, full()
	}
	place = fanfare.NewRowID(int(w.partition), *local)
	first, others := table.Claim(w.addressHash, place)
	if first == 0 {
		g.noteInsert(table, w.addressHash, place)
	}
	for first != 0 {
		s, err := g.subscriber(first)
		if err != nil {
			return 0, false, g.w.r.unreadable(err)
		}
		if s != nil && s.Service == w.service && s.Kind == w.kind && s.Address == w.address && s.HasAddress() {
			if s.Subscriber != 0 {
				if s, err = g.subscriber(s.Subscriber); err != nil {
					return 0, false, g.w.r.unreadable(err)
				}
			}
			g.updateSubscriber(s, w)
			return first, false, nil
		}
		if len(others) == 0 { // all were other people with the same hash
			g.insert(table, w.addressHash, place)
			break
		}
		first, others = others[0], others[1:]
	}
	may := g.w.r.mayReach
	if w.sent {
		may = g.w.r.mayBeSent
	}
	if err := may(w.service, w.kind, w.address, "/to"); err != nil {
		g.takeBack(table, w.addressHash, place)
		return 0, false, err
	}
	g.respell(w.service, w.kind, w.address, place)
	*local++
	g.batch.Subscribers[w.partition] = append(g.batch.Subscribers[w.partition], control.SubscriberRecord{
		Place: place, Service: w.service, Kind: w.kind, Address: w.address,
		Locale: w.put.Locale, TimeZone: w.put.TimeZone, Attributes: w.put.Attributes,
	})
	return place, true, nil
}

// updateSubscriber takes over what the put says of the person; what it leaves
// out stays.
func (g *group) updateSubscriber(s *control.SubscriberRecord, w *want) {
	p, deleted := w.put, s.Flags&control.FlagDeleted != 0
	if p.Locale != "" && s.Locale != p.Locale {
		s.Locale, w.touched = p.Locale, append(w.touched, "locale")
	}
	if p.TimeZone != "" && s.TimeZone != p.TimeZone {
		s.TimeZone, w.touched = p.TimeZone, append(w.touched, "time_zone")
	}
	if len(p.Attributes) > 0 && !bytes.Equal(s.Attributes, p.Attributes) {
		s.Attributes, w.touched = p.Attributes, append(w.touched, "attributes")
	}
	s.Flags &^= control.FlagDeleted // who subscribes is there again
	if deleted || w.touched != nil {
		g.touch(s)
	}
}

// find returns the place of the subscription with the identity of asked, 0 if
// there is none.
func (g *group) find(hash uint64, service uint32, asked *control.SubscriptionRecord) (fanfare.RowID, error) {
	first, others := g.w.r.identities.Lookup(hash)
	for first != 0 {
		s, err := g.subscription(first)
		if err != nil {
			return 0, g.w.r.unreadable(err)
		}
		if s != nil && g.w.r.sameIdentity(s, service, asked) {
			return first, nil
		}
		if len(others) == 0 {
			break
		}
		first, others = others[0], others[1:]
	}
	return 0, nil
}

// sameIdentity compares a row with what is asked for: by the client's id, or
// without one by the natural key.
func (r *Registry) sameIdentity(s *control.SubscriptionRecord, service uint32, asked *control.SubscriptionRecord) bool {
	if asked.ID != "" {
		return s.ID == asked.ID && r.serviceOf(s) == service
	}
	return s.ID == "" && s.Subscriber == asked.Subscriber && s.Topic == asked.Topic && s.Channel == asked.Channel &&
		s.Filter == asked.Filter && s.Rule == asked.Rule && bytes.Equal(s.Params, asked.Params)
}

// serviceOf returns the number of the service that a subscription belongs to.
func (r *Registry) serviceOf(s *control.SubscriptionRecord) uint32 {
	if t := r.Snapshot().Topics[s.Topic]; t != nil {
		return t.ServiceNumber
	}
	return 0
}

// update makes the subscription as asked for, and returns the fields in which
// it was not so already.
func (g *group) update(s, asked *control.SubscriptionRecord) ([]string, error) {
	var fields []string
	for _, f := range [...]struct {
		name string
		same bool
	}{
		{"channel", s.Channel == asked.Channel}, {"filter", s.Filter == asked.Filter}, {"rule", s.Rule == asked.Rule},
		{"params", bytes.Equal(s.Params, asked.Params)}, {"data", bytes.Equal(s.Data, asked.Data)}, {"state", s.Paused == asked.Paused},
		{"cadence", s.Slot == asked.Slot},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	if fields == nil {
		return nil, nil
	}
	if s.Slot != asked.Slot {
		if err := mayLeaveSlot(s); err != nil {
			return nil, err
		}
		if err := g.setSlot(s.Place, asked.Slot); err != nil {
			return nil, err
		}
	}
	s, err := g.change(s.Place)
	if err != nil {
		return nil, g.w.r.unreadable(err)
	}
	s.Channel, s.Filter, s.Rule, s.Params, s.Data = asked.Channel, asked.Filter, asked.Rule, asked.Params, asked.Data
	s.SetPaused(asked.Paused)
	return fields, nil
}

// filter returns the number of a text that no transaction before had.
func (g *group) filter(text string) uint32 {
	if n := g.w.r.filters.number(text); n != 0 { // since the caller looked
		return n
	}
	if n := g.filters[text]; n != 0 {
		return n
	}
	if f := g.w.flight; f != nil && f.filters[text] != 0 {
		return f.filters[text]
	}
	if g.filters == nil {
		g.filters = map[string]uint32{}
	}
	n := g.w.nextFilter
	g.w.nextFilter++
	g.filters[text] = n
	g.batch.Filters = append(g.batch.Filters, control.FilterRecord{Number: n, Text: strings.Clone(text)})
	return n
}
