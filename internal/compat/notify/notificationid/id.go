// Package notificationid converts between messages and the ids of notifications, which clients of GOV.UK Notify
// expect to be UUIDs. An id contains the day and the sequence of its message, so that no index is needed, and a code
// that only this server can compute, so that nobody can guess the id of another message.
//
// It keeps no state. An id is a UUID of version 8 (RFC 9562, section 5.8).
package notificationid

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"

	"fanfare.dev/fanfare"
)

// An id has 122 bits besides version and variant: 16 for the day, 64 for the sequence, and 42 for the code.
const codeBits = 42

// A Codec makes and reads ids.
type Codec struct{ key []byte }

// New returns a Codec. Ids of other keys are not read.
func New(key []byte) *Codec {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("ids of notifications"))
	return &Codec{mac.Sum(nil)}
}

// Of returns the id of a message of a service.
func (c *Codec) Of(service string, ref fanfare.EventRef) string {
	var b [16]byte
	code := c.code(service, ref)
	// High half: 48 bits, 4 bits of the version, 12 bits. Low half: 2 bits of the variant, 62 bits.
	high := uint64(uint16(ref.Day))<<44 | uint64(ref.Seq)>>20         // 60 bits
	low := uint64(ref.Seq)<<42&(1<<62-1) | code                       // 62 bits: 20 of the sequence, 42 of the code
	binary.BigEndian.PutUint64(b[:8], high>>12<<16|0x8000|high&0xfff) // version 8
	binary.BigEndian.PutUint64(b[8:], 0b10<<62|low)                   // variant of RFC 9562
	return uuid.UUID(b).String()
}

// Parse returns the message of an id; false if it is not an id of the service.
func (c *Codec) Parse(service, id string) (fanfare.EventRef, bool) {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 {
		return fanfare.EventRef{}, false
	}
	first, second := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	high, low := first>>16<<12|first&0xfff, second&(1<<62-1)
	ref := fanfare.EventRef{Day: fanfare.Day(high >> 44), Seq: fanfare.EventSeq(high<<20 | low>>codeBits)}
	var want, got [8]byte
	binary.BigEndian.PutUint64(want[:], c.code(service, ref))
	binary.BigEndian.PutUint64(got[:], low&(1<<codeBits-1))
	return ref, hmac.Equal(want[:], got[:])
}

// code returns the bits that prove that this server made an id.
func (c *Codec) code(service string, ref fanfare.EventRef) uint64 {
	mac := hmac.New(sha256.New, c.key)
	b := binary.BigEndian.AppendUint64(nil, uint64(ref.Seq))
	b = binary.BigEndian.AppendUint32(b, uint32(ref.Day))
	mac.Write(append(b, service...))
	return binary.BigEndian.Uint64(mac.Sum(nil)) >> (64 - codeBits)
}
