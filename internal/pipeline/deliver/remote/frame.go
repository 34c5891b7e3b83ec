package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Protocol is the name and version of the protocol of a link. It changes with the encoding of frames.
const Protocol = "fanfare-deliver/1"

// A frame is a length (4 bytes, big-endian, of what follows), a kind (1), the number of a stream (4), and a payload.
type frame struct {
	kind    kind
	stream  uint32
	payload []byte
}

const (
	frameHeader = 5         // after the length
	maxFrame    = 256 << 20 // more than a message can have
)

// kind is what a frame means.
type kind byte

// The kinds of frames. Those about no stream have the stream 0.
const (
	kindPing    kind = iota + 1 // both: the sender is there
	kindChannel                 // leader: the settings of a channel, for the streams that follow
	kindOpen                    // leader: start a driver on a stream
	kindStop                    // leader: end the context of a driver
	kindReply                   // leader: the result of a call
	kindCall                    // node: a method of driver.Queue
	kindCancel                  // node: end the context of the call of Next
	kindEnd                     // node: the driver has returned
	kindLeave                   // node: open no more streams, and stop those that are open
)

// op is a method of driver.Queue.
type op byte

const (
	opNext op = iota + 1
	opTake
	opFailover
	opRelease
	opReport
	opReturn
	opIndividual
)

// appendFrame appends a frame with a payload in parts.
func appendFrame(dst []byte, k kind, stream uint32, payload ...[]byte) []byte {
	size := frameHeader
	for _, part := range payload {
		size += len(part)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, byte(k))
	dst = binary.BigEndian.AppendUint32(dst, stream)
	for _, part := range payload {
		dst = append(dst, part...)
	}
	return dst
}

// readFrame reads a frame. Its payload is new memory.
func readFrame(in *bufio.Reader) (frame, error) {
	var header [4 + frameHeader]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size < frameHeader || size > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes", size)
	}
	f := frame{kind: kind(header[4]), stream: binary.BigEndian.Uint32(header[5:])}
	if size == frameHeader {
		return f, nil
	}
	// A long payload is read in steps: memory grows with what has arrived, and not with what the length claims.
	const step = 1 << 20
	for left := int(size) - frameHeader; left > 0; {
		n := min(left, step)
		at := len(f.payload)
		f.payload = append(f.payload, make([]byte, n)...)
		if _, err := io.ReadFull(in, f.payload[at:]); err != nil {
			return frame{}, err
		}
		left -= n
	}
	return f, nil
}

// A decoder reads values from a payload. After an error, all values are zero.
type decoder struct {
	rest []byte
	err  error
}

var errPayload = errors.New("the payload of a frame is damaged")

func (d *decoder) fail() { d.rest, d.err = nil, errPayload }

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// uint32 reads a number that must fit.
func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > math.MaxUint32 {
		d.fail()
		return 0
	}
	return uint32(v)
}

// bytes reads a length and that many bytes, which belong to the payload.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes()) }

func appendText[T string | []byte](dst []byte, text T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// The flags of an encoded message.
const (
	flagUTF8 = 1 << iota
	flagEightBit
	flagNoDotStuffing
	flagIndividual      // has the method Individual
	flagSameBody        // has the body of the message before it
	flagSameAttachments // has the attachments of the message before it
)

// A content is what a message may share with the one before it.
type content struct{ body, attachments []byte }

// appendMessage appends a message. It omits content that the message before it has, too.
func appendMessage(dst []byte, id uint32, m *driver.Message, before content) []byte {
	flags := byte(0)
	set := func(condition bool, flag byte) {
		if condition {
			flags |= flag
		}
	}
	set(m.UTF8, flagUTF8)
	set(m.EightBit, flagEightBit)
	set(m.NoDotStuffing, flagNoDotStuffing)
	set(m.Individual != nil, flagIndividual)
	set(sameMemory(m.Body, before.body), flagSameBody)
	set(sameMemory(m.Attachments, before.attachments), flagSameAttachments)
	dst = binary.AppendUvarint(dst, uint64(id))
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, int64(m.Delivery.Day))
	dst = binary.AppendUvarint(dst, uint64(m.Delivery.Manifest))
	dst = binary.AppendUvarint(dst, uint64(m.Delivery.Position))
	dst = binary.AppendUvarint(dst, m.SharedContent)
	dst = appendText(dst, m.From)
	dst = appendText(dst, m.To)
	if flags&flagSameBody == 0 {
		dst = appendText(dst, m.Body)
	}
	if flags&flagSameAttachments == 0 {
		dst = appendText(dst, m.Attachments)
	}
	return dst
}

// sameMemory reports whether two texts are not empty and the same memory.
func sameMemory(a, b []byte) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// message reads a message that may share content with the one before it.
func (d *decoder) message(before content) (id uint32, individual bool, m driver.Message) {
	id = d.uint32()
	flags := d.byte()
	m.UTF8, m.EightBit, m.NoDotStuffing = flags&flagUTF8 != 0, flags&flagEightBit != 0, flags&flagNoDotStuffing != 0
	day := d.int()
	if day < math.MinInt32 || day > math.MaxInt32 {
		d.fail()
	}
	m.Delivery = fanfare.DeliveryRef{Day: fanfare.Day(day), Manifest: fanfare.ManifestID(d.uint()), Position: d.uint32()}
	m.SharedContent = d.uint()
	m.From, m.To = d.text(), d.text()
	if m.Body = before.body; flags&flagSameBody == 0 {
		m.Body = d.bytes()
	}
	if m.Attachments = before.attachments; flags&flagSameAttachments == 0 {
		m.Attachments = d.bytes()
	}
	return id, flags&flagIndividual != 0, m
}

// appendOutcome appends an outcome.
func appendOutcome(dst []byte, o *driver.Outcome) []byte {
	dst = append(dst, byte(o.Verdict))
	dst = binary.AppendVarint(dst, int64(o.Code))
	dst = appendText(dst, o.Text)
	dst = appendText(dst, o.Relay)
	dst = binary.AppendVarint(dst, o.At.UnixNano())
	dst = binary.AppendVarint(dst, int64(o.RetryAfter))
	return appendText(dst, string(o.Class))
}

// outcome reads an outcome.
func (d *decoder) outcome() driver.Outcome {
	o := driver.Outcome{Verdict: driver.Verdict(d.byte()), Code: int(d.int()), Text: d.text(), Relay: d.text()}
	o.At, o.RetryAfter, o.Class = time.Unix(0, d.int()), time.Duration(d.int()), fanfare.Class(d.text())
	if o.Verdict > driver.Lost || len(o.Text) > driver.MaxTextBytes {
		d.fail()
	}
	return o
}
