package report

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
)

// Broadcast returns an event with the progress of its broadcast.
func (t *Traces) Broadcast(ctx context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error) {
	b, err := t.broadcast(ctx, ref)
	if err != nil {
		return fanfare.Broadcast{}, err
	}
	if b.State == queued {
		return *b, nil
	}
	if b, err = t.soFar(ctx, ref, b); err != nil {
		return fanfare.Broadcast{}, err
	}
	if b.Kind == fanfare.KindEvent {
		if b.Gathered, err = t.Digests.Gathered(ctx, ref); err != nil {
			return fanfare.Broadcast{}, err
		}
	}
	one := []fanfare.Broadcast{*b}
	err = t.inboxCounts(ctx, one)
	return one[0], err
}

// States of a broadcast: accepted and not matched yet, matched, and matched with nothing that may be sent.
const (
	queued   = "queued"
	running  = "running"
	isPaused = "paused"
)

// broadcast reads an event from the store or, before it is matched, from EVENTS.
func (t *Traces) broadcast(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	b, posted, kept, err := Look(ctx, t.Queue, ref, func() (*fanfare.Broadcast, error) { return t.Store.Broadcast(ctx, ref) })
	if err != nil || posted == nil {
		return b, err
	}
	b = &fanfare.Broadcast{Event: ref.String(), State: queued, Stages: fanfare.Stages{Kept: kept}}
	b.Describe(posted)
	return b, nil
}

// soFar adds the progress to a broadcast that was read from the store.
func (t *Traces) soFar(ctx context.Context, ref fanfare.EventRef, b *fanfare.Broadcast) (*fanfare.Broadcast, error) {
	if !b.Stages.Completed.IsZero() {
		return b, nil
	}
	p, open := t.Progress.Progress(ref)
	if !open {
		return t.closed(ctx, ref)
	}
	if err := t.setPaused(ctx, ref, b); err != nil {
		return nil, err
	}
	b.Counts, b.Stages.First, b.Stages.Last = p.Counts, p.First, p.Last
	if err := t.waitsOfBroadcast(ctx, ref, b); err != nil {
		return nil, err
	}
	if b.PerSecond, b.End = t.Progress.Estimate(ref, b.Waits); b.State != running {
		b.End = time.Time{} // only messages that were being sent are left
	}
	return b, nil
}

// closed reads a broadcast again that was open in the store and that the recorder does not know: it was completed between
// the two lookups, or is about to begin.
func (t *Traces) closed(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	b, err := t.Store.Broadcast(ctx, ref)
	if err == nil && b.Stages.Completed.IsZero() && b.Counts.Total() == 0 {
		b.Counts[fanfare.Pending] = b.Messages
	}
	return b, err
}

// Pauses know the pauses of everything, of services and of channels.
type Pauses interface {
	// Paused reports whether a channel of a service is paused, and why; with "" for the channel, whether the service is.
	Paused(service, channel string) (why string, is bool)
	// AnyChannelPaused reports whether a channel of a service is paused.
	AnyChannelPaused(service string) bool
}

// setPaused changes the state of a running broadcast to paused if none of its messages may be sent: everything is paused,
// or its service, or each of its channels.
func (t *Traces) setPaused(ctx context.Context, ref fanfare.EventRef, b *fanfare.Broadcast) error {
	if b.State != running || t.Pauses == nil {
		return nil
	}
	why, is := t.Pauses.Paused(b.Service, "")
	if !is && t.Pauses.AnyChannelPaused(b.Service) {
		var err error
		if why, is, err = t.channelsPaused(ctx, ref, b.Service); err != nil {
			return err
		}
	}
	if is {
		b.State, b.Reason = isPaused, why
	}
	return nil
}

// channelsPaused reports whether each channel of a broadcast is paused, and the reason of the first.
func (t *Traces) channelsPaused(ctx context.Context, ref fanfare.EventRef, service string) (why string, is bool, err error) {
	manifests, err := t.Store.Manifests(ctx, ref)
	if err != nil {
		return "", false, err
	}
	for i := range manifests {
		for _, section := range manifests[i].Sections {
			channel, known := t.Registry.Channel(section.Channel)
			if !known {
				return "", false, nil
			}
			one, stopped := t.Pauses.Paused(service, channel.Name)
			if !stopped {
				return "", false, nil
			}
			if !is {
				why, is = one, true
			}
		}
	}
	return why, is, nil
}

// Quotas know which daily quotas are used up.
type Quotas interface {
	// Spent returns until when the quota of a channel, or of its service, is used up; with "" for the channel, only that
	// of the service. The zero time means that it is not.
	Spent(service, channel string) time.Time
	// AnySpent reports whether a quota of a service or of its channels is used up.
	AnySpent(service string) bool
}

// waitsOf adds the reason for waiting to open deliveries, starting at a position. Deferred deliveries already have the time
// of the next attempt.
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

// waitsOfBroadcast adds the reasons for which the open deliveries of a broadcast wait.
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
