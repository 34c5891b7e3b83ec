package render

import (
	"bytes"
	"time"

	"fanfare.dev/fanfare/internal/mail/address"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/mime"
)

// Write appends the message for r to dst, whose memory it reuses, and returns
// the letter, whose body is the appended slice, and the longer dst. On an error,
// which is a *fanfare.Error, dst is returned as it was; a variable that does not
// exist is named in it, and a header value that may not leave is named by the
// pointer /to, /date or /unsubscribe_url.
func (w *Writer) Write(dst []byte, r *Recipient) (driver.Message, []byte, error) {
	if w.several != nil {
		one, err := w.several.of(r)
		if err != nil {
			return driver.Message{}, dst, err
		}
		return one.Write(dst, r)
	}
	if w.shared.on && !r.Sole {
		letter, err := w.writeShared(r)
		return letter, dst, err
	}
	start := len(dst)
	fail := func(err error) (driver.Message, []byte, error) { return driver.Message{}, dst[:start], err }

	to, utf8Needed, err := recipientPath(r.Address)
	if err != nil {
		return fail(err)
	}
	w.url = w.url[:0]
	if w.mailing.Unsubscribe != nil {
		w.url = w.mailing.Unsubscribe(w.url, r)
		if err := mime.CheckURL(w.url, "unsubscribe_url"); err != nil {
			return fail(err)
		}
	}
	if w.preferences = w.preferences[:0]; w.needs.preferences && w.mailing.Preferences != nil {
		w.preferences = w.mailing.Preferences(w.preferences, r)
	}
	if err := w.setDate(r.Date); err != nil {
		return fail(err)
	}
	var vars map[string]any
	if w.needs.any {
		if vars, err = w.variables(r); err != nil {
			return fail(err)
		}
	}

	out := append(dst, w.head...)
	out = append(out, "To: "...)
	out = append(out, to...)
	out = append(out, "\r\n"...)
	if out, err = w.appendSubject(out, r, vars); err != nil {
		return fail(err)
	}
	out = append(out, "Date: "...)
	out = append(out, w.date...)
	out = append(out, "\r\nMessage-ID: <"...)
	out = r.Delivery.Append(out)
	out = append(out, '@')
	out = append(out, w.mailing.Domain...)
	out = append(out, ">\r\n"...)
	out = append(out, w.list...)
	w.prepareLeave(r)
	out = appendUnsubscribe(out, w.url, w.mailto)
	out = append(out, w.tail...)
	if out, err = w.appendParts(out, r, vars); err != nil {
		return fail(err)
	}
	out = w.sign(out, start)
	return driver.Message{
		Delivery:      r.Delivery,
		From:          w.sender(r.Delivery, false),
		To:            to,
		Body:          out[start:len(out):len(out)],
		Attachments:   w.files.Bytes(),
		UTF8:          utf8Needed || w.utf8,
		NoDotStuffing: !w.dots,
	}, out, nil
}

func (w *Writer) sign(out []byte, start int) []byte {
	if w.mailing.Sign == nil {
		return out
	}
	return w.mailing.Sign(out, start, w.files.Bytes())
}

func (w *Writer) setDate(date time.Time) error {
	if w.second == date.Unix() {
		return nil
	}
	if year := date.UTC().Year(); year < 1900 || year > 9999 {
		return invalidValue("date", "the year %d cannot stand in a mail", year)
	}
	w.second = date.Unix()
	w.date = date.UTC().AppendFormat(w.date[:0], time.RFC1123Z)
	return nil
}

func (w *Writer) appendSubject(out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	if w.subject != nil {
		return append(out, w.subject...), nil
	}
	if err := w.fill(w.subjectPart, r, vars); err != nil {
		return out, err
	}
	w.cleaned = w.subjectPart.AppendText(w.cleaned[:0])
	w.cleaned = mime.CleanSubject(w.cleaned)
	return mime.AppendSubject(out, w.cleaned), nil
}

func recipientPath(to string) (path string, utf8Needed bool, err error) {
	normal, err := address.Parse(to)
	if err == nil {
		path, utf8Needed, err = address.Route(normal)
	}
	if err != nil {
		return "", false, invalidValue("to", "%s", err.Error())
	}
	return path, utf8Needed, nil
}

