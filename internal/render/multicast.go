package render

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/mime"
)

// multicast caches the messages of a batch that many recipients share, by content: one for an
// event, in a digest one for each list of items.
type multicast struct {
	on    bool
	known map[string]sharedMessage
	size  int
	key   []byte

	sender string // envelope sender of all of them; it names the event, not a delivery

	// individualMutex guards individual.
	individualMutex sync.Mutex
	individual      *IndividualFuncs
}

// A sharedMessage is a message for several recipients. It never changes.
type sharedMessage struct {
	body      []byte
	contentID uint64
	dotLine   bool // a line may begin with a dot

	// The message without signatures, cut at the headers To and List-Unsubscribe, which are all
	// that differs in a message to one recipient.
	before, between, behind []byte
}

// IndividualFuncs has the functions of a MailBatch for messages to one recipient. Such messages
// are written while the MailWriter is in use, so these functions share nothing with those of
// the MailBatch. They are called one at a time. Sign returns the signed message.
type IndividualFuncs struct {
	UnsubscribeURL func(dst []byte, r *Recipient) []byte
	ReturnAddress  func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte
	Sign           func(message, files []byte) ([]byte, error)
}

// maxSharedBytes bounds the cached messages. A cache that reaches the limit is emptied; a
// message that is written again has the same bytes and the same content ID.
const maxSharedBytes = 4 << 20

// isPersonal reports whether the part has text for one recipient only.
func (p *preparedPart) isPersonal() bool {
	switch {
	case p == nil:
		return false
	case p.whole:
		return p.part.Sharing == liquid.Personal
	}
	return slices.ContainsFunc(p.slots, func(piece liquid.Slot) bool { return piece.Sharing == liquid.Personal })
}

// writeShared returns the shared message for a recipient.
func (w *MailWriter) writeShared(r *Recipient) (driver.Message, error) {
	to, utf8Needed, err := recipientPath(r.Address)
	if err != nil {
		return driver.Message{}, err
	}
	s := &w.multicast
	s.key = binary.AppendVarint(s.key[:0], r.Date.Unix())
	s.key = binary.AppendUvarint(s.key, uint64(r.Omitted))
	for i := range r.Items {
		s.key = binary.AppendUvarint(s.key, uint64(r.Items[i].Number))
	}
	shared, ok := s.known[string(s.key)]
	if !ok {
		// The message names no recipient, the first included.
		if shared, err = w.makeShared(&Recipient{Items: r.Items, Omitted: r.Omitted, Date: r.Date}); err != nil {
			return driver.Message{}, err
		}
		if s.size += len(s.key) + len(shared.body); s.known == nil || s.size > maxSharedBytes {
			s.known, s.size = map[string]sharedMessage{}, len(s.key)+len(shared.body)
		}
		s.known[string(s.key)] = shared
	}
	message := driver.Message{Delivery: r.Delivery, From: s.sender, To: to, Body: shared.body, Attachments: w.files.Bytes(), UTF8: utf8Needed || w.utf8, NoDotStuffing: !shared.dotLine, SharedContent: shared.contentID}
	if utf8Needed {
		message.SharedContent++ // it needs another envelope
	}
	if w.batch.Individual != nil {
		plain := message
		message.Individual = func() (driver.Message, error) { return w.writeIndividual(plain, shared, r) }
	}
	return message, nil
}

// writeIndividual turns a shared message into one for its recipient. The Message-ID stays: an
// earlier attempt with an unknown outcome may have sent the shared message.
func (w *MailWriter) writeIndividual(message driver.Message, shared sharedMessage, r *Recipient) (driver.Message, error) {
	s := &w.multicast
	s.individualMutex.Lock()
	defer s.individualMutex.Unlock()
	if s.individual == nil {
		made := w.batch.Individual()
		s.individual = &made
	}
	var url, mailto []byte
	if s.individual.UnsubscribeURL != nil {
		url = s.individual.UnsubscribeURL(nil, r)
		if err := mime.CheckURL(url, "unsubscribe_url"); err != nil {
			return message, err
		}
	}
	if w.hasPersonalMailto() {
		mailto = appendPersonalMailto(nil, s.individual.ReturnAddress, r.Delivery)
	} else {
		mailto = w.mailto
	}
	out := make([]byte, 0, len(shared.body)+len(message.To)+2*(len(url)+len(mailto))+128)
	out = append(out, shared.before...)
	out = append(out, "To: "...)
	out = append(out, message.To...)
	out = append(out, "\r\n"...)
	out = append(out, shared.between...)
	out = appendUnsubscribe(out, url, mailto)
	out = append(out, shared.behind...)
	if s.individual.Sign != nil {
		var err error
		if out, err = s.individual.Sign(out, message.Attachments); err != nil {
			return message, err
		}
	}
	message.Body, message.SharedContent = out, 0
	if s.individual.ReturnAddress != nil {
		message.From = string(s.individual.ReturnAddress(nil, signedlink.BounceReturn, r.Delivery, false))
	}
	return message, nil
}

// makeShared writes a message for all recipients with the items of r. Its Message-ID is derived
// from the content, so that a retry has the same one, and a mail reader shows the message once
// to a person who gets it by several lists.
func (w *MailWriter) makeShared(r *Recipient) (sharedMessage, error) {
	var shared sharedMessage
	if err := w.setDate(r.Date); err != nil {
		return shared, err
	}
	var vars map[string]any
	var err error
	w.url = w.url[:0]
	if w.needs.any {
		if vars, err = w.variables(r); err != nil {
			return shared, err
		}
	}
	out := append([]byte(nil), w.head...)
	shared.before = w.head
	out = append(out, "To: undisclosed-recipients:;\r\n"...)
	beyond := len(out)
	if out, err = w.appendSubject(out, r, vars); err != nil {
		return shared, err
	}
	out = append(out, "Date: "...)
	out = append(out, w.date...)
	out = append(out, "\r\n"...)
	rest := append([]byte(nil), w.list...)
	if !w.hasPersonalMailto() {
		rest = appendUnsubscribe(rest, nil, w.mailto)
	}
	leave := len(rest)
	rest = append(rest, w.tail...)
	if rest, err = w.appendParts(rest, r, vars); err != nil {
		return shared, err
	}
	content := sha256.New()
	content.Write(out)
	content.Write(rest)
	if w.files != nil {
		content.Write([]byte(w.files.Set.Key()))
	}
	sum := content.Sum(nil)
	out = append(out, "Message-ID: <"...)
	out = append(out, w.batch.EventRef.String()...)
	out = append(out, '.')
	out = hex.AppendEncode(out, sum[:8])
	out = append(out, '@')
	out = append(out, w.batch.Domain...)
	out = append(out, ">\r\n"...)
	out = append(out, w.list...)
	unsubscribe := len(out)
	out = append(out, rest[len(w.list):]...)
	plain := len(out)
	out = w.sign(out, 0)
	unsigned := out[len(out)-plain:]
	shared.between, shared.behind = unsigned[beyond:unsubscribe], unsigned[unsubscribe+leave-len(w.list):]
	shared.body, shared.dotLine = slices.Clip(out), w.dotLine
	// The signatures are part of the content.
	whole := sha256.Sum256(out)
	shared.contentID = binary.BigEndian.Uint64(whole[:8])&^1 | 2
	return shared, nil
}
