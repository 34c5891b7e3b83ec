package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
)

var notFound = &fanfare.Error{Code: fanfare.NotFound, Message: "not there"}

// record is a store in memory; days that are listed and not there were removed
// in between.
type record struct {
	days       []fanfare.Day
	broadcasts map[fanfare.EventRef]*fanfare.Broadcast
	manifests  map[fanfare.EventRef][]fanfare.Manifest
	attempts   []fanfare.Entry
	waits      map[fanfare.DeliveryRef]fanfare.Waiting
	looks      int
	completes  func(*fanfare.Broadcast) // at the second look
}

func (r *record) has(day fanfare.Day) bool {
	for ref := range r.broadcasts {
		if ref.Day == day {
			return true
		}
	}
	return false
}

func (r *record) Days(context.Context) ([]fanfare.Day, error) { return r.days, nil }

func (r *record) Broadcast(_ context.Context, ref fanfare.EventRef) (*fanfare.Broadcast, error) {
	b, ok := r.broadcasts[ref]
	if !ok {
		return nil, notFound
	}
	r.looks++
	if r.looks > 1 && r.completes != nil {
		r.completes(b)
	}
	copied := *b
	return &copied, nil
}

func (r *record) Broadcasts(_ context.Context, day fanfare.Day, service string, from, before fanfare.EventSeq, limit int) ([]*fanfare.Broadcast, error) {
	if !r.has(day) {
		return nil, notFound
	}
	var list []*fanfare.Broadcast
	for _, ref := range r.refs() {
		if b := r.broadcasts[ref]; ref.Day == day && ref.Seq >= from && ref.Seq < before && (service == "" || b.Service == service) && len(list) < limit {
			copied := *b
			list = append(list, &copied)
		}
	}
	return list, nil
}

func (r *record) EventRange(_ context.Context, day fanfare.Day) (first, last fanfare.EventSeq, err error) {
	if !r.has(day) {
		return 0, 0, notFound
	}
	for _, ref := range r.refs() { // newest first
		if ref.Day == day {
			first, last = ref.Seq, max(last, ref.Seq)
		}
	}
	return first, last, nil
}

func (r *record) Unsent(_ context.Context, day fanfare.Day, manifest fanfare.ManifestID, state fanfare.State, from, to uint32, limit int) (positions []uint32, err error) {
	for i := range r.attempts {
		d := r.attempts[i].Delivery
		if d.Day == day && d.Manifest == manifest && d.Position >= from && d.Position < to && r.attempts[i].State == state {
			positions = append(positions, d.Position)
		}
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	return positions[:min(limit, len(positions))], nil
}

// refs lists all events, newest first.
func (r *record) refs() []fanfare.EventRef {
	var refs []fanfare.EventRef
	for ref := range r.broadcasts {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b fanfare.EventRef) int { return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.Seq, a.Seq)) })
	return refs
}

func (r *record) Manifests(_ context.Context, ref fanfare.EventRef) ([]fanfare.Manifest, error) {
	return r.manifests[ref], nil
}

func (r *record) ManifestOf(_ context.Context, ref fanfare.EventRef, partition int) (*fanfare.Manifest, error) {
	var found *fanfare.Manifest
	for i := range r.manifests[ref] {
		if m := &r.manifests[ref][i]; m.ID.Partition() <= partition {
			found = m
		}
	}
	return found, nil
}

