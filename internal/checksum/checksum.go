// Package checksum adds checksums to stored values and verifies them, so that a bit that flips on the disk never becomes a wrong message.
//
// The checksum is CRC-32C (Castagnoli), which detects each flip of up to three bits in values of this size and of any number of bits within
// 32 neighbouring ones. It also covers the key of the row, so that a value does not pass under another key. Values that older versions stored have no
// checksum and stay readable.
//
// The package keeps no state. The packages that store values call Add or AddToJSON when they write, and Verify or VerifyJSON each time they
// read a value for use.
package checksum

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"

	"fanfare.dev/fanfare"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// marker precedes the checksum of a value. It is not the beginning of a valid varint in its shortest form, of a JSON text or of an
// encoded manifest, and neither is a marker with one flipped bit the beginning of the latter two.
const (
	marker    = "\x94\x00"
	frameSize = len(marker) + crc32.Size
)

func sum(key int64, value []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(key))
	return crc32.Update(crc32.Checksum(b[:], table), table, value)
}

// Add returns a value with its checksum in front of it. key is that of the row.
func Add(key int64, value []byte) []byte {
	b := make([]byte, 0, frameSize+len(value))
	b = append(b, marker...)
	b = binary.LittleEndian.AppendUint32(b, sum(key, value))
	return append(b, value...)
}

// Reserve returns the beginning of a value that is appended to it and completed by Finish, so that a large value is not copied.
func Reserve() []byte { return append(make([]byte, 0, 2*frameSize), marker+"\x00\x00\x00\x00"...) }

// Finish sets the checksum of a value that was appended to the result of Reserve.
func Finish(key int64, b []byte) []byte {
	binary.LittleEndian.PutUint32(b[len(marker):], sum(key, b[frameSize:]))
	return b
}

// Verify returns the value without its checksum, and whether the checksum matches. A value that an older version stored is valid as it is.
func Verify(key int64, stored []byte) (value []byte, valid bool) {
	if !bytes.HasPrefix(stored, []byte(marker)) {
		return stored, true
	}
	if len(stored) < frameSize {
		return nil, false
	}
	value = stored[frameSize:]
	return value, binary.LittleEndian.Uint32(stored[len(marker):]) == sum(key, value)
}

// Has reports whether a value that Verify accepts has a checksum.
func Has(stored []byte) bool { return bytes.HasPrefix(stored, []byte(marker)) }

// The first member of a JSON object with a checksum is the checksum of the rest in hexadecimal. So the text stays JSON for those who query
// the database.
const (
	member   = `{"crc32c":"`
	jsonSize = len(member) + 2*crc32.Size + len(`",`)
)

// AddToJSON adds a checksum to the text of a JSON object with at least one member.
func AddToJSON(key int64, text []byte) []byte {
	b := make([]byte, 0, jsonSize+len(text))
	b = append(b, member...)
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint32(nil, sum(key, text[1:])))
	b = append(b, `",`...)
	return append(b, text[1:]...)
}

// VerifyJSON reports whether the checksum of a JSON object matches. An object that an older version stored begins with another member,
// first, and is valid as it is.
func VerifyJSON(key int64, text []byte, first string) bool {
	if !HasJSON(text) {
		return bytes.HasPrefix(text, []byte(`{"`+first+`":`))
	}
	if len(text) < jsonSize || string(text[jsonSize-2:jsonSize]) != `",` {
		return false
	}
	var want [crc32.Size]byte
	n, err := hex.Decode(want[:], text[len(member):jsonSize-2])
	return err == nil && n == len(want) && binary.BigEndian.Uint32(want[:]) == sum(key, text[jsonSize:])
}

// HasJSON reports whether a JSON object has a checksum.
func HasJSON(text []byte) bool { return bytes.HasPrefix(text, []byte(member)) }

// A DamagedError says that a stored value is damaged.
type DamagedError struct{ told fanfare.Error }

// Damaged returns the error of a damaged value. subject names it, for example "the event evt-20261120-1a2b".
func Damaged(subject string) error {
	return &DamagedError{fanfare.Error{Code: fanfare.Internal, Message: subject + " is damaged on the disk: its checksum does not match",
		Hint: "check the disk, run `fanfare doctor --deep` to list everything that is damaged, and restore a backup into another directory if you need the value"}}
}

// Error returns the text of the error with its hint.
func (e *DamagedError) Error() string { return e.told.Error() }

// Unwrap returns the error for users.
func (e *DamagedError) Unwrap() error { return &e.told }

// IsDamaged reports whether an error is, or wraps, a DamagedError.
func IsDamaged(err error) bool {
	_, is := errors.AsType[*DamagedError](err)
	return is
}
