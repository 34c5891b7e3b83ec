package registry

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/placeindex"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// A group is the content of one transaction: the decisions on its jobs in order, each of which
// sees those before it.
type group struct {
	w           *writer
	jobs        []*job
	size        int             // of the jobs, see maxGroupChanges
	operation   audit.Operation // audit operation of the change that is being decided
	changeCount int             // number of changed rows and indexes
	batch       control.Batch
	committed   chan error // receives the result of the commit
	aborted     bool       // the group before it failed

	// The first new row of each partition. Rows from there on are in batch.
	baseSubscriber, baseSubscription [fanfare.Partitions]uint32

	// Rows of the store that the group reads, with the changes of the group, and the former
	// versions of the rows that it changed.
	subscribers   map[fanfare.RowID]*control.SubscriberRecord
	subscriptions map[fanfare.RowID]*control.SubscriptionRecord
	changed       map[fanfare.RowID]control.SubscriptionRecord // before the change

	suppressions map[suppression.Key]suppression.Record // changes of the suppression list

	filters       map[string]uint32      // new filters
	slots         []newSlot              // new slots
	planned       map[uint32]plannedCost // by topic
	indexChanges  []indexChange
	indexRemovals []indexChange // removed from the indexes after the commit
	entries       []topicEntries
	spare         []condition.Entry // reused for the entries of the next topic
}

// An indexChange holds what is needed to undo one change of an index.
type indexChange struct {
	index      *placeindex.HashIndex
	hash       uint64
	old, place fanfare.RowID // old 0: place was inserted; place 0: old was removed
}

// begin starts the next transaction.
func (g *group) begin() {
	g.jobs, g.size, g.aborted, g.planned = nil, 0, false, nil
	g.batch.ChangeSeq, g.batch.At = 0, g.w.r.opt.Now().UnixNano()
	g.baseSubscriber, g.baseSubscription = g.w.nextSubscriber, g.w.nextSubscription
}

// decide decides on further jobs. An error concerns all jobs.
func (g *group) decide(jobs []*job) error {
	g.jobs = append(g.jobs, jobs...)
	for _, j := range jobs {
		g.size += j.size()
	}
	if err := g.prefetch(jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		if g.aborted {
			return nil
		}
		switch err := j.dependencyError(); {
		case j.undone:
		case err != nil:
			j.err = err
		case j.decide != nil:
			g.decideTransaction(j)
		case j.endRequest != nil:
			j.err = g.endSubscription(j)
		case j.auditEntry != nil:
			g.batch.Audit = append(g.batch.Audit, *j.auditEntry)
		case j.recipientsOnly:
			g.createDirectRecipients(j)
		default:
			g.put(j)
		}
	}
	return nil
}

// decideTransaction decides on a transaction. If it fails after it has changed something, the
// whole group is undone and decided again without it.
func (g *group) decideTransaction(j *job) {
	before := g.changeCount
	g.operation = audit.Operation{}
	switch err := j.decide(g); {
	case g.aborted:
	case err == nil:
		if g.changeCount > before && g.operation.Action != "" {
			g.batch.AddAudit(j.actor, g.operation, nil)
		}
	default:
		if j.err, j.undone = err, true; g.changeCount > before {
			g.undo()
			g.aborted = true
		}
	}
}

// answer gives the callers the results of their jobs. err applies to all jobs.
func (g *group) answer(err error) {
	for _, j := range g.jobs {
		if err != nil && !j.undone {
			j.err = err
		}
		j.dependsOn = nil // otherwise the first job of an import would stay in memory until the last
		close(j.done)
	}
}

// release drops everything that belongs to the callers. It keeps the large slices for the next
// transaction.
func (g *group) release() {
	b := &g.batch
	for i := range fanfare.Partitions {
		clear(b.Subscribers[i])
		clear(b.Subscriptions[i])
		b.Subscribers[i], b.Subscriptions[i] = b.Subscribers[i][:0], b.Subscriptions[i][:0]
	}
	clear(b.Audit)
	b.Audit = b.Audit[:0]
	b.Config, b.Filters, b.SubscriberUpdates, b.SubscriptionUpdates = nil, nil, nil, nil
	b.Consents, b.DeletedConsents, b.Notices = nil, nil, nil
	b.Suppressions, b.Erasures, b.ErasedFilters, b.RenamedAuditEntries, b.SecureDelete = nil, nil, nil, nil, false
	g.subscribers, g.subscriptions, g.changed, g.filters, g.planned = nil, nil, nil, nil, nil
	g.slots, g.suppressions = nil, nil
	g.indexChanges, g.indexRemovals = g.indexChanges[:0], g.indexRemovals[:0]
	g.jobs, g.operation, g.changeCount = nil, audit.Operation{}, 0
}

