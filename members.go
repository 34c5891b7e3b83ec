package fanfare

import (
	"iter"
	"slices"
)

// A Member is one recipient and the subscriptions that wanted the event. One of
// an audience was named and has none; whether anybody else still wants the
// message is then asked of nobody.
type Member struct {
	Subscriber    RowID
	Subscriptions []RowID // ascending; empty for a member of an audience, and only there

	Items []Item // of a run: what the message is about, ascending by number and subscription
	More  uint32 // of a run: events that are left out, since there were too many
}

// Members is a list of members, ascending by subscriber. It is kept in columns:
// of a result of millions, a Member each would take three times the memory.
type Members struct {
	subscribers   []RowID
	ends          []uint32 // of each member's subscriptions
	subscriptions []RowID

	items *memberItems // nil where no member has any
}

// memberItems are the items of a list of members.
type memberItems struct {
	ends  []uint32 // of each member's items
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

// Len is the number of members.
func (l *Members) Len() int { return len(l.subscribers) }

// At returns a member.
func (l *Members) At(i int) Member {
	member := Member{Subscriber: l.subscribers[i], Subscriptions: piece(l.subscriptions, l.ends, i)}
	if l.items != nil {
		member.Items, member.More = piece(l.items.items, l.items.ends, i), l.items.more[i]
	}
	return member
}

// piece is the one of a number in a list of which the ends are known.
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

// Subscribers are those of the members in order; they must not be changed.
func (l *Members) Subscribers() []RowID { return l.subscribers }

// Subscriptions are those of all members; they must not be changed.
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

// Grow allocates space for members with so many subscriptions in all.
func (l *Members) Grow(members, subscriptions int) {
	l.subscribers = slices.Grow(l.subscribers, members)
	l.ends = slices.Grow(l.ends, members)
	l.subscriptions = slices.Grow(l.subscriptions, subscriptions)
}

// find returns where a subscriber is.
func (l *Members) find(subscriber RowID) (int, bool) {
	return slices.BinarySearch(l.subscribers, subscriber)
}
