package fanfare

import (
	"iter"
	"slices"
)

// A Member is one recipient with the subscriptions that matched the event. A member of an audience
// has no subscriptions, and none are checked before the message is sent.
type Member struct {
	Subscriber    RowID
	Subscriptions []RowID // ascending; empty only for a member of an audience

	Items []Item // of a run: events in the message, ascending by number and subscription
	More  uint32 // of a run: number of events omitted because there were too many
}

// Members is a list of members, ascending by subscriber and subscription. It is stored in columns, which take a
// third of the memory of a []Member with millions of members.
type Members struct {
	subscribers   []RowID
	ends          []uint32 // end of each member's part of the subscriptions
	subscriptions []RowID

	items *memberItems // nil if no member has items
}

// memberItems holds the items of a list of members.
type memberItems struct {
	ends  []uint32 // end of each member's part of the items
	items []Item
	more  []uint32
}

// MembersOf returns a list of members.
func MembersOf(members ...Member) (list Members) {
	for _, m := range members {
		list.AddMember(m)
	}
	return list
}

// Len returns the number of members.
func (l *Members) Len() int { return len(l.subscribers) }

// At returns the member at index i.
func (l *Members) At(i int) Member {
	member := Member{Subscriber: l.subscribers[i], Subscriptions: piece(l.subscriptions, l.ends, i)}
	if l.items != nil {
		member.Items, member.More = piece(l.items.items, l.items.ends, i), l.items.more[i]
	}
	return member
}

// piece returns the i-th part of a list that ends divides into parts.
func piece[T any](list []T, ends []uint32, i int) []T {
	start := uint32(0)
	if i > 0 {
		start = ends[i-1]
	}
	return list[start:ends[i]:ends[i]]
}

// All visits the members in order.
func (l *Members) All() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for i := range l.subscribers {
			if !yield(l.At(i)) {
				return
			}
		}
	}
}

// Subscribers returns the subscribers in order. The caller must not change them.
func (l *Members) Subscribers() []RowID { return l.subscribers }

// Subscriptions returns the subscriptions of all members. The caller must not change them.
func (l *Members) Subscriptions() []RowID { return l.subscriptions }

// Add appends a member without items.
func (l *Members) Add(subscriber RowID, subscriptions ...RowID) {
	l.subscribers = append(l.subscribers, subscriber)
	l.subscriptions = append(l.subscriptions, subscriptions...)
	l.ends = append(l.ends, uint32(len(l.subscriptions)))
	if l.items != nil {
		l.items.add(nil, 0)
	}
}

// AddMember appends a member.
func (l *Members) AddMember(m Member) {
	if l.items == nil && (len(m.Items) > 0 || m.More > 0) {
		l.items = &memberItems{ends: make([]uint32, l.Len()), more: make([]uint32, l.Len())}
	}
	items := l.items
	l.items = nil
	l.Add(m.Subscriber, m.Subscriptions...)
	if items != nil {
		items.add(m.Items, m.More)
		l.items = items
	}
}

func (m *memberItems) add(items []Item, more uint32) {
	m.items = append(m.items, items...)
	m.ends, m.more = append(m.ends, uint32(len(m.items))), append(m.more, more)
}

// Grow allocates space for more members with the given total of subscriptions.
func (l *Members) Grow(members, subscriptions int) {
	l.subscribers = slices.Grow(l.subscribers, members)
	l.ends = slices.Grow(l.ends, members)
	l.subscriptions = slices.Grow(l.subscriptions, subscriptions)
}

// find returns the first index of a subscriber.
func (l *Members) find(subscriber RowID) (int, bool) {
	return slices.BinarySearch(l.subscribers, subscriber)
}