// sender is the envelope sender of what a delivery sends.
func (w *Writer) sender(delivery fanfare.DeliveryRef, shared bool) string {
	if w.mailing.Returns == nil {
		return w.mailing.Sender
	}
	w.address = w.mailing.Returns(w.address[:0], signedlink.BounceReturn, delivery, shared)
	return string(w.address)
}

// prepareLeave makes the mailto of a recipient, where each has one.
func (w *Writer) prepareLeave(r *Recipient) {
	if !w.leaveOfEach() {
		return
	}
	w.mailto = appendLeave(w.mailto[:0], w.mailing.Returns, r.Delivery)
}

// leaveOfEach reports whether each recipient has a mailto of his own.
func (w *Writer) leaveOfEach() bool { return w.mailing.Returns != nil && w.mailing.Leave }

// appendLeave appends the mailto of a delivery.
func appendLeave(dst []byte, returns func([]byte, byte, fanfare.DeliveryRef, bool) []byte, delivery fanfare.DeliveryRef) []byte {
	dst = append(dst, "<mailto:"...)
	dst = returns(dst, signedlink.UnsubscribeReturn, delivery, false)
	return append(dst, "?subject=unsubscribe>"...)
}

// appendUnsubscribe appends the headers of RFC 2369 and RFC 8058, with a link and a
// mailto where there are such.
func appendUnsubscribe(out, url, mailto []byte) []byte {
	if len(url) == 0 && len(mailto) == 0 {
		return out
	}
	out = append(out, "List-Unsubscribe: "...)
	if len(url) > 0 {
		out = append(out, '<')
		out = append(out, url...)
		out = append(out, '>')
		if len(mailto) > 0 {
			out = append(out, ",\r\n "...)
		}
	}
	out = append(out, mailto...)
	out = append(out, "\r\n"...)
	if len(url) > 0 {
		out = append(out, "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"...)
	}
	return out
}

func (w *Writer) appendParts(out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	w.dots = false
	if w.files != nil {
		return w.appendPartsBefore(w.files, out, r, vars)
	}
	multi := w.textPart != nil && w.htmlPart != nil
	if multi {
		out = append(out, "Content-Type: multipart/alternative;\r\n boundary=\""...)
		out = append(out, w.boundary...)
		out = append(out, "\"\r\n\r\n"...)
	}
	for _, p := range [2]*prepared{w.textPart, w.htmlPart} {
		if p == nil {
			continue
		}
		if err := w.fill(p, r, vars); err != nil {
			return out, err
		}
		if multi {
			out = append(out, "--"...)
			out = append(out, w.boundary...)
			out = append(out, "\r\n"...)
		}
		out = w.appendPart(out, p)
	}
	if multi {
		out = append(out, "--"...)
		out = append(out, w.boundary...)
		out = append(out, "--\r\n"...)
	}
	return out, nil
}

// appendPartsBefore appends the parts of a message that ends with files.
func (w *Writer) appendPartsBefore(files *mime.EncodedFiles, out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	out = files.AppendOpening(out)
	for _, p := range [2]*prepared{w.textPart, w.htmlPart} {
		if p == nil {
			continue
		}
		if err := w.fill(p, r, vars); err != nil {
			return out, err
		}
		out = files.AppendPartOpening(out, p == w.htmlPart)
		out = w.appendPart(out, p)
	}
	return out, nil
}

// appendPart appends the part's own headers and its body in the simplest
// encoding that carries it.
func (w *Writer) appendPart(out []byte, p *prepared) []byte {
	if p.SevenBit() {
		start := len(out)
		out = append(out, p.headers[0]...)
		text := len(out)
		var dots bool
		out, dots = p.AppendPlain(out)
		w.dots = w.dots || dots
		if !bytes.Contains(out[text:], []byte("--=_")) {
			return out
		}
		out = out[:start]
	}
	w.dots = true // where a line of quoted-printable begins is not looked at
	out = append(out, p.headers[1]...)
	out, w.line = p.AppendQuotedPrintable(out, w.line)
	return out
}
