package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/store/control"
)

// kindQuarantine is the kind of a ConfigRecord: a condition for which the match index was wrong.
const kindQuarantine = "quarantine"

// A Quarantine is a condition that is evaluated without the match index.
type Quarantine = condition.Quarantined

// quarantineBody is the stored form. The text of its filter may be erased.
type quarantineBody struct {
	Quarantine
	Filter uint32 `json:"filter,omitempty"` // number of the filter
}

// quarantine holds the conditions in quarantine by record number. A free number has a body without
// a topic.
type quarantine struct {
	mu  sync.RWMutex
	all map[uint32]quarantineBody
}

func (q *quarantine) set(number uint32, body quarantineBody) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[uint32]quarantineBody{}
	}
	q.all[number] = body
}

// free returns the lowest number that is neither in use nor in taken.
func (q *quarantine) free(taken map[uint32]bool) uint32 {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for number := uint32(1); ; number++ {
		if q.all[number].Topic == 0 && !taken[number] {
			return number
		}
	}
}

// numberOf returns the number of an entry, or 0.
func (q *quarantine) numberOf(one *quarantineBody) uint32 {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for number, known := range q.all {
		if known.Topic == one.Topic && known.Filter == one.Filter && known.Subscription == one.Subscription && known.Hash == one.Hash {
			return number
		}
	}
	return 0
}

// Quarantine puts conditions into quarantine, durably. Conditions in quarantine do not change.
func (r *Registry) Quarantine(ctx context.Context, list []Quarantine) error {
	return r.writer.submit(ctx, &job{exclusive: func(*writer) error {
		bodies, taken := map[uint32]quarantineBody{}, map[uint32]bool{}
		for _, one := range list {
			body := quarantineBody{one, r.filters.Number(one.Filter)}
			if r.quarantine.numberOf(&body) != 0 {
				continue
			}
			number := r.quarantine.free(taken)
			bodies[number], taken[number] = body, true
		}
		return r.storeQuarantine(bodies)
	}})
}

// Release removes conditions from quarantine, durably.
func (r *Registry) Release(ctx context.Context, list []Quarantine) error {
	return r.writer.submit(ctx, &job{exclusive: func(*writer) error {
		bodies := map[uint32]quarantineBody{}
		for _, one := range list {
			if number := r.quarantine.numberOf(&quarantineBody{one, r.filters.Number(one.Filter)}); number != 0 {
				bodies[number] = quarantineBody{}
			}
		}
		return r.storeQuarantine(bodies)
	}})
}

// storeQuarantine stores entries, and then publishes them. An entry without a topic is released.
func (r *Registry) storeQuarantine(bodies map[uint32]quarantineBody) error {
	if len(bodies) == 0 {
		return nil
	}
	var b control.Batch
	for number, body := range bodies {
		text, err := json.Marshal(&body)
		if err != nil {
			return err
		}
		b.Config = append(b.Config, control.ConfigRecord{Kind: kindQuarantine, Number: number, Name: strconv.Itoa(int(number)), Body: text, Deleted: body.Topic == 0})
	}
	if err := r.commit(&b); err != nil {
		return err
	}
	for number, body := range bodies {
		r.quarantine.set(number, body)
	}
	return nil
}

// Quarantined lists the conditions in quarantine, the oldest first. It leaves out an entry whose
// filter text was erased, because no subscription has the filter any more.
func (r *Registry) Quarantined() (list []Quarantine) {
	r.quarantine.mu.RLock()
	defer r.quarantine.mu.RUnlock()
	for _, body := range r.quarantine.all {
		one := body.Quarantine
		if body.Filter != 0 {
			one.Filter = r.filters.Text(body.Filter)
		}
		if body.Topic != 0 && (body.Filter == 0 || one.Filter != "") {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b Quarantine) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Filter, b.Filter), cmp.Compare(a.Subscription, b.Subscription))
	})
	return list
}

func (r *Registry) loadQuarantine(c *control.ConfigRecord) error {
	var body quarantineBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	r.quarantine.set(c.Number, body)
	return nil
}

// AllConditionEntries visits all active subscriptions as the database has them. A subscription that is being added may be
// missing. The visitor may keep only the strings of an entry.
func (r *Registry) AllConditionEntries(ctx context.Context, visit func(condition.Key, *condition.Entry) error) error {
	return r.opt.Store.ScanSubscriptions(ctx, control.Range{First: 1, Last: ^fanfare.RowID(0)}, func(s *control.SubscriptionRecord) error {
		t := r.Snapshot().Topics[s.Topic]
		if t == nil || !s.Active() {
			return nil
		}
		e := r.entry(t, s)
		if s.Filter != 0 && e.Filter == "" { // its transaction has not been published yet
			return nil
		}
		return visit(t.ConditionKey(), &e)
	})
}

// ConditionEntries visits the stored active subscriptions of subscribers to a topic, by row id.
func (r *Registry) ConditionEntries(ctx context.Context, topic uint32, subscribers []fanfare.RowID, visit func(*condition.Entry) error) error {
	t := r.Snapshot().Topics[topic]
	if t == nil {
		return nil
	}
	var places []fanfare.RowID
	for _, subscriber := range subscribers {
		places = append(places, r.subscriptionsOfRow.Of(subscriber)...)
	}
	return r.opt.Store.SubscriptionRecords(ctx, control.SortPlaces(places), func(s *control.SubscriptionRecord) error {
		if s.Topic != topic || !s.Active() {
			return nil
		}
		e := r.entry(t, s)
		return visit(&e)
	})
}
