package people

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// PartitionOf returns the partition of a subscriber: the XXH3 hash (64 bits, no seed) of service, a
// zero byte, the kind of the address, a zero byte and the address, modulo fanfare.Partitions. It is
// part of the stored format.
func PartitionOf(service string, kind uint8, address string) int {
	var buf [256]byte
	b := append(buf[:0], service...)
	b = append(b, 0)
	b = append(b, addresskind.Names[kind]...)
	b = append(b, 0)
	b = append(b, address...)
	return int(xxh3.Hash(b) % fanfare.Partitions)
}

// A Hasher computes the keys of the indexes in memory. Its seed is random at each start, so that no
// client can choose ids that collide.
type Hasher struct {
	seed uint64
	Mask uint64 // all ones; tests set fewer bits to get collisions
}

// NewHasher returns a Hasher with a random seed.
func NewHasher() Hasher { return Hasher{seed: rand.Uint64(), Mask: ^uint64(0)} }

func (h Hasher) sum(b []byte) uint64 { return xxh3.HashSeed(b, h.seed) & h.Mask }

// Address returns the key of an address.
func (h Hasher) Address(service uint32, kind uint8, address string) uint64 {
	var buf [256]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 'a', kind), service)
	return h.sum(append(b, address...))
}

// SubscriberID returns the key of an id that a client chose for a subscriber.
func (h Hasher) SubscriberID(service uint32, id string) uint64 {
	var buf [160]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 's'), service)
	return h.sum(append(b, id...))
}

// ClientID returns the key of an id that a client chose for a subscription.
func (h Hasher) ClientID(service uint32, id string) uint64 {
	var buf [160]byte
	b := binary.LittleEndian.AppendUint32(append(buf[:0], 'i'), service)
	return h.sum(append(b, id...))
}

// NaturalKey returns the key of a subscription without such an id, from its subscriber, topic,
// channel and condition.
func (h Hasher) NaturalKey(s *control.SubscriptionRecord) uint64 {
	var buf [256]byte
	b := append(buf[:0], 'n')
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Subscriber))
	b = binary.LittleEndian.AppendUint32(b, s.Topic)
	b = binary.LittleEndian.AppendUint16(b, s.Channel)
	b = binary.LittleEndian.AppendUint32(b, s.Filter)
	b = binary.LittleEndian.AppendUint32(b, s.Rule)
	return h.sum(append(b, s.Params...))
}
