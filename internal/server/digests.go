package server

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/render"
)

// runItems are the events that the messages of a run tell of, as far as they were
// needed.
type runItems struct {
	store itemStore
	run   fanfare.EventRef
	known map[uint32]*render.Item
	bytes int
}

type itemStore interface {
	Items(ctx context.Context, run fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error
}

const (
	// maxItemsAhead is how many events of a run are read at a time, and itemsAhead
	// while it is not known how large they are: one may have a megabyte.
	maxItemsAhead = 1024
	itemsAhead    = 32
	// maxItemBytes is how many bytes of them are kept at hand for the next batches.
	maxItemBytes = 4 << 20
)

// ahead sees to it that what the first of members is told of is at hand, and reads
// what the next ones of the run need with it.
func (r *runItems) ahead(ctx context.Context, members []pending) error {
	if !r.lacks(&members[0]) {
		return nil
	}
	most := r.most()
	if r.known == nil || r.bytes > maxItemBytes {
		r.known, r.bytes = map[uint32]*render.Item{}, 0
	}
	wanted := map[uint32]bool{}
	for i := range members {
		if i > 0 && (len(wanted) >= most || eventOf(&members[i]) != r.run) {
			break
		}
		for _, item := range members[i].member.Items {
			if r.known[item.Number] == nil {
				wanted[item.Number] = true
			}
		}
	}
	numbers := make([]uint32, 0, len(wanted))
	for n := range wanted {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return r.store.Items(ctx, r.run, numbers, func(item fanfare.RunItem) error {
		p := item.Posted
		r.known[item.Number] = &render.Item{Event: &p.Event, Ref: p.Ref(), Topic: p.Topic}
		r.bytes += len(p.Event.Data) + len(p.Event.Binary)
		return nil
	})
}

// most is how many events are read at a time: by what those at hand have, as many
// as may be kept.
func (r *runItems) most() int {
	if len(r.known) == 0 {
		return itemsAhead
	}
	return min(maxItemsAhead, max(itemsAhead, maxItemBytes/(r.bytes/len(r.known)+1)))
}

func (r *runItems) lacks(m *pending) bool {
	for _, item := range m.member.Items {
		if r.known[item.Number] == nil {
			return true
		}
	}
	return false
}

// digest is what a run's messages share, for templates.
func (r *runItems) digest(run *fanfare.Run) *render.Digest {
	return &render.Digest{
		Due: run.Due, Cadence: run.Cadence, Zone: locate(run.Zone, ""),
		Item: func(number uint32) *render.Item { return r.known[number] },
	}
}

// itemsOf are the items of a member that one of the recipient's subscriptions still
// wants; these are ascending by place.
func itemsOf(m *fanfare.Member, live []render.Subscription) []render.ItemOf {
	items := make([]render.ItemOf, 0, len(m.Items))
	wanted := make([]uint32, 0, len(m.Items)) // never grows: slices of it stay good
	for _, item := range m.Items {
		at, ok := slices.BinarySearchFunc(live, item.Subscription, func(s render.Subscription, place fanfare.RowID) int {
			return int(int64(s.Place) - int64(place))
		})
		if !ok {
			continue
		}
		wanted = append(wanted, uint32(at))
		if n := len(items); n == 0 || items[n-1].Number != item.Number {
			items = append(items, render.ItemOf{Number: item.Number})
		}
		last := &items[len(items)-1]
		last.Subscriptions = wanted[len(wanted)-1-len(last.Subscriptions):]
	}
	return items
}

// placesOf are the subscriptions that a message speaks of.
func placesOf(all []render.Subscription) []fanfare.RowID {
	places := make([]fanfare.RowID, len(all))
	for i := range all {
		places[i] = all[i].Place
	}
	return places
}

// topicsOf are the topics whose settings count for a mailing: its own, or all of
// which a run's digests tell.
func (l *loader) topicsOf(m *mailing) (topics []*catalog.Topic) {
	if m.posted.Run == nil {
		if topic, ok := l.registry.Topic(m.posted.Service, m.posted.Topic); ok {
			topics = append(topics, topic)
		}
		return topics
	}
	source, ok := l.registry.Template(m.template)
	if !ok {
		return nil
	}
	for _, topic := range l.registry.Topics(m.posted.Service) {
		if topic.LatestDigest().Template == source.Name {
			topics = append(topics, topic)
		}
	}
	return topics
}
