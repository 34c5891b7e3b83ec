package fanfare

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// A Manifest is the frozen result of matching one event over a run of
// neighbouring partitions: who is to get it. It is written once, before any of
// its batches is published, and never changes.
type Manifest struct {
	ID       ManifestID
	Sections []Section
}

// A Section is the part of a manifest with one channel and one template
// version. Positions count through all sections of the manifest.
type Section struct {
	Channel  uint16   // number of the channel
	Template uint32   // number of the template version; 0: the content of a direct event
	Members  []Member // ascending by subscriber
}

// A Member is one recipient and the subscriptions that wanted the event. One of
// an audience was named and has none; whether anybody else still wants the
// message is then asked of nobody.
type Member struct {
	Subscriber    Place
	Subscriptions []Place // ascending; empty for a member of an audience, and only there
}

// Members counts the members of all sections.
func (m *Manifest) Members() int {
	n := 0
	for i := range m.Sections {
		n += len(m.Sections[i].Members)
	}
	return n
}

// At returns the section and the member at a position.
func (m *Manifest) At(position uint32) (*Section, *Member, bool) {
	for i := range m.Sections {
		s := &m.Sections[i]
		if int(position) < len(s.Members) {
			return s, &s.Members[position], true
		}
		position -= uint32(len(s.Members))
	}
	return nil, nil, false
}

// PositionsOf returns the positions of a subscriber: one for each section, that
// is for each channel, that has the subscriber.
func (m *Manifest) PositionsOf(subscriber Place) []uint32 {
	var positions []uint32
	base := uint32(0)
	for i := range m.Sections {
		members := m.Sections[i].Members
		at, found := slices.BinarySearchFunc(members, subscriber, func(member Member, s Place) int {
			return cmp.Compare(member.Subscriber, s)
		})
		if found {
			positions = append(positions, base+uint32(at))
		}
		base += uint32(len(members))
	}
	return positions
}

// manifestFormat is the first byte of an encoded manifest.
const manifestFormat = 1

// AppendBinary appends the manifest without its id: a format byte, the number
// of sections, and for each its channel, template and members, all as varints.
// Subscribers are the difference to the one before, subscriptions the
// difference to the one before within the section, so that a member of a large
// result takes three to five bytes.
func (m *Manifest) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, manifestFormat)
	b = binary.AppendUvarint(b, uint64(len(m.Sections)))
	for i := range m.Sections {
		s := &m.Sections[i]
		b = binary.AppendUvarint(b, uint64(s.Channel))
		b = binary.AppendUvarint(b, uint64(s.Template))
		b = binary.AppendUvarint(b, uint64(len(s.Members)))
		var subscriber, subscription int64
		for _, member := range s.Members {
			b = binary.AppendUvarint(b, uint64(int64(member.Subscriber)-subscriber))
			subscriber = int64(member.Subscriber)
			b = binary.AppendUvarint(b, uint64(len(member.Subscriptions)))
			for _, place := range member.Subscriptions {
				b = binary.AppendVarint(b, int64(place)-subscription)
				subscription = int64(place)
			}
		}
	}
	return b, nil
}

var errManifest = errors.New("manifest is damaged")

// UnmarshalBinary reads what AppendBinary wrote.
func (m *Manifest) UnmarshalBinary(b []byte) error {
	r := varints{b: b}
	if r.byte() != manifestFormat {
		return errManifest
	}
	m.Sections = make([]Section, 0, r.count(1<<16))
	for range cap(m.Sections) {
		s := Section{Channel: uint16(r.uvarint()), Template: uint32(r.uvarint())}
		s.Members = make([]Member, 0, r.count(len(b)))
		places := make([]Place, 0, cap(s.Members))
		var subscriber, subscription int64
		for range cap(s.Members) {
			subscriber += int64(r.uvarint())
			n := r.count(len(b))
			start := len(places)
			for range n {
				subscription += r.varint()
				places = append(places, Place(subscription))
			}
			s.Members = append(s.Members, Member{Place(subscriber), places[start:len(places):len(places)]})
		}
		m.Sections = append(m.Sections, s)
	}
	if r.bad || len(r.b) > 0 {
		return errManifest
	}
	return nil
}

// varints reads varints until the bytes are found to be bad; from then on it
// reads zeros, so that a caller may check once at the end.
type varints struct {
	b   []byte
	bad bool
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

// count reads a number of things that take at least a byte each, so that bad
// bytes cannot ask for more memory than they have themselves.
func (r *varints) count(most int) int {
	n := r.uvarint()
	if n > uint64(most) || n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}
