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

// multicast are the messages of a mailing that are the same for many recipients, by
// what they tell of: of an event that is one, of a digest one for each list of items.
type multicast struct {
	on    bool
	known map[string]sharedMessage
	size  int
	key   []byte

	sender string // of all of them: it names the event, and no delivery

	// making guards what messages to one recipient are made with.
	individualMutex sync.Mutex
	individual      *IndividualFuncs
}

// A sharedBody is a message that never changes.
type sharedMessage struct {
	body      []byte
	contentID uint64
	dotLine   bool // a line may begin with one

	// Of the message without its signatures: what stands before and behind the headers
	// To and List-Unsubscribe, which are all that differs in a message to one recipient.
	before, between, behind []byte
}

// IndividualFuncs has the functions of a Mailing for messages to one recipient, which are made
// while the writer is in use. They share nothing with those of the Mailing, and are
// called one at a time. What Sign returns is signed.
type IndividualFuncs struct {
	UnsubscribeURL func(dst []byte, r *Recipient) []byte
	ReturnAddress  func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte
	Sign           func(message, files []byte) ([]byte, error)
}

// maxSharedBytes bounds the messages that are kept for the next recipients, beside
// those that letters have. Beyond it all are forgotten, and made again where they are
// needed: with the same bytes and the same share.
const maxSharedBytes = 4 << 20

// isPersonal reports whether the part says something to a recipient that it may not
// say to another.
func (p *preparedPart) isPersonal() bool {
	switch {
	case p == nil:
		return false
	case p.whole:
		return p.part.Sharing == liquid.Personal
	}
	return slices.ContainsFunc(p.slots, func(piece liquid.Slot) bool { return piece.Sharing == liquid.Personal })
}

// writeShared makes the letter of a recipient with the message that others get, too.
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
	message, ok := s.known[string(s.key)]
	if !ok {
		// Who asks first is nobody in it.
		if message, err = w.makeShared(&Recipient{Items: r.Items, Omitted: r.Omitted, Date: r.Date}); err != nil {
			return driver.Message{}, err
		}
		if s.size += len(s.key) + len(message.body); s.known == nil || s.size > maxSharedBytes {
			s.known, s.size = map[string]sharedMessage{}, len(s.key)+len(message.body)
		}
		s.known[string(s.key)] = message
	}
	letter := driver.Message{Delivery: r.Delivery, From: s.sender, To: to, Body: message.body, Attachments: w.files.Bytes(), UTF8: utf8Needed || w.utf8, NoDotStuffing: !message.dotLine, SharedContent: message.contentID}
	if utf8Needed {
		letter.SharedContent++ // it takes another envelope
	}
	if w.batch.Individual != nil {
		plain := letter
		letter.Individual = func() (driver.Message, error) { return w.writeIndividual(plain, message, r) }
	}
	return letter, nil
}

// writeIndividual makes a shared message into one to its recipient. The Message-ID stays:
// an earlier attempt that nobody knows the outcome of may have gone to several.
func (w *MailWriter) writeIndividual(letter driver.Message, message sharedMessage, r *Recipient) (driver.Message, error) {
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
			return letter, err
		}
	}
	if w.hasPersonalMailto() {
		mailto = appendPersonalMailto(nil, s.individual.ReturnAddress, r.Delivery)
	} else {
		mailto = w.mailto
	}
	out := make([]byte, 0, len(message.body)+len(letter.To)+2*(len(url)+len(mailto))+128)
	out = append(out, message.before...)
	out = append(out, "To: "...)
	out = append(out, letter.To...)
	out = append(out, "\r\n"...)
	out = append(out, message.between...)
	out = appendUnsubscribe(out, url, mailto)
	out = append(out, message.behind...)
	if s.individual.Sign != nil {
		var err error
		if out, err = s.individual.Sign(out, letter.Attachments); err != nil {
			return letter, err
		}
	}
	letter.Body, letter.SharedContent = out, 0
	if s.individual.ReturnAddress != nil {
		letter.From = string(s.individual.ReturnAddress(nil, signedlink.BounceReturn, r.Delivery, false))
	}
	return letter, nil
}

// makeShared writes a message for all who have the items of r. Its Message-ID comes
// from what it says, so that a later attempt has the same, and a reader in several
// lists is told that it is one message.
func (w *MailWriter) makeShared(r *Recipient) (sharedMessage, error) {
	var message sharedMessage
	if err := w.setDate(r.Date); err != nil {
		return message, err
	}
	var vars map[string]any
	var err error
	w.url = w.url[:0]
	if w.needs.any {
		if vars, err = w.variables(r); err != nil {
			return message, err
		}
	}
	out := append([]byte(nil), w.head...)
	message.before = w.head
	out = append(out, "To: undisclosed-recipients:;\r\n"...)
	beyond := len(out)
	if out, err = w.appendSubject(out, r, vars); err != nil {
		return message, err
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
		return message, err
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
	message.between, message.behind = unsigned[beyond:unsubscribe], unsigned[unsubscribe+leave-len(w.list):]
	message.body, message.dotLine = slices.Clip(out), w.dotLine
	// What vouches for the message is a part of it, too.
	whole := sha256.Sum256(out)
	message.contentID = binary.BigEndian.Uint64(whole[:8])&^1 | 2
	return message, nil
}
