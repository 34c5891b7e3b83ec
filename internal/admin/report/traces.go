// Package report reports what happened to an event, a person or a message, and explains why.
//
// State. None. Settled deliveries come from the store, and running ones from the counts of the recorder. A trace is read
// while deliveries continue, so two pages may show different points in time.
//
// The API calls it; messages, previews and exports also read traces.
package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
)

// Store is the record of deliveries.
type Store interface {
	Days(ctx context.Context) ([]fanfare.Day, error)
	Broadcast(ctx context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error)
	Broadcasts(ctx context.Context, day fanfare.Day, service string, from, before fanfare.EventSeq, limit int) ([]*fanfare.Broadcast, error)
	// EventRange returns the lowest and the highest sequence of a day.
	EventRange(ctx context.Context, day fanfare.Day) (first, last fanfare.EventSeq, err error)
	Manifests(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Manifest, error)
	ManifestOf(ctx context.Context, ref fanfare.EventRef, partition int) (*fanfare.Manifest, error)
	Attempts(ctx context.Context, day fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(*fanfare.Entry) error) error
	// Unsent returns positions in [from, to) whose deliveries are in a state that has a reason.
	Unsent(ctx context.Context, day fanfare.Day, manifest fanfare.ManifestID, state fanfare.State, from, to uint32, limit int) ([]uint32, error)
	// Waits visits the postponed members [from, to) of a manifest, and EventWaits counts those of an event by reason.
	Waits(ctx context.Context, day fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(position uint32, w fanfare.Waiting)) error
	EventWaits(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Waiting, error)
	History(ctx context.Context, day fanfare.Day, subscriber fanfare.RowID) ([]fanfare.EventSeq, error)
	FindEvent(ctx context.Context, day fanfare.Day, service, id string) (fanfare.EventSeq, error)
}

// Registry knows subscribers and the configuration.
type Registry interface {
	// SubscriberPlaces returns the row ids of all addresses of a subscriber, or of one address.
	SubscriberPlaces(ctx context.Context, service, addressOrID string) ([]fanfare.RowID, error)
	Subscribers(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriberRow) error) error
	Subscriptions(ctx context.Context, places []fanfare.RowID, visit func(*people.SubscriptionRow) error) error
	Channel(number uint16) (*catalog.Channel, bool)
	Template(number uint32) (catalog.TemplateSource, bool)
}

// Progress knows the progress of open broadcasts.
type Progress interface {
	Progress(ref fanfare.EventRef) (fanfare.Progress, bool)
	// Outlook returns the rate of a broadcast and its estimated end, with regard to its postponed deliveries.
	Estimate(ref fanfare.EventRef, waits []fanfare.Waiting) (perSecond float64, end time.Time)
}

// Queue provides the events in EVENTS.
type Queue interface {
	// Queued returns an event and when it was appended; nil if EVENTS does not have it.
	Queued(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, time.Time, error)
}

// Traces reads traces.
type Traces struct {
	Store    Store
	Registry Registry
	Progress Progress
	Queue    Queue
	Quotas   Quotas // nil: no quotas
	Pauses   Pauses // nil: no pauses
	Digests  Digests
	Inboxes  Inboxes // nil: no mailboxes

	Budget time.Duration // time for which a list searches; 0: defaultBudget
}

// FindEvent finds an event by its public id, or the newest of a service by the id of the CloudEvent.
func (t *Traces) FindEvent(ctx context.Context, service, id string) (fanfare.EventRef, error) {
	if ref, ok := fanfare.ParseEventRef(id); ok {
		b, err := t.broadcast(ctx, ref)
		if err != nil {
			return ref, err
		}
		if service != "" && b.Service != service {
			return ref, unknown(id)
		}
		return ref, nil
	}
	days, err := t.Store.Days(ctx)
	if err != nil {
		return fanfare.EventRef{}, err
	}
	for _, day := range days {
		seq, err := t.Store.FindEvent(ctx, day, service, id)
		if gone(err) {
			continue
		}
		if err != nil {
			return fanfare.EventRef{}, err
		}
		if seq != 0 {
			return fanfare.EventRef{Day: day, Seq: seq}, nil
		}
	}
	return fanfare.EventRef{}, unknown(id)
}

// gone reports whether a day was removed since it was listed.
func gone(err error) bool { return err != nil && fanfare.CodeOf(err) == fanfare.NotFound }

