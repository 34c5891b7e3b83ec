package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A Frame is a length (4 bytes, big-endian, of what follows), a kind (1), the number of a stream (4), and a payload.
type Frame struct {
	Kind    byte
	Stream  uint32
	Payload []byte
}

const (
	frameHeader = 5         // after the length
	maxFrame    = 256 << 20 // larger than any message
)

// Ping is the kind of a frame that only shows that its sender is alive. Users of this package define further kinds.
const Ping byte = 1

// AppendFrame appends a frame with a payload in parts.
func AppendFrame(dst []byte, k byte, stream uint32, payload ...[]byte) []byte {
	size := frameHeader
	for _, part := range payload {
		size += len(part)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, k)
	dst = binary.BigEndian.AppendUint32(dst, stream)
	for _, part := range payload {
		dst = append(dst, part...)
	}
	return dst
}

// ReadFrame reads a frame. Its payload is new memory.
func ReadFrame(in *bufio.Reader) (Frame, error) {
	var header [4 + frameHeader]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size < frameHeader || size > maxFrame {
		return Frame{}, fmt.Errorf("received a frame with the invalid length of %d bytes", size)
	}
	f := Frame{Kind: header[4], Stream: binary.BigEndian.Uint32(header[5:])}
	if size == frameHeader {
		return f, nil
	}
	// A long payload is read in steps, so that memory grows with the bytes that arrive and not with the claimed length.
	const step = 1 << 20
	for left := int(size) - frameHeader; left > 0; {
		n := min(left, step)
		at := len(f.Payload)
		f.Payload = append(f.Payload, make([]byte, n)...)
		if _, err := io.ReadFull(in, f.Payload[at:]); err != nil {
			return Frame{}, err
		}
		left -= n
	}
	return f, nil
}

// A Decoder reads values from a payload. After an error, all values are zero.
type Decoder struct {
	Rest []byte
	Err  error
}

// ErrPayload is the error for a frame that cannot be read or must not be sent.
var ErrPayload = errors.New("received an invalid frame")

// Fail records that the payload is invalid.
func (d *Decoder) Fail() { d.Rest, d.Err = nil, ErrPayload }

// Byte reads a byte.
func (d *Decoder) Byte() byte {
	if len(d.Rest) == 0 {
		d.Fail()
		return 0
	}
	b := d.Rest[0]
	d.Rest = d.Rest[1:]
	return b
}

// Uint reads an unsigned number.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.Rest)
	if n <= 0 {
		d.Fail()
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// Int reads a signed number.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.Rest)
	if n <= 0 {
		d.Fail()
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// Uint32 reads an unsigned number, which must fit into 32 bits.
func (d *Decoder) Uint32() uint32 {
	v := d.Uint()
	if v > math.MaxUint32 {
		d.Fail()
		return 0
	}
	return uint32(v)
}

// Bytes reads a length and that many bytes. They share the memory of the payload.
func (d *Decoder) Bytes() []byte {
	n := d.Uint()
	if n > uint64(len(d.Rest)) {
		d.Fail()
		return nil
	}
	b := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return b
}

// Text reads a text.
func (d *Decoder) Text() string { return string(d.Bytes()) }

// AppendText appends a text with its length.
func AppendText[T string | []byte](dst []byte, text T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}