func (r *record) Attempts(_ context.Context, day fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(*fanfare.Entry) error) error {
	for i := range r.attempts {
		if e := &r.attempts[i]; e.Delivery.Day == day && e.Delivery.Manifest == manifest && e.Delivery.Position >= from && e.Delivery.Position < to {
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *record) Waits(_ context.Context, day fanfare.Day, manifest fanfare.ManifestID, from, to uint32, visit func(uint32, fanfare.Waiting)) error {
	for ref, w := range r.waits {
		if ref.Day == day && ref.Manifest == manifest && ref.Position >= from && ref.Position < to {
			visit(ref.Position, w)
		}
	}
	return nil
}

func (r *record) EventWaits(_ context.Context, ref fanfare.EventRef) (waits []fanfare.Waiting, err error) {
	for of, w := range r.waits {
		if of.Day == ref.Day && of.Manifest.Event() == ref.Seq {
			w.Messages = 1
			waits = append(waits, w)
		}
	}
	return waits, nil
}

func (r *record) History(_ context.Context, day fanfare.Day, subscriber fanfare.RowID) ([]fanfare.EventSeq, error) {
	if !r.has(day) {
		return nil, notFound
	}
	var seqs []fanfare.EventSeq
	for _, ref := range r.refs() {
		for _, m := range r.manifests[ref] {
			if ref.Day == day && len(m.PositionsOf(subscriber)) > 0 {
				seqs = append(seqs, ref.Seq)
			}
		}
	}
	return seqs, nil
}

func (r *record) FindEvent(_ context.Context, day fanfare.Day, service, id string) (fanfare.EventSeq, error) {
	if !r.has(day) {
		return 0, notFound
	}
	for _, ref := range r.refs() {
		if b := r.broadcasts[ref]; ref.Day == day && b.Service == service && b.SourceID == id {
			return ref.Seq, nil
		}
	}
	return 0, nil
}

// phonebook knows everybody by place.
type phonebook struct{}

func (phonebook) SubscriberPlaces(_ context.Context, _, address string) ([]fanfare.RowID, error) {
	var place fanfare.RowID
	if _, err := fmt.Sscanf(address, "%d@example.org", &place); err != nil {
		return nil, notFound
	}
	return []fanfare.RowID{place}, nil
}

func (phonebook) Subscribers(_ context.Context, places []fanfare.RowID, visit func(*people.SubscriberRow) error) error {
	for _, place := range places {
		if err := visit(&people.SubscriberRow{Place: place, ID: fmt.Sprintf("id-%d", place), Address: fmt.Sprintf("%d@example.org", place)}); err != nil {
			return err
		}
	}
	return nil
}

func (phonebook) Subscriptions(_ context.Context, places []fanfare.RowID, visit func(*people.SubscriptionRow) error) error {
	for _, place := range places {
		if err := visit(&people.SubscriptionRow{Place: place, ID: fmt.Sprintf("sub-%d", place)}); err != nil {
			return err
		}
	}
	return nil
}

func (phonebook) Channel(number uint16) (*catalog.Channel, bool) {
	return &catalog.Channel{Number: number, Name: fmt.Sprintf("channel-%d", number)}, true
}

func (phonebook) Template(number uint32) (catalog.TemplateSource, bool) {
	return catalog.TemplateSource{Name: "story", Version: int(number)}, true
}

// counts are the progress of open broadcasts.
type counts map[fanfare.EventRef]fanfare.Progress

func (c counts) Estimate(ref fanfare.EventRef, _ []fanfare.Waiting) (perSecond float64, end time.Time) {
	if _, open := c[ref]; !open {
		return 0, end
	}
	return 25, noon.Add(time.Hour)
}

func (c counts) Progress(ref fanfare.EventRef) (fanfare.Progress, bool) {
	p, ok := c[ref]
	return p, ok
}

// waiting are the events that are not matched yet.
type waiting map[fanfare.EventRef]*fanfare.AcceptedEvent

func (w waiting) Queued(_ context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, time.Time, error) {
	return w[ref], noon, nil
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func refOf(days int, stream uint64) fanfare.EventRef {
	return fanfare.EventRef{Day: fanfare.DayOf(noon) + fanfare.Day(days), Seq: fanfare.NewEventSeq(stream, 0)}
}

// newTraces makes traces of events with manifests of these sizes; a member's
// subscriber is its number, in the partition of its manifest.
func newTraces(sizes map[fanfare.EventRef][]int) (*Traces, *record) {
	r := &record{broadcasts: map[fanfare.EventRef]*fanfare.Broadcast{}, manifests: map[fanfare.EventRef][]fanfare.Manifest{}}
	for ref, manifests := range sizes {
		b := &fanfare.Broadcast{Event: ref.String(), Service: "news", Topic: "story", SourceID: fmt.Sprintf("e%d", ref.Seq.Stream()), State: "running"}
		for partition, n := range manifests {
			m := fanfare.Manifest{ID: fanfare.NewManifestID(ref.Seq, partition)}
			for from := 0; from < n; from += max(1, n/2) { // two sections or three
				section := fanfare.Section{Channel: uint16(len(m.Sections) + 1), Template: 3}
				for i := from; i < min(n, from+max(1, n/2)); i++ {
					place := fanfare.NewRowID(partition, uint32(i))
					section.Members.Add(place, place, place+1)
				}
				m.Sections = append(m.Sections, section)
			}
			r.manifests[ref] = append(r.manifests[ref], m)
			b.Messages += int64(n)
		}
		r.broadcasts[ref] = b
		if !slices.Contains(r.days, ref.Day) {
			r.days = append(r.days, ref.Day)
		}
	}
	slices.SortFunc(r.days, func(a, b fanfare.Day) int { return cmp.Compare(b, a) })
	return &Traces{Store: r, Registry: phonebook{}, Progress: counts{}, Queue: waiting{}}, r
}

// pageList returns the elements of a page.
func pageList[T any](page Page[T], err error) ([]T, error) { return page.List, err }