func unknown(id string) error {
	e := &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no event %q", id), Hint: "the event may not have been matched yet, or it may be older than retention_days"}
	switch {
	case strings.HasPrefix(id, "sub-"):
		e.Hint = "this is the id of a subscription; use the id of an event, evt-…"
	case strings.HasPrefix(id, "dlv-"):
		e.Hint = "this is the id of a delivery; use the id of its event, which each list shows next to the delivery"
	case strings.Contains(id, "@"):
		e.Hint = "to list the deliveries of a person, use fanfare trace --subscriber or /v1/subscribers/{subscriber}/deliveries"
	}
	return e
}

// Delivery returns one delivery.
func (t *Traces) Delivery(ctx context.Context, ref fanfare.DeliveryRef) (fanfare.Delivery, error) {
	unknown := &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no delivery %q", ref.String()), Hint: "the delivery may be older than retention_days"}
	event := fanfare.EventRef{Day: ref.Day, Seq: ref.Manifest.Event()}
	b, err := t.Store.Broadcast(ctx, event)
	if gone(err) {
		return fanfare.Delivery{}, unknown
	}
	if err != nil {
		return fanfare.Delivery{}, err
	}
	m, err := t.Store.ManifestOf(ctx, event, ref.Manifest.Partition())
	if err != nil {
		return fanfare.Delivery{}, err
	}
	if m == nil || m.ID != ref.Manifest || ref.Position >= uint32(m.Members()) {
		return fanfare.Delivery{}, unknown
	}
	found, err := t.deliveries(ctx, b, ref.Day, m, ref.Position, ref.Position+1)
	if err != nil {
		return fanfare.Delivery{}, err
	}
	return found[0], nil
}

// EachOfEvent visits all deliveries of an event with the row ids of their recipients, in the order of its manifests. It visits none before the event is matched.
func (t *Traces) EachOfEvent(ctx context.Context, ref fanfare.EventRef, visit func(subscriber fanfare.RowID, d *fanfare.Delivery) error) error {
	b, err := t.broadcast(ctx, ref)
	if err != nil || b.State == queued {
		return err
	}
	manifests, err := t.Store.Manifests(ctx, ref)
	if err != nil {
		return err
	}
	for i := range manifests {
		m := &manifests[i]
		for position, size := uint32(0), uint32(m.Members()); position < size; {
			to := min(position+chunk, size)
			found, err := t.deliveries(ctx, b, ref.Day, m, position, to)
			if err != nil {
				return err
			}
			for j := range found {
				_, member, _ := m.At(position + uint32(j))
				if err := visit(member.Subscriber, &found[j]); err != nil {
					return err
				}
			}
			position = to
		}
	}
	return nil
}

// DeliveryOf returns the deliveries of an event to one recipient, one for each channel and address, and the digests that
// reported it. There are none if the event did not match, or waits.
func (t *Traces) DeliveryOf(ctx context.Context, ref fanfare.EventRef, recipient string) ([]fanfare.Delivery, error) {
	b, err := t.broadcast(ctx, ref)
	if err != nil || b.State == queued {
		return []fanfare.Delivery{}, err
	}
	places, err := t.Registry.SubscriberPlaces(ctx, b.Service, recipient)
	if err != nil {
		return nil, err
	}
	list := []fanfare.Delivery{}
	for _, place := range places {
		found, err := t.deliveriesOf(ctx, b, ref, place)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
		if b.Kind == fanfare.KindEvent {
			if found, err = t.digestsOf(ctx, ref, place); err != nil {
				return nil, err
			}
			list = append(list, found...)
		}
	}
	return list, nil
}