// prefetch reads the rows that the callers expect to need, many at a time. It leaves out rows that
// the group has read or made. A row that the callers did not expect is read when it is needed.
func (g *group) prefetch(jobs []*job) error {
	var subscribers, subscriptions []fanfare.RowID
	for _, j := range jobs {
		for i := range j.changes {
			w := &j.changes[i]
			if p := w.subscriber; p != 0 && p.Local() < g.baseSubscriber[p.Partition()] && g.subscribers[p] == nil {
				subscribers = append(subscribers, p)
			}
			if p := w.subscription; p != 0 && p.Local() < g.baseSubscription[p.Partition()] && g.subscriptions[p] == nil {
				subscriptions = append(subscriptions, p)
			}
		}
	}
	ctx := context.Background()
	if err := g.readSubscribers(ctx, control.SortPlaces(subscribers)); err != nil {
		return err
	}
	return g.readSubscriptions(ctx, control.SortPlaces(subscriptions))
}

func (g *group) readSubscribers(ctx context.Context, places []fanfare.RowID) error {
	if len(places) == 0 {
		return nil
	}
	if f := g.w.committing; f != nil && slices.ContainsFunc(places, f.touchesSubscriber) {
		if g.w.waitCommit(); g.aborted {
			return nil
		}
	}
	if g.subscribers == nil {
		g.subscribers = make(map[fanfare.RowID]*control.SubscriberRecord, len(places))
	}
	return g.w.r.opt.Store.SubscriberRecords(ctx, places, func(s *control.SubscriberRecord) error {
		g.subscribers[s.Place] = cloneRecord(s)
		return nil
	})
}

func (g *group) readSubscriptions(ctx context.Context, places []fanfare.RowID) error {
	if len(places) == 0 {
		return nil
	}
	if f := g.w.committing; f != nil && slices.ContainsFunc(places, f.touchesSubscription) {
		if g.w.waitCommit(); g.aborted {
			return nil
		}
	}
	if g.subscriptions == nil {
		g.subscriptions = make(map[fanfare.RowID]*control.SubscriptionRecord, len(places))
	}
	return g.w.r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
		kept := cloneSubscription(s)
		g.subscriptions[s.Place] = &kept
		return nil
	})
}

// subscriber returns the row at p with the changes of the group, or nil. The pointer is valid
// until the next row is added.
func (g *group) subscriber(p fanfare.RowID) (*control.SubscriberRecord, error) {
	if i, rows := int(p.Local())-int(g.baseSubscriber[p.Partition()]), g.batch.Subscribers[p.Partition()]; i >= 0 && i < len(rows) {
		return &rows[i], nil
	}
	if s := g.subscribers[p]; s != nil {
		return s, nil
	}
	err := g.readSubscribers(context.Background(), []fanfare.RowID{p})
	if g.aborted {
		err = errAborted
	}
	return g.subscribers[p], err
}

// subscription returns the row at p with the changes of the group, or nil. The pointer is valid
// until the next row is added.
func (g *group) subscription(p fanfare.RowID) (*control.SubscriptionRecord, error) {
	if g.isNew(p) {
		return &g.batch.Subscriptions[p.Partition()][p.Local()-g.baseSubscription[p.Partition()]], nil
	}
	if s := g.subscriptions[p]; s != nil {
		return s, nil
	}
	err := g.readSubscriptions(context.Background(), []fanfare.RowID{p})
	if g.aborted {
		err = errAborted
	}
	return g.subscriptions[p], err
}

// touchesSubscriber and touchesSubscription report whether the commit of the group may change the
// stored row at p.
func (g *group) touchesSubscriber(p fanfare.RowID) bool {
	return p.Local() >= g.baseSubscriber[p.Partition()] || g.subscribers[p] != nil
}

func (g *group) touchesSubscription(p fanfare.RowID) bool {
	_, changed := g.changed[p]
	return changed || p.Local() >= g.baseSubscription[p.Partition()]
}

