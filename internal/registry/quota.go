package registry

import (
	"context"
	"encoding/json"
	"sync"

	"fanfare.dev/fanfare/internal/store/control"
)

// kindQuota is the kind of a ConfigRecord: what of a day's quota of a channel was
// given out.
const kindQuota = "quota"

// quotaBody is what is kept of a quota: the last day of which something was
// reserved.
type quotaBody struct {
	Day      string `json:"day"`
	Reserved int64  `json:"reserved"`
}

// quotas are the days of which something was reserved, by whose quota it is.
type quotas struct {
	mu   sync.Mutex
	all  map[string]keptQuota
	last uint32 // number of the last one
}

type keptQuota struct {
	quotaBody
	number uint32
}

func (q *quotas) set(name string, one keptQuota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[string]keptQuota{}
	}
	q.all[name] = one
	q.last = max(q.last, one.number)
}

func (q *quotas) get(name string) (one keptQuota, last uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[name], q.last
}

// ReserveQuota reserves a block of what may leave on a day, as 2006-01-02, where
// quota is the whole of it, and returns how much of the block there was. That is
// durable when it returns. A day before the last one has nothing more. A negative
// block gives back what was reserved and not used.
func (r *Registry) ReserveQuota(ctx context.Context, name, day string, quota, block int64) (granted int64, err error) {
	err = r.writer.submit(ctx, &job{run: func(*writer) error {
		kept, last := r.quotas.get(name)
		granted = 0
		if day < kept.Day || block < 0 && day != kept.Day {
			return nil
		}
		if day > kept.Day {
			kept.Day, kept.Reserved = day, 0
		}
		if granted = max(block, -kept.Reserved); block > 0 {
			granted = max(min(block, quota-kept.Reserved), 0)
		}
		if granted == 0 {
			return nil
		}
		kept.Reserved += granted
		if kept.number == 0 {
			kept.number = last + 1
		}
		body, err := json.Marshal(kept.quotaBody)
		if err != nil {
			return err
		}
		if err := r.commit(&control.Batch{Config: []control.ConfigRecord{{Kind: kindQuota, Number: kept.number, Name: name, Body: body}}}); err != nil {
			granted = 0
			return err
		}
		r.quotas.set(name, kept)
		return nil
	}})
	return granted, err
}

// ReservedQuota is how much was reserved of a day.
func (r *Registry) ReservedQuota(name, day string) int64 {
	if kept, _ := r.quotas.get(name); kept.Day == day {
		return kept.Reserved
	}
	return 0
}

// loadQuota puts a kept record in force.
func (r *Registry) loadQuota(c *control.ConfigRecord) error {
	one := keptQuota{number: c.Number}
	if err := json.Unmarshal(c.Body, &one.quotaBody); err != nil {
		return err
	}
	r.quotas.set(c.Name, one)
	return nil
}