func (t *Traces) deliveriesOf(ctx context.Context, b *fanfare.Broadcast, ref fanfare.EventRef, place fanfare.RowID) ([]fanfare.Delivery, error) {
	list := []fanfare.Delivery{}
	m, err := t.Store.ManifestOf(ctx, ref, place.Partition())
	if err != nil || m == nil {
		return list, err
	}
	for _, p := range m.PositionsOf(place) {
		found, err := t.deliveries(ctx, b, ref.Day, m, p, p+1)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// deliveries returns the deliveries of the positions [from, to) of a manifest.
func (t *Traces) deliveries(ctx context.Context, b *fanfare.Broadcast, day fanfare.Day, m *fanfare.Manifest, from, to uint32) ([]fanfare.Delivery, error) {
	list := make([]fanfare.Delivery, to-from)
	names, err := t.recipientNames(ctx, m, from, to)
	if err != nil {
		return nil, err
	}
	for i := range list {
		position := from + uint32(i)
		section, member, _ := m.At(position)
		d := &list[i]
		*d = fanfare.Delivery{
			ID:    fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: position}.String(),
			Event: b.Event, Kind: b.Kind, Service: b.Service, Topic: b.Topic, Reference: b.Reference,
			State: fanfare.Pending.String(), Attempts: []fanfare.Attempt{},
			Subscriber: names.ids[member.Subscriber], Address: names.addresses[member.Subscriber],
			Subscriptions: names.subscriptions(member),
		}
		if c, ok := t.Registry.Channel(section.Channel); ok {
			d.Channel = c.Name
		}
		if s, ok := t.Registry.Template(section.Template); ok {
			d.Template = fmt.Sprintf("%s@%d", s.Name, s.Version)
		}
	}
	err = t.Store.Attempts(ctx, day, m.ID, from, to, func(e *fanfare.Entry) error {
		d := &list[e.Delivery.Position-from]
		d.State = e.State.String()
		if e.Address != "" {
			d.Address = e.Address
		}
		d.Attempts = append(d.Attempts, fanfare.Attempt{
			Number: int(e.Attempt), State: e.State, Status: e.State.String(),
			Code: e.Code, Text: e.Text, Relay: e.Relay, At: e.At, NextAt: e.NextAt,
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.Kind == fanfare.KindDigest {
		if err := t.tellEvents(ctx, fanfare.EventRef{Day: day, Seq: m.ID.Event()}, m, from, list); err != nil {
			return nil, err
		}
	}
	if err := t.inboxTimes(ctx, day, m, from, list); err != nil {
		return nil, err
	}
	return list, t.waitsOf(ctx, day, m, from, list)
}

// people contains the names of some members.
type recipientNames struct {
	ids, addresses map[fanfare.RowID]string
	subs           map[fanfare.RowID]string
}

func (p *recipientNames) subscriptions(m fanfare.Member) []string {
	ids := make([]string, len(m.Subscriptions))
	for i, place := range m.Subscriptions {
		ids[i] = p.subs[place]
	}
	return ids
}

func (t *Traces) recipientNames(ctx context.Context, m *fanfare.Manifest, from, to uint32) (*recipientNames, error) {
	var subscribers, subscriptions []fanfare.RowID
	for position := from; position < to; position++ {
		_, member, ok := m.At(position)
		if !ok {
			return nil, fmt.Errorf("manifest %x has no position %d", uint64(m.ID), position)
		}
		subscribers = append(subscribers, member.Subscriber)
		subscriptions = append(subscriptions, member.Subscriptions...)
	}
	slices.Sort(subscribers)
	slices.Sort(subscriptions)
	p := &recipientNames{ids: map[fanfare.RowID]string{}, addresses: map[fanfare.RowID]string{}, subs: map[fanfare.RowID]string{}}
	err := t.Registry.Subscribers(ctx, slices.Compact(subscribers), func(r *people.SubscriberRow) error {
		p.ids[r.Place], p.addresses[r.Place] = r.ID, r.Address
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = t.Registry.Subscriptions(ctx, slices.Compact(subscriptions), func(r *people.SubscriptionRow) error {
		p.subs[r.Place] = r.ID
		return nil
	})
	return p, err
}

// Look finds an event in the store, with stored, or in EVENTS, with the time at which it was appended. An event that is in
// neither may have moved to the store between the two lookups, so Look reads the store again.
func Look[T any](ctx context.Context, queue Queue, ref fanfare.EventRef, stored func() (T, error)) (found T, waiting *fanfare.AcceptedEvent, kept time.Time, err error) {
	found, err = stored()
	if err == nil || fanfare.CodeOf(err) != fanfare.NotFound {
		return found, nil, kept, err
	}
	waiting, kept, err = queue.Queued(ctx, ref)
	if err == nil && waiting == nil {
		found, err = stored()
	}
	return found, waiting, kept, err
}

// Accepted returns an accepted event, and reports whether it has not been matched yet.
func Accepted(ctx context.Context, queue Queue, events Events, ref fanfare.EventRef) (posted *fanfare.AcceptedEvent, queued bool, err error) {
	posted, waiting, _, err := Look(ctx, queue, ref, func() (*fanfare.AcceptedEvent, error) { return events.Posted(ctx, ref) })
	if err == nil && waiting != nil {
		return waiting, true, nil
	}
	return posted, false, err
}
