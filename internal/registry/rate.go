package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare"
)

// kindRate is the kind of a ConfigRecord: the rate of a channel that an operator
// has set by hand.
const kindRate = "rate"

// A SetRate is a rate that was set by hand, in place of the one that is
// configured.
type SetRate struct {
	Channel string    `json:"channel"` // service/channel
	Rate    Rate      `json:"rate"`
	Since   time.Time `json:"since"`
}

// rates are the rates of channels that were set by hand.
type rates struct {
	mu   sync.RWMutex
	all  map[string]keptRate // by service/channel
	last uint32              // number of the last one
}

type keptRate struct {
	SetRate
	number  uint32
	deleted bool // the configured one counts again
}

func (r *rates) set(one keptRate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]keptRate{}
	}
	r.all[one.Channel] = one
	r.last = max(r.last, one.number)
}

func (r *rates) get(channel string) (keptRate, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	one, ok := r.all[channel]
	return one, ok
}

// RateOf returns the rate in force of a channel, and whether it was set by hand.
func (r *Registry) RateOf(c *Channel) (rate Rate, byHand bool) {
	if one, ok := r.rates.get(c.Service + "/" + c.Name); ok && !one.deleted {
		return one.Rate, true
	}
	return c.Rate, false
}

// SetRates lists the rates that were set by hand, by channel.
func (r *Registry) SetRates() []SetRate {
	r.rates.mu.RLock()
	defer r.rates.mu.RUnlock()
	var all []SetRate
	for _, one := range r.rates.all {
		if !one.deleted {
			all = append(all, one.SetRate)
		}
	}
	slices.SortFunc(all, func(a, b SetRate) int { return cmp.Compare(a.Channel, b.Channel) })
	return all
}

// SetChannelRate sets the rate of a channel, service/channel, in place of the
// configured one, which nil puts in force again. It is durable when it returns.
func (r *Registry) SetChannelRate(ctx context.Context, channel string, rate *Rate) error {
	return r.writer.submit(ctx, &job{run: func(w *writer) error {
		if err := r.checkScope(fanfare.Scope{Kind: fanfare.ScopeChannel, Name: channel}); err != nil {
			return err
		}
		service, name, _ := strings.Cut(channel, "/")
		c := r.config.Load().services[service].channels[name]
		was, byHand := r.RateOf(c)
		old, known := r.rates.get(channel)
		one := keptRate{SetRate{Channel: channel, Since: r.opt.Now().UTC()}, old.number, rate == nil}
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
		body, err := json.Marshal(one.SetRate)
		if err != nil {
			return err
		}
		b := control.Batch{Config: []control.ConfigRecord{{Kind: kindRate, Number: one.number, Name: channel, Body: body, Deleted: one.deleted}}}
		b.AddAudit(audit.ActorOf(ctx), audit.Operation{Service: service, Action: "rate", Kind: kindChannel, Name: channel},
			&audit.Detail{Fields: []audit.FieldChange{{Field: "rate", Old: was.String(), New: is.String()}}})
		if err := r.commit(&b); err != nil {
			return err
		}
		r.rates.set(one)
		return nil
	}})
}

func (r *Registry) loadRate(c *control.ConfigRecord) error {
	one := keptRate{number: c.Number, deleted: c.Deleted}
	if err := json.Unmarshal(c.Body, &one.SetRate); err != nil {
		return err
	}
	r.rates.set(one)
	return nil
}

// rateNotes tell of the channels of a document whose rate is not the one that is
// configured.
func (r *Registry) rateNotes(service string, channels map[string]*ChannelSpec) (notes []string) {
	for _, one := range r.SetRates() {
		of, name, _ := strings.Cut(one.Channel, "/")
		if spec := channels[name]; of == service && spec != nil && !spec.Delete {
			notes = append(notes, "the rate of channel "+name+" is set to "+one.Rate.String()+" by hand; the configured one counts again after `fanfare rate channel "+one.Channel+" configured`")
		}
	}
	return notes
}
