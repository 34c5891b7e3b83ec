// Package delta writes a message as copies from a base and bytes of its own. The base has the parts that all messages of a broadcast have, and no
// value of a single message, so that it can be kept when a person is erased. The messages of a broadcast differ only in a few values: a delta
// has a few dozen bytes more than those.
//
// State. None between two calls.
//
// Failure. A delta is made by comparing bytes, so that it never depends on the program that wrote the messages. Expand refuses a damaged
// delta, and never reads outside of the base.
package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

const (
	// minSegment is the length of the shortest part that is worth a copy. A shorter one may also be found by chance inside of a value.
	minSegment = 16
	// maxValue is the maximum distance over which a part is searched.
	maxValue = 8 << 10
	// maxSegments limits the parts of one message, and with it the time that a comparison takes.
	maxSegments = 128
	// maxSize limits a message that Expand returns.
	maxSize = 1 << 30
)

// A segment is a part of a message.
type segment struct{ from, to int }

// A Base has the parts that messages have in common, in their order.
type Base struct {
	bytes []byte
	list  []segment // of bytes
}

// Bytes returns the parts, one after the other.
func (b *Base) Bytes() []byte { return b.bytes }

// Learn returns the parts of the first message that are in the others. It compares a few messages in full, and more if the parts of these are
// not found in others. A single message has nothing in common with others.
func Learn(messages [][]byte) *Base {
	if len(messages) < 2 {
		return &Base{}
	}
	s := &segments{message: messages[0], list: []segment{{0, len(messages[0])}}}
	for _, i := range []int{1, len(messages) / 2, len(messages) - 1} {
		if i > 0 && i < len(messages) {
			s.intersect(messages[i])
		}
	}
	const maxRefined = 64
	refined := 0
	for _, m := range messages {
		if refined == maxRefined {
			break
		}
		if !s.hasAll(m) {
			s.intersect(m)
			refined++
		}
	}
	b := &Base{}
	for _, part := range s.list {
		from := len(b.bytes)
		b.bytes = append(b.bytes, messages[0][part.from:part.to]...)
		b.list = append(b.list, segment{from, len(b.bytes)})
	}
	return b
}

// segments are parts of a message that others also have.
type segments struct {
	message []byte
	list    []segment
}

// hasAll reports whether a message has all parts in order.
func (s *segments) hasAll(message []byte) bool {
	at := 0
	for _, part := range s.list {
		i := find(message[at:], s.message[part.from:part.to])
		if i < 0 {
			return false
		}
		at += i + part.to - part.from
	}
	return true
}

// find returns the index of a part near the beginning of b, or -1.
func find(b, part []byte) int {
	if len(b) >= len(part) && bytes.Equal(b[:len(part)], part) {
		return 0
	}
	return bytes.Index(b[:min(len(b), maxValue+len(part))], part)
}

// intersect keeps what the parts have in common with a message.
func (s *segments) intersect(message []byte) {
	common := commonParts(s.message, message)
	var list []segment
	for i, j := 0, 0; i < len(s.list) && j < len(common); {
		from, to := max(s.list[i].from, common[j].from), min(s.list[i].to, common[j].to)
		if to-from >= minSegment && len(list) < maxSegments {
			list = append(list, segment{from, to})
		}
		if s.list[i].to < common[j].to {
			i++
		} else {
			j++
		}
	}
	s.list = list
}

// commonParts returns parts of a that b has in the same order. Where they differ, it continues at the nearest place at which
// both have the same bytes again.
func commonParts(a, b []byte) (parts []segment) {
	i, j := 0, 0
	for range maxSegments {
		n := commonPrefix(a[i:], b[j:])
		if n >= minSegment {
			parts = append(parts, segment{i, i + n})
		}
		i, j = i+n, j+n
		di, dj, ok := nextCommon(a[i:], b[j:], maxValue/32) // most values are short
		if !ok {
			di, dj, ok = nextCommon(a[i:], b[j:], maxValue)
		}
		if !ok {
			return parts
		}
		i, j = i+di, j+dj
	}
	return parts
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// nextCommon returns the nearest offsets, up to a limit, at which a and b have minSegment equal bytes.
func nextCommon(a, b []byte, limit int) (i, j int, ok bool) {
	a, b = a[:min(len(a), limit)], b[:min(len(b), limit)]
	if len(a) < minSegment || len(b) < minSegment {
		return 0, 0, false
	}
	places := make(map[[minSegment]byte]int, len(b)) // of the first occurrence
	for j := len(b) - minSegment; j >= 0; j-- {
		places[[minSegment]byte(b[j:j+minSegment])] = j
	}
	best := math.MaxInt
	for k := 0; k+minSegment <= len(a) && k < best; k++ {
		if at, found := places[[minSegment]byte(a[k:k+minSegment])]; found && k+at < best {
			i, j, best = k, at, k+at
		}
	}
	return i, j, best != math.MaxInt
}

// Append appends the delta of a message to dst. Each step is the number of own bytes, these bytes, and the place and length of a copy from
// the base; the place counts from the end of the copy before. Parts that the message does not have are left out.
func (b *Base) Append(dst, message []byte) []byte {
	at, end := 0, 0
	for _, part := range b.list {
		i := find(message[at:], b.bytes[part.from:part.to])
		if i < 0 {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(i))
		dst = append(dst, message[at:at+i]...)
		dst = binary.AppendUvarint(dst, uint64(part.from-end))
		dst = binary.AppendUvarint(dst, uint64(part.to-part.from))
		at, end = at+i+part.to-part.from, part.to
	}
	if at < len(message) {
		dst = binary.AppendUvarint(dst, uint64(len(message)-at))
		dst = append(dst, message[at:]...)
	}
	return dst
}

var errDamaged = errors.New("the delta of a message is damaged")

// Expand appends the message that a delta stands for to dst.
func Expand(dst, base, delta []byte) ([]byte, error) {
	end := 0
	number := func() (int, bool) {
		v, n := binary.Uvarint(delta)
		if n <= 0 || v > maxSize {
			return 0, false
		}
		delta = delta[n:]
		return int(v), true
	}
	for len(delta) > 0 {
		own, ok := number()
		if !ok || own > len(delta) {
			return nil, errDamaged
		}
		dst = append(dst, delta[:own]...)
		if delta = delta[own:]; len(delta) == 0 {
			break
		}
		gap, ok := number()
		if !ok {
			return nil, errDamaged
		}
		n, ok := number()
		if !ok || gap > len(base)-end || n > len(base)-end-gap || len(dst)+n > maxSize {
			return nil, errDamaged
		}
		dst = append(dst, base[end+gap:end+gap+n]...)
		end += gap + n
	}
	return dst, nil
}
