package state

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/control"
)

// kindQuota is the kind of a ConfigRecord: the reserved part of a daily quota.
const kindQuota = "quota"

// quotaBody is the stored form: the last day with a reservation.
type quotaBody struct {
	Day      string `json:"day"`
	Reserved int64  `json:"reserved"`
}

// quotas has the reservations by owner of the quota.
type quotas struct {
	mu   sync.Mutex
	all  map[string]storedQuota
	last uint32 // number of the last one
}

type storedQuota struct {
	quotaBody
	number uint32
}

func (q *quotas) set(name string, one storedQuota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[string]storedQuota{}
	}
	q.all[name] = one
	q.last = max(q.last, one.number)
}

func (q *quotas) get(name string) (one storedQuota, last uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[name], q.last
}

// ReserveQuota reserves a block of the daily quota of a day, such as 2006-01-02, and returns the
// part that was available. The reservation is durable when it returns. A day before the latest one
// has nothing left. A negative block returns the unused part of a reservation.
func (r *Catalog) ReserveQuota(ctx context.Context, name, day string, quota, block int64) (granted int64, err error) {
	err = r.writer.Run(ctx, func() error {
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
		if err := r.writer.Commit(&control.Batch{Config: []control.ConfigRecord{{Kind: kindQuota, Number: kept.number, Name: name, Body: body}}}); err != nil {
			granted = 0
			return err
		}
		r.quotas.set(name, kept)
		return nil
	})
	return granted, err
}

// ReservedQuota returns the reserved part of the quota of a day.
func (r *Catalog) ReservedQuota(name, day string) int64 {
	if kept, _ := r.quotas.get(name); kept.Day == day {
		return kept.Reserved
	}
	return 0
}

// loadQuota loads a stored record.
func (r *Catalog) loadQuota(c *control.ConfigRecord) error {
	one := storedQuota{number: c.Number}
	if err := json.Unmarshal(c.Body, &one.quotaBody); err != nil {
		return err
	}
	r.quotas.set(c.Name, one)
	return nil
}

// kindRate is the kind of a ConfigRecord: the rate of a channel that an operator has set.
const kindRate = "rate"

// A ManualRate is a rate that an operator has set in place of the configured one.
type ManualRate struct {
	Channel string       `json:"channel"` // service/channel
	Rate    catalog.Rate `json:"rate"`
	Since   time.Time    `json:"since"`
}

// rates holds the rates of channels that operators have set.
type rates struct {
	mu   sync.RWMutex
	all  map[string]storedRate // by service/channel
	last uint32                // number of the last one
}

type storedRate struct {
	ManualRate
	number  uint32
	deleted bool // the configured rate is in force again
}

func (r *rates) set(one storedRate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]storedRate{}
	}
	r.all[one.Channel] = one
	r.last = max(r.last, one.number)
}

func (r *rates) get(channel string) (storedRate, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	one, ok := r.all[channel]
	return one, ok
}

// ChannelRate returns the rate in force of a channel, and whether an operator has set it.
func (r *Catalog) ChannelRate(c *catalog.Channel) (rate catalog.Rate, byHand bool) {
	if one, ok := r.rates.get(c.Service + "/" + c.Name); ok && !one.deleted {
		return one.Rate, true
	}
	return c.Rate, false
}

// ManualRates lists the rates that operators have set, by channel.
func (r *Catalog) ManualRates() []ManualRate {
	r.rates.mu.RLock()
	defer r.rates.mu.RUnlock()
	var all []ManualRate
	for _, one := range r.rates.all {
		if !one.deleted {
			all = append(all, one.ManualRate)
		}
	}
	slices.SortFunc(all, func(a, b ManualRate) int { return cmp.Compare(a.Channel, b.Channel) })
	return all
}

// SetChannelRate sets the rate of a channel (service/channel) in place of the configured one; nil
// restores that one. The rate is durable when it returns.
func (r *Catalog) SetChannelRate(ctx context.Context, channel string, rate *catalog.Rate) error {
	return r.writer.Run(ctx, func() error {
		if err := r.checkScope(fanfare.Scope{Kind: fanfare.ScopeChannel, Name: channel}); err != nil {
			return err
		}
		service, name, _ := strings.Cut(channel, "/")
		c := r.config.Load().Services[service].Channels[name]
		was, byHand := r.ChannelRate(c)
		old, known := r.rates.get(channel)
		one := storedRate{ManualRate{Channel: channel, Since: r.opt.Apply.Now().UTC()}, old.number, rate == nil}
		is := c.Rate
		if rate != nil {
			one.Rate, is = *rate, *rate
		}
		if byHand == (rate != nil) && was == is {
			return nil
		}
		if !known {
			one.number = r.rates.last + 1
		}
		body, err := json.Marshal(one.ManualRate)
		if err != nil {
			return err
		}
		b := control.Batch{Config: []control.ConfigRecord{{Kind: kindRate, Number: one.number, Name: channel, Body: body, Deleted: one.deleted}}}
		b.AddAudit(audit.ActorOf(ctx), audit.Operation{Service: service, Action: "rate", Kind: catalog.KindChannel, Name: channel},
			&audit.Detail{Fields: []audit.FieldChange{{Field: "rate", Old: was.String(), New: is.String()}}})
		if err := r.writer.Commit(&b); err != nil {
			return err
		}
		r.rates.set(one)
		return nil
	})
}

func (r *Catalog) loadRate(c *control.ConfigRecord) error {
	one := storedRate{number: c.Number, deleted: c.Deleted}
	if err := json.Unmarshal(c.Body, &one.ManualRate); err != nil {
		return err
	}
	r.rates.set(one)
	return nil
}

// rateNotes returns notes about channels of a document whose configured rate is not in force.
func (r *Catalog) rateNotes(service string, channels map[string]*document.ChannelSpec) (notes []string) {
	for _, one := range r.ManualRates() {
		of, name, _ := strings.Cut(one.Channel, "/")
		if spec := channels[name]; of == service && spec != nil && !spec.Delete {
			notes = append(notes, "the rate of channel "+name+" is overridden with "+one.Rate.String()+"; to use the configured rate again, run `fanfare rate channel "+one.Channel+" configured`")
		}
	}
	return notes
}
