package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// PutSubscriptions creates or changes subscriptions, and is durable when it returns. It writes
// results[i] for puts[i]; both must have the same length. A wrong put has its own error and does
// not affect the others. The returned error applies to all: the service is unknown, or nothing was
// stored.
//
// A put refers to an existing subscription if it has the same ID or, without an ID, the same
// address, topic, channel and condition. It then changes that subscription in place. If an ID
// comes with another topic or address, or if its subscription has ended, a new subscription begins
// under that ID and the former one ends.
//
// The caller must not change the puts and their data until it returns.
func (r *Registry) PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	if len(results) != len(puts) {
		return fmt.Errorf("registry: %d results for %d puts", len(results), len(puts))
	}
	for from := 0; from < len(puts); from += maxJobChanges {
		to := min(from+maxJobChanges, len(puts))
		err := r.putChunk(ctx, service, puts[from:to], results[from:to])
		if err == nil {
			continue
		}
		if from == 0 {
			return err
		}
		for i := range results[from:] { // the puts before are stored
			results[from+i] = people.PutResult{Err: err}
		}
		return nil
	}
	return nil
}

func (r *Registry) putChunk(ctx context.Context, name string, puts []people.SubscriptionPut, results []people.PutResult) error {
	over, stop := r.maxWaitTimer()
	defer stop()
	p, err := r.enqueuePuts(ctx, name, puts, results, nil, over)
	if err != nil {
		return err
	}
	return p.wait(over)
}

// EndSubscription ends the subscription with a public id. When it returns, the end is durable,
// events that are accepted from now on do not match it, and no message for it is in flight. Ending
// it again is no error.
func (r *Registry) EndSubscription(ctx context.Context, service, id, reason string) error {
	return r.EndSubscriptionIf(ctx, service, id, reason, nil)
}

// EndSubscriptionIf is EndSubscription if check accepts the subscription as it is now.
func (r *Registry) EndSubscriptionIf(ctx context.Context, service, id, reason string, check func(is *people.Subscription) error) error {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	return r.endSubscription(ctx, svc, &endRequest{id: id, reason: reason, check: check})
}

// EndSubscriptionByRow is EndSubscription for a caller that has the row id, such as a signed link.
func (r *Registry) EndSubscriptionByRow(ctx context.Context, place fanfare.RowID, reason string) error {
	if place == 0 {
		return people.UnknownSubscription("")
	}
	return r.endSubscription(ctx, nil, &endRequest{place: place, reason: reason})
}

func (r *Registry) endSubscription(ctx context.Context, svc *catalog.ServiceSnapshot, e *endRequest) error {
	e.reason = catalog.CleanReason(e.reason)
	if err := r.writer.submit(ctx, &job{svc: svc, actor: audit.ActorOf(ctx), endRequest: e}); err != nil {
		return err
	}
	if r.opt.WaitInFlight != nil {
		r.opt.WaitInFlight(e.place)
	}
	return nil
}

// An Import stores subscriptions in steps. The next step may begin before the previous one has
// finished: it is checked and decided while the previous one is being committed. Steps are decided
// in order. Only one goroutine may call Begin.
type Import struct {
	r       *Registry
	service string
	last    *job
	failed  error // of a step that could not begin: no further step can
}

// Import begins an import into a service.
func (r *Registry) Import(service string) *Import { return &Import{r: r, service: service} }

// Begin is PutSubscriptions without waiting. The channel receives the error when the puts are
// durable and the results are set. It accepts at most MaxStep puts. If a step fails, the steps that
// have begun after it fail too, and nothing of them is stored. The caller must not use the puts
// and results until then.
func (i *Import) Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) (over <-chan error) {
	told := make(chan error, 1)
	if i.failed != nil {
		told <- i.failed
		return told
	}
	p, err := i.r.enqueuePuts(ctx, i.service, puts, results, i.last, nil)
	if err != nil {
		i.failed = err
		told <- err
		return told
	}
	if !p.allRefused {
		i.last = p.job
	}
	go func() { told <- p.wait(nil) }()
	return told
}

// MaxStep is the maximum number of puts in a step of an Import.
const MaxStep = maxJobChanges

// A pendingPut is a job with puts that has been handed in.
type pendingPut struct {
	*job
	puts       []people.SubscriptionPut
	results    []people.PutResult
	allRefused bool // the writer has nothing to do

	waitInFlight func(fanfare.RowID) // returns when no message for a replaced or paused subscription is in flight; may be nil
}

