package report

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Quotas know which daily quotas are used up.
type Quotas interface {
	// Spent returns until when the quota of a channel, or of its service, is used up; with "" for the channel, only that
	// of the service. The zero time means that it is not.
	Spent(service, channel string) time.Time
	// AnySpent reports whether a quota of a service or of its channels is used up.
	AnySpent(service string) bool
}

// waitsOf adds to open deliveries, at the positions from one on, what they wait for. Deferred deliveries have the time of the
// next attempt already.
func (t *Traces) waitsOf(ctx context.Context, day fanfare.Day, m *fanfare.Manifest, from uint32, list []fanfare.Delivery) error {
	open := false
	for i := range list {
		d := &list[i]
		open = open || isOpen(d)
		if d.State != fanfare.Pending.String() || t.Quotas == nil {
			continue
		}
		if until := t.Quotas.Spent(d.Service, d.Channel); !until.IsZero() {
			d.Waits = &fanfare.Waiting{For: fanfare.WaitDailyQuota, Until: until}
		}
	}
	if !open {
		return nil
	}
	return t.Store.Waits(ctx, day, m.ID, from, from+uint32(len(list)), func(position uint32, w fanfare.Waiting) {
		if d := &list[position-from]; isOpen(d) {
			d.Waits = &w
		}
	})
}

func isOpen(d *fanfare.Delivery) bool {
	return d.State == fanfare.Pending.String() || d.State == fanfare.Deferred.String()
}

// waitsOfBroadcast adds what the open deliveries of a broadcast wait for.
func (t *Traces) waitsOfBroadcast(ctx context.Context, ref fanfare.EventRef, b *fanfare.Broadcast) error {
	if b.Counts.Total() == b.Counts.Settled() {
		return nil
	}
	waits, err := t.Store.EventWaits(ctx, ref)
	if err != nil {
		return err
	}
	b.Waits = waits
	if b.State != running || t.Quotas == nil || !t.Quotas.AnySpent(b.Service) {
		return nil
	}
	until := t.Quotas.Spent(b.Service, "")
	if until.IsZero() {
		if until, err = t.spentOf(ctx, ref, b.Service); err != nil {
			return err
		}
	}
	if !until.IsZero() {
		b.Waits = append(b.Waits, fanfare.Waiting{For: fanfare.WaitDailyQuota, Until: until})
	}
	return nil
}

// spentOf returns until when the quota of a channel of an event is used up.
func (t *Traces) spentOf(ctx context.Context, ref fanfare.EventRef, service string) (until time.Time, err error) {
	manifests, err := t.Store.Manifests(ctx, ref)
	if err != nil {
		return until, err
	}
	looked := map[uint16]bool{}
	for i := range manifests {
		for j := range manifests[i].Sections {
			number := manifests[i].Sections[j].Channel
			if looked[number] {
				continue
			}
			looked[number] = true
			if c, ok := t.Registry.Channel(number); ok {
				if at := t.Quotas.Spent(service, c.Name); at.After(until) {
					until = at
				}
			}
		}
	}
	return until, nil
}
