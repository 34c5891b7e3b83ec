package registry

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// normal returns an address of a kind in its normal form.
func (r *Registry) normal(kind uint8, address string) (string, error) {
	if kind == addresskind.URL {
		return r.opt.ParseURL(address)
	}
	return r.opt.ParseAddress(address)
}

// partitionOf is the partition of a subscriber: XXH3 (64 bits, no seed) of
// service, a zero byte, kind of address, a zero byte and address, modulo
// fanfare.Partitions. It is part of the stored format.
func partitionOf(service string, kind uint8, address string) int {
	var buf [256]byte
	b := append(buf[:0], service...)
	b = append(b, 0)
	b = append(b, addresskind.Names[kind]...)
	b = append(b, 0)
	b = append(b, address...)
	return int(xxh3.Hash(b) % fanfare.Partitions)
}

// A hasher makes the keys of the tables. Its seed is new at each start, so that
// nobody outside can choose ids that collide.
type hasher struct {
	seed uint64
	mask uint64 // all ones; fewer in tests that want collisions
}

func newHasher() hasher { return hasher{seed: rand.Uint64(), mask: ^uint64(0)} }

func (h hasher) sum(b []byte) uint64 { return xxh3.HashSeed(b, h.seed) & h.mask }

// address hashes what a subscriber is found by.
func (h hasher) address(service uint32, kind uint8, address string) uint64 {
	var buf [256]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 'a', kind), service)
	return h.sum(append(b, address...))
}

// subscriberID hashes the id that a client chose for a subscriber.
func (h hasher) subscriberID(service uint32, id string) uint64 {
	var buf [160]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 's'), service)
	return h.sum(append(b, id...))
}

// clientID hashes the identity of a subscription whose client chose an id.
func (h hasher) clientID(service uint32, id string) uint64 {
	var buf [160]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 'i'), service)
	return h.sum(append(b, id...))
}

// natural hashes the identity of a subscription without one: its subscriber,
// topic, channel and condition.
func (h hasher) natural(s *control.SubscriptionRecord) uint64 {
	var buf [256]byte
	b := append(buf[:0], 'n')
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Subscriber))
	b = binary.LittleEndian.AppendUint32(b, s.Topic)
	b = binary.LittleEndian.AppendUint16(b, s.Channel)
	b = binary.LittleEndian.AppendUint32(b, s.Filter)
	b = binary.LittleEndian.AppendUint32(b, s.Rule)
	return h.sum(append(b, s.Params...))
}