// enqueuePuts checks puts and hands the valid ones to the writer. They are decided after the job
// after, and fail if it fails.
func (r *Registry) enqueuePuts(ctx context.Context, name string, puts []people.SubscriptionPut, results []people.PutResult, after *job, over <-chan time.Time) (*pendingPut, error) {
	if len(puts) > maxJobChanges || len(results) != len(puts) {
		return nil, errors.New("registry: too many puts for one step, or the number of results differs from the number of puts")
	}
	conf := r.Snapshot()
	svc, err := conf.Service(name)
	if err != nil {
		return nil, err
	}
	p := &pendingPut{job: &job{svc: svc, conf: conf, actor: audit.ActorOf(ctx), changes: make([]subscriptionChange, len(puts)), dependsOn: after}, puts: puts, results: results, allRefused: true, waitInFlight: r.opt.WaitInFlight}
	for i := range puts {
		background.Yield(i)
		w := &p.changes[i]
		r.check(svc, &puts[i], w)
		p.allRefused = p.allRefused && w.err != nil
	}
	if p.allRefused {
		p.done = make(chan struct{})
		close(p.done)
		return p, nil
	}
	return p, r.writer.enqueue(ctx, p.job, over)
}

// wait returns when the puts are durable, and sets their results.
func (p *pendingPut) wait(over <-chan time.Time) error {
	if err := p.await(over); err != nil {
		return err
	}
	for i := range p.changes {
		w := &p.changes[i]
		for _, place := range [...]fanfare.RowID{w.replaced, w.paused} {
			if w.err == nil && place != 0 && p.waitInFlight != nil {
				p.waitInFlight(place)
			}
		}
		p.results[i] = w.result()
	}
	return nil
}

// put decides on each change of the job. A rejected change gets its own error.
func (g *group) put(j *job) {
	r := g.w.r
	if conf := r.Snapshot(); conf != j.conf {
		// The configuration has changed since the caller checked.
		svc, err := conf.Service(j.svc.Name)
		for i := range j.changes {
			if w := &j.changes[i]; err != nil {
				w.err = err
			} else if w.err == nil {
				r.check(svc, w.put, w)
			}
		}
	}
	for i := range j.changes {
		background.Yield(i)
		w := &j.changes[i]
		if w.err != nil {
			continue
		}
		deed, fields, err := g.putOne(w)
		if g.aborted {
			return // the job will be decided again
		}
		if w.err = err; err == nil {
			g.addConsent(w)
			g.addPutNotice(w, fields)
			g.addPutAudit(j, w, deed, fields)
		}
	}
}

// putOne decides on a change. It returns the operation (create, update, replace or none) and the
// changed fields.
func (g *group) putOne(w *subscriptionChange) (deed string, fields []string, err error) {
	w.created, w.replaced, w.paused, w.subscriberFields = false, 0, 0, nil
	filter := w.filter
	if w.put.Filter != "" && (filter == 0 || !g.w.r.filters.Is(filter, w.put.Filter)) { // new, or erased since the check
		filter = g.filter(w.put.Filter)
	}
	if err := g.checkCurrent(w); err != nil {
		return "", nil, err
	}
	if err := g.checkBudget(w); err != nil {
		return "", nil, err
	}
	owner, isNew, err := g.owner(w)
	if err != nil {
		return "", nil, err
	}
	asked := control.SubscriptionRecord{
		Subscriber: owner, Topic: w.topic.Number, Channel: w.channel.Number, ID: w.put.ID,
		Filter: filter, Rule: w.rule, Params: w.params, Data: w.put.Data, Paused: w.put.State == people.StatePaused,
		Title: w.put.Title, Description: w.put.Description,
	}
	if slices.Contains(w.subscriberFields, "time_zone") {
		if err := g.updateTimeZoneOfRow(owner); err != nil {
			return "", nil, err
		}
	}
	hash := w.idHash
	if asked.ID == "" {
		hash = g.w.r.hash.NaturalKey(&asked)
	}
	var old fanfare.RowID
	if asked.ID != "" || !isNew && !w.topic.PerSubscription { // a new subscriber has no subscriptions yet
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
				w.paused = old
			}
			if asked.Slot = s.Slot; w.put.Cadence != "" {
				if asked.Slot, err = g.slotFor(owner, w.cadence); err != nil {
					return "", nil, err
				}
			}
			changed, err := g.update(s, &asked)
			if fields = append(w.subscriberFields, changed...); len(fields) > 0 {
				return "update", fields, err
			}
			return "", nil, err
		}
		if err := g.checkOwnerNotSuppressed(owner, isNew); err != nil {
			return "", nil, err
		}
		if !s.Ended {
			if err := g.endRow(old, people.Ending{Source: people.SourceAPI, Reason: people.ReasonReplaced, Text: "replaced"}); err != nil {
				return "", nil, err
			}
			deed, w.replaced = "replace", old
		}
	} else if err := g.checkOwnerNotSuppressed(owner, isNew); err != nil {
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
		return "", nil, partitionFullError()
	}
	asked.Place = fanfare.NewRowID(partition, *local)
	*local++
	if old != 0 {
		g.replace(&g.w.r.identities, hash, old, asked.Place)
	} else if asked.ID != "" || !w.topic.PerSubscription {
		g.insert(&g.w.r.identities, hash, asked.Place)
	}
	w.place, w.created = asked.Place, true
	g.batch.Subscriptions[partition] = append(g.batch.Subscriptions[partition], asked)
	return deed, nil, nil
}

