package compose

import (
	"bytes"
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render"
)

// Submitted writes a message that the owner of a mailbox has submitted. All recipients get the same bytes, whose memory they share.
type Submitted struct{ message driver.Message }

// SubmittedMessage returns the writer of a submitted message. sign inserts signatures in front of it, and may complete them later.
func SubmittedMessage(ctx context.Context, files *Attachments, posted *fanfare.AcceptedEvent, sign func(message []byte) []byte) (*Submitted, error) {
	d := posted.Direct
	if len(d.Files) != 1 { // an erasure removed it
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the submitted message was erased"}
	}
	content, err := files.ofMessage(ctx, fanfare.DayOf(posted.ReceivedAt), &d.Files[0])
	if err != nil {
		return nil, err
	}
	tree := mimetree.Parse(content)
	if len(tree.Envelope.From) == 0 {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the submitted message has no sender"}
	}
	from := tree.Envelope.From[0]
	w := &Submitted{driver.Message{From: from.Mailbox + "@" + from.Host}}
	ascii := func(b []byte) bool { return bytes.IndexFunc(b, func(r rune) bool { return r > 0x7e }) < 0 }
	w.message.UTF8 = !ascii(content[:tree.Header.To])
	w.message.EightBit = !ascii(content)
	w.message.Body = sign(content)
	return w, nil
}

// Write returns the message for a recipient. It appends nothing to dst.
func (w *Submitted) Write(dst []byte, r *render.Recipient) (driver.Message, []byte, error) {
	m := w.message
	m.To = r.Address
	m.UTF8 = m.UTF8 || bytes.ContainsFunc([]byte(m.To), func(c rune) bool { return c > 0x7e })
	return m, dst, nil
}
