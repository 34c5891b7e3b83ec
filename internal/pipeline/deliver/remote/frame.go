package remote

import (
	"encoding/binary"
	"math"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Protocol is the name and version of the protocol of a link. It changes with the encoding of frames.
const Protocol = "fanfare-deliver/1"

// The kinds of frames. Frames that do not belong to a stream have the stream number 0.
const (
	kindChannel = link.Ping + 1 + iota // leader: the settings of a channel, for streams that are opened later
	kindOpen                           // leader: start a driver on a stream
	kindStop                           // leader: end the context of a driver
	kindReply                          // leader: the result of a call
	kindCall                           // node: a method of driver.Queue
	kindCancel                         // node: end the context of a call of Next
	kindEnd                            // node: the driver has returned
	kindLeave                          // node: open no more streams, and stop those that are open
	kindSign                           // leader: sign a digest; the stream is the number of the request
	kindSigned                         // node: the signature, or nothing if the node does not have the key
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

// The flags of an encoded message.
const (
	flagUTF8 = 1 << iota
	flagEightBit
	flagNoDotStuffing
	flagIndividual      // has the method Individual
	flagSameBody        // has the body of the message before it
	flagSameAttachments // has the attachments of the message before it
)

// A content is the part of a message that the next message may share.
type content struct{ body, attachments []byte }

// appendMessage appends a message. It omits content that is the same as in the message before it.
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
	dst = link.AppendText(dst, m.From)
	dst = link.AppendText(dst, m.To)
	if flags&flagSameBody == 0 {
		dst = link.AppendText(dst, m.Body)
	}
	if flags&flagSameAttachments == 0 {
		dst = link.AppendText(dst, m.Attachments)
	}
	return dst
}

// sameMemory reports whether two texts are not empty and share their memory.
func sameMemory(a, b []byte) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// readMessage reads a message that may share content with the one before it.
func readMessage(d *link.Decoder, before content) (id uint32, individual bool, m driver.Message) {
	id = d.Uint32()
	flags := d.Byte()
	m.UTF8, m.EightBit, m.NoDotStuffing = flags&flagUTF8 != 0, flags&flagEightBit != 0, flags&flagNoDotStuffing != 0
	day := d.Int()
	if day < math.MinInt32 || day > math.MaxInt32 {
		d.Fail()
	}
	m.Delivery = fanfare.DeliveryRef{Day: fanfare.Day(day), Manifest: fanfare.ManifestID(d.Uint()), Position: d.Uint32()}
	m.SharedContent = d.Uint()
	m.From, m.To = d.Text(), d.Text()
	if m.Body = before.body; flags&flagSameBody == 0 {
		m.Body = d.Bytes()
	}
	if m.Attachments = before.attachments; flags&flagSameAttachments == 0 {
		m.Attachments = d.Bytes()
	}
	return id, flags&flagIndividual != 0, m
}

// appendOutcome appends an outcome.
func appendOutcome(dst []byte, o *driver.Outcome) []byte {
	dst = append(dst, byte(o.Verdict))
	dst = binary.AppendVarint(dst, int64(o.Code))
	dst = link.AppendText(dst, o.Text)
	dst = link.AppendText(dst, o.Relay)
	dst = binary.AppendVarint(dst, o.At.UnixNano())
	dst = binary.AppendVarint(dst, int64(o.RetryAfter))
	return link.AppendText(dst, string(o.Class))
}

// readOutcome reads an outcome.
func readOutcome(d *link.Decoder) driver.Outcome {
	o := driver.Outcome{Verdict: driver.Verdict(d.Byte()), Code: int(d.Int()), Text: d.Text(), Relay: d.Text()}
	o.At, o.RetryAfter, o.Class = time.Unix(0, d.Int()), time.Duration(d.Int()), fanfare.Class(d.Text())
	if o.Verdict > driver.Lost || len(o.Text) > driver.MaxTextBytes {
		d.Fail()
	}
	return o
}