// addPutAudit adds the audit entry of a put.
func (g *group) addPutAudit(j *job, w *subscriptionChange, deed string, fields []string) {
	if j.actor == nil || deed == "" {
		return
	}
	g.batch.AddAudit(j.actor, audit.Operation{Service: j.svc.Name, Action: deed, Kind: kindSubscription, Name: auditID(w.put.ID, w.place)}, &audit.Detail{Changed: fields})
}

// auditID returns the id of a subscription in the audit log: its public id, or the generated one
// if the client's id contains an address.
func auditID(id string, place fanfare.RowID) string {
	if id == "" || strings.Contains(id, "@") {
		return fanfare.SubscriptionID(place)
	}
	return id
}

func partitionFullError() error {
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "the partition has no free row ids",
		Hint: "row ids are not reused; export the subscriptions and import them into a new data directory"}
}

// checkCurrent calls the check of the put.
func (g *group) checkCurrent(w *subscriptionChange) error {
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
	return g.checkSubscription(w.put.Check, old)
}

// checkSubscription calls check with the subscription at a row, or with nil if it is missing or
// has ended.
func (g *group) checkSubscription(check func(*people.Subscription) error, place fanfare.RowID) error {
	if place == 0 {
		return check(nil)
	}
	s, err := g.subscription(place)
	if err != nil {
		return g.w.r.readError(err)
	}
	if s.Ended {
		return check(nil)
	}
	is := g.w.r.fullSubscription(s)
	row, err := g.subscriber(s.Subscriber)
	if err != nil {
		return g.w.r.readError(err)
	}
	is.To = row.Address
	if row, err = g.subscriber(row.Head()); err != nil {
		return g.w.r.readError(err)
	}
	is.Subscriber = people.PublicSubscriberID(row)
	return check(&is)
}

// owner finds or creates the subscriber.
func (g *group) owner(w *subscriptionChange) (place fanfare.RowID, isNew bool, err error) {
	if w.put.Subscriber != "" {
		return g.ownerByID(w)
	}
	table := &g.w.r.addresses
	local := &g.w.nextSubscriber[w.partition]
	if *local > fanfare.MaxLocal {
		return 0, false, partitionFullError()
	}
	place = fanfare.NewRowID(int(w.partition), *local)
	first, others := table.Claim(w.addressHash, place)
	if first == 0 {
		g.recordInsert(table, w.addressHash, place)
	}
	for first != 0 {
		s, err := g.subscriber(first)
		if err != nil {
			return 0, false, g.w.r.readError(err)
		}
		if s != nil && s.Service == w.service && s.Kind == w.kind && s.Address == w.address && s.HasAddress() {
			if s.Subscriber != 0 {
				if s, err = g.subscriber(s.Subscriber); err != nil {
					return 0, false, g.w.r.readError(err)
				}
			}
			g.updateSubscriber(s, w)
			return first, false, nil
		}
		if len(others) == 0 { // all have the same hash but are other people
			g.insert(table, w.addressHash, place)
			break
		}
		first, others = others[0], others[1:]
	}
	may := g.w.r.checkNotSuppressed
	if w.direct {
		may = g.w.r.checkNotErased
	}
	if err := may(w.service, w.kind, w.address, "/to"); err != nil {
		g.undoInsert(table, w.addressHash, place)
		return 0, false, err
	}
	g.insertFoldedAddress(w.service, w.kind, w.address, place)
	*local++
	g.batch.Subscribers[w.partition] = append(g.batch.Subscribers[w.partition], control.SubscriberRecord{
		Place: place, Service: w.service, Kind: w.kind, Address: w.address,
		Locale: w.put.Locale, TimeZone: w.put.TimeZone, Attributes: w.put.Attributes,
	})
	return place, true, nil
}

