package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/indexload"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// load rebuilds the memory from the store.
func (r *Registry) load(ctx context.Context) error {
	l := loader{r: r, w: r.writer, snapshot: catalog.NewSnapshot(), index: indexload.New(r.opt.Conditions.Add, r.logInvalidCondition)}
	err := r.opt.Store.Load(ctx, control.Loader{
		Total:        r.opt.Progress.SetTotal,
		ChangeSeq:    func(seq uint64) { r.writer.changeSeq = seq; r.changeSeq.Store(seq) },
		Config:       l.config,
		Suppression:  func(s *suppression.Record) { r.suppressions.Set([]suppression.Record{*s}) },
		Erasure:      r.erasures.load,
		Filter:       func(f *control.FilterRecord) error { r.filters.Add([]control.FilterRecord{*f}); return nil },
		Subscriber:   l.subscriber,
		Subscription: l.subscription,
	})
	if ended := l.index.Close(); err == nil {
		err = ended
	}
	if err != nil {
		return fmt.Errorf("load the registry: %w", err)
	}
	if r.invalidConditions > 0 {
		r.opt.Logger.Error("registry: subscriptions have invalid conditions and match nothing until they are changed", "subscriptions", r.invalidConditions)
	}
	if err := l.resolve(ctx); err != nil {
		return fmt.Errorf("load the registry: %w", err)
	}
	if _, r.writer.lastAudit, err = r.opt.Store.AuditBounds(ctx); err != nil {
		return fmt.Errorf("load the registry: %w", err)
	}
	r.writer.nextFilter = r.filters.Next()
	r.writer.raiseNext(&r.minRows)
	r.SetSnapshot(l.snapshot)
	return nil
}

// logInvalidCondition logs a stored condition that is no longer valid. It logs the first ones and
// counts all.
func (r *Registry) logInvalidCondition(of condition.Key, place fanfare.RowID, err error) {
	if r.invalidConditions++; r.invalidConditions <= maxLoggedInvalid {
		r.opt.Logger.Error("registry: a stored condition is invalid", "subscription", fanfare.SubscriptionID(place), "service", of.Service, "topic", of.Topic, "error", err)
	}
}

const maxLoggedInvalid = 20

// InvalidConditions returns the number of subscriptions whose stored conditions were no longer
// valid at start. They match nothing.
func (r *Registry) InvalidConditions() int { return r.invalidConditions }

type loader struct {
	r        *Registry
	w        *writer
	snapshot *catalog.Snapshot
	index    *indexload.Loader

	// Rows whose hash was already in the index.
	identityClash []identityClash
}

type identityClash struct {
	hash  uint64
	place fanfare.RowID
}

func (l *loader) config(c *control.ConfigRecord) error {
	if err := l.r.loadConfig(l.snapshot, c); err != nil {
		return fmt.Errorf("%s %s: %w", c.Kind, c.Name, err)
	}
	return nil
}

func (l *loader) subscriber(s *control.SubscriberRecord) error {
	l.w.nextSubscriber[s.Place.Partition()] = s.Place.Local() + 1
	// An address belongs to one subscriber, and so does an id. If the hash exists, it is a
	// collision and both rows stay.
	if s.HasAddress() {
		l.r.addresses.Insert(l.r.hash.Address(s.Service, s.Kind, s.Address), s.Place)
		if small := suppression.Fold(s.Kind, s.Address); small != s.Address {
			l.r.foldedAddresses.Insert(l.r.hash.Address(s.Service, s.Kind, small), s.Place)
		}
	}
	if s.ID != "" && s.Flags&(control.FlagErasing|control.FlagErased) == 0 {
		l.r.subscribers.Insert(l.r.hash.SubscriberID(s.Service, s.ID), s.Place)
	}
	return nil
}

func (l *loader) subscription(s *control.SubscriptionRecord) error {
	l.r.opt.Progress.Add(1)
	l.w.nextSubscription[s.Place.Partition()] = s.Place.Local() + 1
	t := l.snapshot.Topics[s.Topic]
	if t == nil {
		return fmt.Errorf("subscription %s refers to the unknown topic %d", fanfare.SubscriptionID(s.Place), s.Topic)
	}
	l.r.subscriptionsOfRow.Add(s.Subscriber, s.Place)
	switch {
	case s.ID != "":
		hash := l.r.hash.ClientID(t.ServiceNumber, s.ID)
		if l.r.identities.Insert(hash, s.Place) != 0 {
			l.identityClash = append(l.identityClash, identityClash{hash, s.Place})
		}
	case !s.Ended && !t.PerSubscription:
		l.r.identities.Insert(l.r.hash.NaturalKey(s), s.Place)
	}
	if s.Ended {
		return nil
	}
	l.w.countSubscription(s, 1)
	if s.Slot != 0 {
		if _, known := l.r.slots.at(s.Slot); !known {
			return fmt.Errorf("subscription %s has the unknown slot %d", fanfare.SubscriptionID(s.Place), s.Slot)
		}
	}
	if len(s.PastSlots) > 0 {
		l.r.slots.setMove(s)
	}
	if s.Paused {
		return nil
	}
	l.r.live.Set(s.Place)
	l.r.slots.countActive(s, 1)
	return l.index.Add(t.ConditionKey(), l.r.entry(t, s))
}