// errAborted ends a decision of an aborted group. No caller receives it.
var errAborted = errors.New("registry: the previous group failed")

// isNew reports whether the group made the subscription at p.
func (g *group) isNew(p fanfare.RowID) bool {
	i := int(p.Local()) - int(g.baseSubscription[p.Partition()])
	return i >= 0 && i < len(g.batch.Subscriptions[p.Partition()])
}

// change returns the row at p for a change, and keeps its former version.
func (g *group) change(p fanfare.RowID) (*control.SubscriptionRecord, error) {
	s, err := g.subscription(p)
	if err != nil || g.isNew(p) {
		return s, err
	}
	g.changeCount++
	if _, ok := g.changed[p]; !ok {
		if g.changed == nil {
			g.changed = map[fanfare.RowID]control.SubscriptionRecord{}
		}
		g.changed[p] = *s
	}
	return s, nil
}

func (g *group) insert(t *placeindex.HashIndex, hash uint64, place fanfare.RowID) {
	t.Insert(hash, place)
	g.recordInsert(t, hash, place)
}

func (g *group) recordInsert(t *placeindex.HashIndex, hash uint64, place fanfare.RowID) {
	g.changeCount++
	g.indexChanges = append(g.indexChanges, indexChange{t, hash, 0, place})
}

func (g *group) replace(t *placeindex.HashIndex, hash uint64, old, place fanfare.RowID) {
	t.Replace(hash, old, place)
	g.changeCount++
	g.indexChanges = append(g.indexChanges, indexChange{t, hash, old, place})
}

// remove removes place from an index after the commit. Until then readers find it, and a decision
// compares the row.
func (g *group) remove(t *placeindex.HashIndex, hash uint64, place fanfare.RowID) {
	g.changeCount++
	g.indexRemovals = append(g.indexRemovals, indexChange{t, hash, place, 0})
}

// undoInsert undoes an insert of the same group immediately, because the row id is used again.
func (g *group) undoInsert(t *placeindex.HashIndex, hash uint64, place fanfare.RowID) {
	t.Remove(hash, place)
	g.changeCount++
	g.indexChanges = append(g.indexChanges, indexChange{t, hash, place, 0})
}

// applyRemovals removes the removed rows from the indexes.
func (g *group) applyRemovals() {
	for _, c := range g.indexRemovals {
		c.index.Remove(c.hash, c.old)
	}
}

// undo undoes the changes of the indexes in reverse order.
func (g *group) undo() {
	for i := range g.slots {
		g.w.slots.remove(g.slots[i].key)
	}
	for _, c := range slices.Backward(g.indexChanges) {
		switch {
		case c.old == 0:
			c.index.Remove(c.hash, c.place)
		case c.place == 0:
			c.index.Insert(c.hash, c.old)
		default:
			c.index.Replace(c.hash, c.place, c.old)
		}
	}
}

// updateNewSubscribers writes the fields that an insert does not write.
func (g *group) updateNewSubscribers() {
	for i := range g.batch.Subscribers {
		rows := g.batch.Subscribers[i]
		for k := range rows {
			if s := &rows[k]; s.Subscriber != 0 || len(s.RowsJSON) > 0 || s.Flags != 0 {
				g.batch.SubscriberUpdates = append(g.batch.SubscriberUpdates, s)
			}
		}
	}
}

// finish completes the batch. It returns false if there is nothing to commit.
func (g *group) finish() bool {
	b := &g.batch
	subscriptions := len(g.changed)
	others := len(b.Filters) + len(b.SubscriberUpdates) + len(b.Suppressions) + len(b.Erasures) + len(b.Audit) + len(b.Config) + len(b.Consents) + len(b.DeletedConsents)
	for i := range fanfare.Partitions {
		subscriptions += len(b.Subscriptions[i])
		others += len(b.Subscribers[i])
	}
	if subscriptions == 0 && others == 0 {
		return false
	}
	b.ChangeSeq = g.w.changeSeq + 1
	g.updateNewSubscribers()
	for _, p := range slices.Sorted(maps.Keys(g.changed)) {
		b.SubscriptionUpdates = append(b.SubscriptionUpdates, g.subscriptions[p])
	}
	for i := range b.Subscriptions {
		for k := range b.Subscriptions[i] {
			s := &b.Subscriptions[i][k]
			s.CreatedAt, s.CreatedSeq = b.At, b.ChangeSeq
			if !s.Active() { // ended within the group, or created as paused
				b.SubscriptionUpdates = append(b.SubscriptionUpdates, s)
			}
		}
	}
	for _, s := range b.SubscriptionUpdates {
		if s.Ended && s.EndedSeq == 0 {
			s.EndedAt, s.EndedSeq = b.At, b.ChangeSeq
		}
		switch {
		case s.Paused && s.PausedSeq == 0:
			s.PausedAt, s.PausedSeq = b.At, b.ChangeSeq
		case !s.Paused && s.PausedSeq != 0 && s.ResumedSeq == 0:
			s.ResumedSeq = b.ChangeSeq
		}
	}
	return true
}