// updateSubscriber sets the fields of the subscriber that the put contains.
func (g *group) updateSubscriber(s *control.SubscriberRecord, w *subscriptionChange) {
	p, deleted := w.put, s.Flags&control.FlagDeleted != 0
	if p.Locale != "" && s.Locale != p.Locale {
		s.Locale, w.subscriberFields = p.Locale, append(w.subscriberFields, "locale")
	}
	if p.TimeZone != "" && s.TimeZone != p.TimeZone {
		s.TimeZone, w.subscriberFields = p.TimeZone, append(w.subscriberFields, "time_zone")
	}
	if len(p.Attributes) > 0 && !bytes.Equal(s.Attributes, p.Attributes) {
		s.Attributes, w.subscriberFields = p.Attributes, append(w.subscriberFields, "attributes")
	}
	s.Flags &^= control.FlagDeleted // a deleted subscriber that subscribes is restored
	if deleted || w.subscriberFields != nil {
		g.updateRow(s)
	}
}

// find returns the row of the subscription with the identity of asked, or 0.
func (g *group) find(hash uint64, service uint32, asked *control.SubscriptionRecord) (fanfare.RowID, error) {
	first, others := g.w.r.identities.Lookup(hash)
	for first != 0 {
		s, err := g.subscription(first)
		if err != nil {
			return 0, g.w.r.readError(err)
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

// sameIdentity compares a row with asked: by the client's id, or without one by the natural key.
func (r *Registry) sameIdentity(s *control.SubscriptionRecord, service uint32, asked *control.SubscriptionRecord) bool {
	if asked.ID != "" {
		return s.ID == asked.ID && r.serviceOf(s) == service
	}
	return s.ID == "" && s.Subscriber == asked.Subscriber && s.Topic == asked.Topic && s.Channel == asked.Channel &&
		s.Filter == asked.Filter && s.Rule == asked.Rule && bytes.Equal(s.Params, asked.Params)
}

// serviceOf returns the number of the service of a subscription.
func (r *Registry) serviceOf(s *control.SubscriptionRecord) uint32 {
	if t := r.Snapshot().Topics[s.Topic]; t != nil {
		return t.ServiceNumber
	}
	return 0
}

// update changes the subscription to asked, and returns the changed fields.
func (g *group) update(s, asked *control.SubscriptionRecord) ([]string, error) {
	var fields []string
	for _, f := range [...]struct {
		name string
		same bool
	}{
		{"channel", s.Channel == asked.Channel}, {"filter", s.Filter == asked.Filter}, {"rule", s.Rule == asked.Rule},
		{"params", bytes.Equal(s.Params, asked.Params)}, {"data", bytes.Equal(s.Data, asked.Data)}, {"state", s.Paused == asked.Paused},
		{"cadence", s.Slot == asked.Slot}, {"title", s.Title == asked.Title}, {"description", s.Description == asked.Description},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	if fields == nil {
		return nil, nil
	}
	if s.Slot != asked.Slot {
		if err := checkPastSlots(s); err != nil {
			return nil, err
		}
		if err := g.setSlot(s.Place, asked.Slot); err != nil {
			return nil, err
		}
	}
	s, err := g.change(s.Place)
	if err != nil {
		return nil, g.w.r.readError(err)
	}
	s.Channel, s.Filter, s.Rule, s.Params, s.Data = asked.Channel, asked.Filter, asked.Rule, asked.Params, asked.Data
	s.Title, s.Description = asked.Title, asked.Description
	s.SetPaused(asked.Paused)
	return fields, nil
}

// filter returns the number of a text that is not stored yet.
func (g *group) filter(text string) uint32 {
	if n := g.w.r.filters.Number(text); n != 0 { // stored since the check
		return n
	}
	if n := g.filters[text]; n != 0 {
		return n
	}
	if f := g.w.committing; f != nil && f.filters[text] != 0 {
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
