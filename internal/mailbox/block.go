package mailbox

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"

	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/mailbox/delta"
)

// A blockMember is a message in a block.
type blockMember struct {
	account  AccountID
	position uint32
	delta    []byte
}

// blockFormat is the first byte of an encoded block.
const blockFormat = 1

// encodeBlock returns members, which are in ascending order of their accounts, in the form in which they are stored: the format, and compressed
// with S2 the number of members, the account, the position and the length of the delta of each, and then all deltas. Numbers are varints;
// accounts and positions are differences to the previous ones.
func encodeBlock(members []blockMember) []byte {
	size := 0
	for i := range members {
		size += len(members[i].delta) + 12
	}
	b := binary.AppendUvarint(make([]byte, 0, size), uint64(len(members)))
	var account AccountID
	var position uint32
	for i := range members {
		m := &members[i]
		b = binary.AppendUvarint(b, uint64(m.account-account))
		b = binary.AppendVarint(b, int64(m.position)-int64(position))
		b = binary.AppendUvarint(b, uint64(len(m.delta)))
		account, position = m.account, m.position
	}
	for i := range members {
		b = append(b, members[i].delta...)
	}
	return checksum.Add(0, append([]byte{blockFormat}, s2.Encode(nil, b)...))
}

var errBlock = errors.New("a block of messages is damaged")

// maxBlockBytes limits a decompressed block.
const maxBlockBytes = 1 << 30

// decodeBlock reads the output of encodeBlock. The deltas share its memory.
func decodeBlock(data []byte) ([]blockMember, error) {
	b, err := decompressBlock(nil, data)
	if err != nil {
		return nil, err
	}
	failed := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			failed = true
			return 0
		}
		b = b[n:]
		return v
	}
	count := number()
	if failed || count > uint64(len(b)) {
		return nil, errBlock
	}
	members := make([]blockMember, count)
	lengths := make([]uint64, count)
	var account AccountID
	var position int64
	for i := range members {
		account += AccountID(number())
		difference, n := binary.Varint(b)
		if n <= 0 {
			return nil, errBlock
		}
		b = b[n:]
		position += difference
		lengths[i] = number()
		members[i].account, members[i].position = account, uint32(position)
	}
	for i := range members {
		if failed || lengths[i] > uint64(len(b)) {
			return nil, errBlock
		}
		members[i].delta, b = b[:lengths[i]:lengths[i]], b[lengths[i]:]
	}
	return members, nil
}

// decompressBlock returns the compressed part of a block, in buffer if it is large enough.
func decompressBlock(buffer, data []byte) ([]byte, error) {
	data, valid := checksum.Verify(0, data)
	if !valid || len(data) == 0 || data[0] != blockFormat {
		return nil, errBlock
	}
	if n, err := s2.DecodedLen(data[1:]); err != nil || n > maxBlockBytes {
		return nil, errBlock
	}
	b, err := s2.Decode(buffer[:cap(buffer)], data[1:])
	if err != nil {
		return nil, errBlock
	}
	return b, nil
}

// findMember returns the member of an account in the output of encodeBlock, without the memory that decodeBlock takes for all members. It returns the
// decompressed block, with which the delta shares its memory, so that the next call can use it as its buffer.
func findMember(buffer, data []byte, account AccountID) (m blockMember, found bool, block []byte, err error) {
	if block, err = decompressBlock(buffer, data); err != nil {
		return m, false, buffer, err
	}
	at := 0
	number := func() uint64 {
		v, n := binary.Uvarint(block[at:])
		if n <= 0 {
			err = errBlock
			return 0
		}
		at += n
		return v
	}
	count := number()
	if count > uint64(len(block)) {
		return m, false, block, errBlock
	}
	var last AccountID
	var position int64
	var before uint64 // bytes of the deltas before that of the member
	for range count {
		last += AccountID(number())
		difference, n := binary.Varint(block[at:])
		if n <= 0 {
			return m, false, block, errBlock
		}
		at += n
		position += difference
		length := number()
		if err != nil || length > uint64(len(block)) {
			return m, false, block, errBlock
		}
		switch {
		case last < account:
			before += length
		case last == account:
			m, found = blockMember{account: account, position: uint32(position), delta: block[:length]}, true
		}
	}
	if !found {
		return m, false, block, nil
	}
	length := uint64(len(m.delta))
	if rest := uint64(len(block) - at); before > rest || length > rest-before {
		return m, false, block, errBlock
	}
	from := uint64(at) + before
	m.delta = block[from : from+length : from+length]
	return m, true, block, nil
}

// memberOf returns the index of the member with an account.
func memberOf(members []blockMember, account AccountID) (int, bool) {
	return slices.BinarySearchFunc(members, account, func(m blockMember, id AccountID) int { return cmp.Compare(m.account, id) })
}

// newMembers writes messages as deltas, and returns their base. It checks that each delta stands for its message.
func newMembers(list []*Deposit) (base []byte, members []blockMember, err error) {
	contents := make([][]byte, len(list))
	for i, d := range list {
		contents[i] = d.Content
	}
	common := delta.Learn(contents)
	base = common.Bytes()
	members = make([]blockMember, len(list))
	var all, again []byte
	for i, d := range list {
		from := len(all)
		all = common.Append(all, d.Content)
		if again, err = delta.Expand(again[:0], base, all[from:]); err != nil {
			return nil, nil, err
		}
		if string(again) != string(d.Content) {
			return nil, nil, errBlock
		}
		members[i] = blockMember{account: d.ID, position: d.Delivery.Position, delta: all[from:]}
	}
	// all may have moved while it grew: the deltas are its consecutive parts
	at := 0
	for i := range members {
		n := len(members[i].delta)
		members[i].delta = all[at : at+n : at+n]
		at += n
	}
	return base, members, nil
}