// resolve decides which row has an id if several rows have its hash: the active row, else the
// newest.
func (l *loader) resolve(ctx context.Context) error {
	done := map[uint64]bool{}
	for _, c := range l.identityClash {
		if done[c.hash] {
			continue
		}
		done[c.hash] = true
		first, others := l.r.identities.Lookup(c.hash)
		places := control.SortPlaces(append(others, first))
		newest := map[string]control.SubscriptionRecord{}
		var beaten []fanfare.RowID
		err := l.r.opt.Store.SubscriptionRecords(ctx, places, func(s *control.SubscriptionRecord) error {
			if s.ID == "" {
				return nil
			}
			id := fmt.Sprint(l.snapshot.Topics[s.Topic].ServiceNumber, "/", s.ID)
			loser := *s
			if was, ok := newest[id]; !ok || isCurrent(s, &was) {
				loser, newest[id] = was, *s
			}
			if loser.Place != 0 {
				beaten = append(beaten, loser.Place)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, p := range beaten {
			l.r.identities.Remove(c.hash, p)
		}
	}
	return nil
}

// isCurrent reports whether the id of a and b refers to a.
func isCurrent(a, b *control.SubscriptionRecord) bool {
	switch {
	case a.Ended != b.Ended:
		return b.Ended
	case a.CreatedSeq != b.CreatedSeq:
		return a.CreatedSeq > b.CreatedSeq
	case a.EndedSeq != b.EndedSeq: // made in one transaction in which the second ended the first
		return a.EndedSeq > b.EndedSeq
	}
	return a.Place > b.Place
}

// kindRowMinimums is the kind of the record, number 1, that SkipRowIDs stores.
const kindRowMinimums = "floor"

// rowMinimums has the lowest number of a new row in each partition.
type rowMinimums struct {
	Subscribers   [fanfare.Partitions]uint32 `json:"subscribers"`
	Subscriptions [fanfare.Partitions]uint32 `json:"subscriptions"`
}

// SkipRowIDs skips the next n row ids of each partition, for subscribers and for subscriptions,
// and stores that. A store that was restored from a backup does not know the row ids that were
// used after the backup. Links in emails still contain them and must not end the subscription of
// another person.
func (r *Registry) SkipRowIDs(ctx context.Context, n uint32) error {
	return r.writer.submit(ctx, &job{exclusive: func(w *writer) error {
		floor := rowMinimums{w.nextSubscriber, w.nextSubscription}
		for p := range fanfare.Partitions {
			floor.Subscribers[p] = min(floor.Subscribers[p]+n, fanfare.MaxLocal)
			floor.Subscriptions[p] = min(floor.Subscriptions[p]+n, fanfare.MaxLocal)
		}
		body, err := json.Marshal(&floor)
		if err != nil {
			return err
		}
		if err := r.commit(&control.Batch{Config: []control.ConfigRecord{{Kind: kindRowMinimums, Number: 1, Body: body}}}); err != nil {
			return err
		}
		w.raiseNext(&floor)
		return nil
	}})
}

// raiseNext raises the numbers of the next rows to a minimum.
func (w *writer) raiseNext(floor *rowMinimums) {
	for p := range fanfare.Partitions {
		w.nextSubscriber[p] = max(w.nextSubscriber[p], floor.Subscribers[p])
		w.nextSubscription[p] = max(w.nextSubscription[p], floor.Subscriptions[p])
	}
}

func (r *Registry) loadRowMinimums(c *control.ConfigRecord) error {
	return json.Unmarshal(c.Body, &r.minRows)
}

// Kinds of people's data in the audit log.
const (
	kindSubscriber   = "subscriber"
	kindSubscription = "subscription"
)

// loadConfig loads a record. Records of services come first.
func (r *Registry) loadConfig(s *catalog.Snapshot, c *control.ConfigRecord) error {
	switch c.Kind {
	case kindRowMinimums:
		return r.loadRowMinimums(c)
	case kindQuarantine:
		return r.loadQuarantine(c)
	case kindSlot:
		return r.loadSlot(s, c)
	}
	return r.Load(s, c)
}