// updateMatchIndex publishes a committed group to the match index, the active bits and the counts.
// An ended or paused subscription loses its bit first, so that no more message leaves for it.
func (g *group) updateMatchIndex() error {
	r := g.w.r
	for i := range g.batch.Subscriptions {
		for k := range g.batch.Subscriptions[i] {
			s := &g.batch.Subscriptions[i][k]
			r.subscriptionsOfRow.Add(s.Subscriber, s.Place)
			g.w.countSubscription(s, 1)
			r.slots.countActive(s, 1)
			if s.Active() {
				r.live.Set(s.Place)
				g.queueEntry(s)
			}
		}
	}
	for p, was := range g.changed {
		s := g.subscriptions[p]
		g.w.countSubscription(&was, -1)
		g.w.countSubscription(s, 1)
		r.slots.countActive(&was, -1)
		r.slots.countActive(s, 1)
		switch {
		case !s.Active() && was.Active():
			r.live.Clear(p)
			if t := r.Snapshot().Topics[s.Topic]; t != nil {
				r.opt.Conditions.Remove(t.ConditionKey(), p)
			}
		case !s.Active():
		case !was.Active():
			r.live.Set(p)
			g.queueEntry(s)
		case s.Channel != was.Channel || s.Filter != was.Filter || s.Rule != was.Rule || s.Slot != was.Slot || !bytes.Equal(s.Params, was.Params):
			g.queueEntry(s) // replaces the entry in one step
		}
	}
	err := g.addEntries()
	for p, was := range g.changed {
		// The index has the new slots from here on, so events are collected in them.
		if s := g.subscriptions[p]; len(s.PastSlots)+len(was.PastSlots) > 0 {
			r.slots.setMove(s)
		}
	}
	return err
}

// A topicEntries has the new entries of one topic for the match index.
type topicEntries struct {
	topic   *catalog.Topic
	entries []condition.Entry
}

// queueEntry adds s to the entries for the match index.
func (g *group) queueEntry(s *control.SubscriptionRecord) {
	// A group has few topics, and most entries belong to the latest one.
	for i := len(g.entries) - 1; i >= 0; i-- {
		if of := &g.entries[i]; of.topic.Number == s.Topic {
			of.entries = append(of.entries, g.w.r.entry(of.topic, s))
			return
		}
	}
	if t := g.w.r.Snapshot().Topics[s.Topic]; t != nil {
		g.entries = append(g.entries, topicEntries{t, append(g.spare, g.w.r.entry(t, s))})
		g.spare = nil
	}
}

func (r *Registry) entry(t *catalog.Topic, s *control.SubscriptionRecord) condition.Entry {
	e := condition.Entry{Place: s.Place, Subscriber: s.Subscriber, Channel: s.Channel, Slot: s.Slot}
	if s.Filter != 0 {
		e.Filter = r.filters.Text(s.Filter)
	}
	if s.Rule != 0 {
		e.Rule, e.Params = t.RuleName(s.Rule), s.Params
		if e.Params == nil {
			e.Params = []byte("{}")
		}
	}
	return e
}

// addEntries adds the queued entries to the match index, which keeps no reference to them.
func (g *group) addEntries() error {
	var errs []error
	for i := range g.entries {
		of := &g.entries[i]
		errs = append(errs, g.w.r.opt.Conditions.Add(of.topic.ConditionKey(), of.entries))
		clear(of.entries)
		g.spare = of.entries[:0]
	}
	clear(g.entries)
	g.entries = g.entries[:0]
	return errors.Join(errs...)
}
