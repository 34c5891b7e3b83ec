package fanfare

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// A Manifest lists the recipients of one event in a range of neighbouring partitions. It is
// written once, before any of its batches is published, and never changes.
type Manifest struct {
	ID       ManifestID
	Sections []Section
}

// A Section is the part of a manifest with one channel and one template
// version. Positions count through all sections of the manifest.
type Section struct {
	Channel  uint16 // number of the channel
	Template uint32 // number of the template version; 0 for the content of a direct event
	Members  Members
}

// Members returns the number of members of all sections.
func (m *Manifest) Members() int {
	n := 0
	for i := range m.Sections {
		n += m.Sections[i].Members.Len()
	}
	return n
}

// At returns the section and the member at a position.
func (m *Manifest) At(position uint32) (*Section, Member, bool) {
	for i := range m.Sections {
		s := &m.Sections[i]
		if int(position) < s.Members.Len() {
			return s, s.Members.At(int(position)), true
		}
		position -= uint32(s.Members.Len())
	}
	return nil, Member{}, false
}

// PositionsOf returns the positions of a subscriber. A section (channel) has several of them if each
// subscription gets its own message.
func (m *Manifest) PositionsOf(subscriber RowID) []uint32 {
	var positions []uint32
	base := uint32(0)
	for i := range m.Sections {
		members := &m.Sections[i].Members
		at, _ := members.find(subscriber)
		for ; at < members.Len() && members.subscribers[at] == subscriber; at++ {
			positions = append(positions, base+uint32(at))
		}
		base += uint32(members.Len())
	}
	return positions
}

// The first byte of an encoded manifest says whether it has items. Most manifests have none.
const (
	plainFormat = 1
	itemsFormat = 2
)

// AppendBinary appends the manifest without its id: a format byte, the number of sections, and the
// channel, template and members of each section, all as varints. Each subscriber and each
// subscription is encoded as the difference to the previous one in the section, so that a member
// of a large result takes three to five bytes. If the manifest has items, the items of each member
// follow, see appendItems.
func (m *Manifest) AppendBinary(b []byte) ([]byte, error) {
	items := slices.ContainsFunc(m.Sections, func(s Section) bool { return s.Members.items != nil })
	if items {
		b = append(b, itemsFormat)
	} else {
		b = append(b, plainFormat)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Sections)))
	for i := range m.Sections {
		s := &m.Sections[i]
		b = binary.AppendUvarint(b, uint64(s.Channel))
		b = binary.AppendUvarint(b, uint64(s.Template))
		b = binary.AppendUvarint(b, uint64(s.Members.Len()))
		var subscriber, subscription int64
		for member := range s.Members.All() {
			b = binary.AppendUvarint(b, uint64(int64(member.Subscriber)-subscriber))
			subscriber = int64(member.Subscriber)
			b = binary.AppendUvarint(b, uint64(len(member.Subscriptions)))
			for _, place := range member.Subscriptions {
				b = binary.AppendVarint(b, int64(place)-subscription)
				subscription = int64(place)
			}
			if items {
				var err error
				if b, err = appendItems(b, &member); err != nil {
					return nil, err
				}
			}
		}
	}
	return b, nil
}

// appendItems appends the number of omitted events and the number of items. For each item it
// appends the difference of its number to the previous one and, if the member has several
// subscriptions, the index of the subscription.
func appendItems(b []byte, m *Member) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(m.More))
	b = binary.AppendUvarint(b, uint64(len(m.Items)))
	number := uint32(0)
	for _, item := range m.Items {
		at, known := slices.BinarySearch(m.Subscriptions, item.Subscription)
		if !known || item.Number < number {
			return nil, errManifest
		}
		b = binary.AppendUvarint(b, uint64(item.Number-number))
		number = item.Number
		if len(m.Subscriptions) > 1 {
			b = binary.AppendUvarint(b, uint64(at))
		}
	}
	return b, nil
}

var errManifest = errors.New("the manifest is damaged")

// UnmarshalBinary reads the output of AppendBinary.
func (m *Manifest) UnmarshalBinary(b []byte) error {
	r := varints{b: b}
	format := r.byte()
	if format != plainFormat && format != itemsFormat {
		return errManifest
	}
	m.Sections = make([]Section, 0, r.count(1<<16))
	var places []RowID
	var items []Item
	for range cap(m.Sections) {
		s := Section{Channel: uint16(r.uvarint()), Template: uint32(r.uvarint())}
		members := r.count(len(b))
		s.Members.Grow(members, members)
		var subscriber, subscription int64
		for range members {
			subscriber += int64(r.uvarint())
			places = places[:0]
			for range r.count(len(b)) {
				subscription += r.varint()
				places = append(places, RowID(subscription))
			}
			if format == plainFormat {
				s.Members.Add(RowID(subscriber), places...)
				continue
			}
			member := Member{Subscriber: RowID(subscriber), Subscriptions: places}
			items = r.items(&member, items[:0])
			s.Members.AddMember(member)
		}
		m.Sections = append(m.Sections, s)
	}
	if r.bad || len(r.b) > 0 {
		return errManifest
	}
	return nil
}

// varints reads varints until it finds invalid bytes. It then returns zeros, so that the caller
// can check for an error once, at the end.
type varints struct {
	b   []byte
	bad bool
}

// items reads the output of appendItems into a reused list.
func (r *varints) items(m *Member, items []Item) []Item {
	m.More = uint32(r.uvarint())
	number := uint64(0)
	for range r.count(len(r.b)) {
		number += r.uvarint()
		at := uint64(0)
		if len(m.Subscriptions) > 1 {
			at = r.uvarint()
		}
		if number > math.MaxUint32 || at >= uint64(len(m.Subscriptions)) {
			r.b, r.bad = nil, true
			break
		}
		items = append(items, Item{uint32(number), m.Subscriptions[at]})
	}
	m.Items = items
	return items
}

func (r *varints) advance(v uint64, n int) uint64 {
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *varints) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *varints) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return r.advance(v, n)
}

func (r *varints) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads the number of things that take at least one byte each. It limits the number by the
// remaining bytes, so that invalid bytes cannot cause large allocations.
func (r *varints) count(most int) int {
	n := r.uvarint()
	if n > uint64(most) || n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}
