package dispatch

import (
	"context"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// rows holds the subscribers and subscriptions of members, sorted by id.
type rows struct {
	subscribers   []people.SubscriberRow
	subscriptions []people.SubscriptionRow
}

func (r *rows) subscriber(id fanfare.RowID) *people.SubscriberRow {
	i, ok := slices.BinarySearchFunc(r.subscribers, id, func(row people.SubscriberRow, id fanfare.RowID) int {
		return int(int64(row.Place) - int64(id))
	})
	if !ok {
		return nil
	}
	return &r.subscribers[i]
}

func (r *rows) subscription(id fanfare.RowID) *people.SubscriptionRow {
	i, ok := slices.BinarySearchFunc(r.subscriptions, id, func(row people.SubscriptionRow, id fanfare.RowID) int {
		return int(int64(row.Place) - int64(id))
	})
	if !ok {
		return nil
	}
	return &r.subscriptions[i]
}

// readRows reads the subscribers and subscriptions of members as they are now.
func (l *loader) readRows(ctx context.Context, members []openMember) (*rows, error) {
	subscribers := make([]fanfare.RowID, 0, len(members))
	subscriptions := make([]fanfare.RowID, 0, len(members))
	for i := range members {
		subscribers = append(subscribers, members[i].member.Subscriber)
		subscriptions = append(subscriptions, members[i].member.Subscriptions...)
	}
	slices.Sort(subscribers)
	slices.Sort(subscriptions)
	subscribers, subscriptions = slices.Compact(subscribers), slices.Compact(subscriptions)
	r := &rows{subscribers: make([]people.SubscriberRow, 0, len(subscribers)), subscriptions: make([]people.SubscriptionRow, 0, len(subscriptions))}
	var arena []byte
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		start := len(arena)
		arena = append(arena, b...)
		return arena[start:len(arena):len(arena)]
	}
	err := l.Registry.Subscribers(ctx, subscribers, func(row *people.SubscriberRow) error {
		kept := *row
		kept.Attributes = keep(row.Attributes)
		r.subscribers = append(r.subscribers, kept)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.Registry.Subscriptions(ctx, subscriptions, func(row *people.SubscriptionRow) error {
		kept := *row
		kept.Params, kept.Data = keep(row.Params), keep(row.Data)
		r.subscriptions = append(r.subscriptions, kept)
		return nil
	})
	return r, err
}

// eventReader reads several events at a time, because a batch may have many small ones.
type eventReader struct {
	store *deliveries.Store
	known map[fanfare.EventRef]*fanfare.AcceptedEvent
}

// eventsPerRead bounds the events that are read at a time: one may have a megabyte.
const eventsPerRead = 16

// read returns the event of the first of members, and reads those of the next ones with it.
// Members of one event are neighbours.
func (r *eventReader) read(ctx context.Context, members []openMember) (*fanfare.AcceptedEvent, error) {
	first := members[0].event()
	if known := r.known[first]; known != nil {
		return known, nil
	}
	r.known = make(map[fanfare.EventRef]*fanfare.AcceptedEvent, eventsPerRead)
	wanted := make([]fanfare.EventSeq, 0, eventsPerRead)
	for i := 0; i < len(members) && len(wanted) < eventsPerRead; i++ {
		if seq := members[i].event().Seq; !slices.Contains(wanted, seq) {
			wanted = append(wanted, seq)
		}
	}
	err := r.store.Moment(ctx, first.Day, func(moment *deliveries.Moment) error {
		return moment.Posted(wanted, func(event *fanfare.AcceptedEvent) {
			r.known[fanfare.EventRef{Day: first.Day, Seq: event.Seq}] = event
		})
	})
	return r.known[first], err
}

// Messages are written one after another into pages, which are reused when their batch is done:
// at 40,000 messages per second, new memory would cause most of the garbage collector's work.
const (
	pageBytes = 256 << 10
	// minPageFree is the free part of a page at which a message is begun. A longer message moves to
	// memory of its own.
	minPageFree = 8 << 10
)

type page [pageBytes]byte

// pagePool holds free pages.
type pagePool struct{ free *sync.Pool }

func newPagePool() pagePool {
	return pagePool{&sync.Pool{New: func() any { return new(page) }}}
}

// take takes a page for a batch and returns it, empty.
func (p pagePool) take(out *loaded) []byte {
	one := p.free.Get().(*page)
	out.pages = append(out.pages, one)
	return one[:0]
}

// giveBack returns the pages of a batch. The messages in them are no longer in use.
func (p pagePool) giveBack(out *loaded) {
	for _, one := range out.pages {
		p.free.Put(one)
	}
	out.pages = nil
}
