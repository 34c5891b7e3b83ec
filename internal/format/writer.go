package format

import (
	"bytes"
	"time"

	"fanfare.dev/fanfare"
)

// Write appends the message for r to dst, whose memory it reuses, and returns
// the letter, whose body is the appended slice, and the longer dst. On an error,
// which is a *fanfare.Error, dst is returned as it was; a variable that does not
// exist is named in it, and a header value that may not leave is named by the
// pointer /to, /date or /unsubscribe_url.
func (w *Writer) Write(dst []byte, r *Recipient) (fanfare.Letter, []byte, error) {
	start := len(dst)
	fail := func(err error) (fanfare.Letter, []byte, error) { return fanfare.Letter{}, dst[:start], err }

	to, utf8Needed, err := recipientPath(r.Address)
	if err != nil {
		return fail(err)
	}
	w.url = w.url[:0]
	if w.mailing.Unsubscribe != nil {
		w.url = w.mailing.Unsubscribe(w.url, r)
		if err := headerURL(w.url, "unsubscribe_url"); err != nil {
			return fail(err)
		}
	}
	if w.second != r.Date.Unix() {
		if year := r.Date.UTC().Year(); year < 1900 || year > 9999 {
			return fail(refused("date", "the year %d cannot stand in a mail", year))
		}
		w.second = r.Date.Unix()
		w.date = r.Date.UTC().AppendFormat(w.date[:0], time.RFC1123Z)
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
	if w.subject != nil {
		out = append(out, w.subject...)
	} else {
		if err := w.fill(w.subjectPart, r, vars); err != nil {
			return fail(err)
		}
		w.cleaned = w.subjectPart.appendText(w.cleaned[:0])
		w.cleaned = cleanSubject(w.cleaned)
		out = appendSubject(out, w.cleaned)
	}
	out = append(out, "Date: "...)
	out = append(out, w.date...)
	out = append(out, "\r\nMessage-ID: <"...)
	out = r.Delivery.Append(out)
	out = append(out, '@')
	out = append(out, w.mailing.Domain...)
	out = append(out, ">\r\n"...)
	out = append(out, w.list...)
	out = w.appendUnsubscribe(out)
	out = append(out, w.tail...)
	if out, err = w.appendParts(out, r, vars); err != nil {
		return fail(err)
	}
	return fanfare.Letter{
		Delivery: r.Delivery,
		From:     w.mailing.Sender,
		To:       to,
		Body:     out[start:len(out):len(out)],
		UTF8:     utf8Needed || w.utf8,
	}, out, nil
}

func recipientPath(address string) (path string, utf8Needed bool, err error) {
	normal, err := ParseAddress(address)
	if err == nil {
		path, utf8Needed, err = route(normal)
	}
	if err != nil {
		return "", false, refused("to", "%s", err.Error())
	}
	return path, utf8Needed, nil
}

// appendUnsubscribe appends the headers of RFC 2369 and RFC 8058.
func (w *Writer) appendUnsubscribe(out []byte) []byte {
	if len(w.url) == 0 && len(w.mailto) == 0 {
		return out
	}
	out = append(out, "List-Unsubscribe: "...)
	if len(w.url) > 0 {
		out = append(out, '<')
		out = append(out, w.url...)
		out = append(out, '>')
		if len(w.mailto) > 0 {
			out = append(out, ",\r\n "...)
		}
	}
	out = append(out, w.mailto...)
	out = append(out, "\r\n"...)
	if len(w.url) > 0 {
		out = append(out, "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"...)
	}
	return out
}

func (w *Writer) appendParts(out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
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

// appendPart appends the part's own headers and its body in the simplest
// encoding that carries it.
func (w *Writer) appendPart(out []byte, p *prepared) []byte {
	if p.measure().sevenBit() {
		start := len(out)
		out = append(out, p.headers[0]...)
		text := len(out)
		out = p.appendPlain(out)
		if !bytes.Contains(out[text:], []byte("--=_")) {
			return out
		}
		out = out[:start]
	}
	out = append(out, p.headers[1]...)
	out, w.line = p.appendQuotedPrintable(out, w.line)
	return out
}

// fill renders what is the recipient's own of a part.
func (w *Writer) fill(p *prepared, r *Recipient, vars map[string]any) error {
	p.values, p.ends = p.values[:0], p.ends[:0]
	if p.whole {
		text, err := render(p.part.whole, vars)
		if err != nil {
			return w.named(p, err)
		}
		p.values = append(p.values, text...)
		p.ends = append(p.ends, len(p.values))
		return nil
	}
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.field != nil {
			var ok bool
			if p.values, ok = piece.field.append(p.values, r, w.url, p.part.mode); !ok {
				return w.named(p, invalid(piece.field.line, "", "%s", missingError(piece.field.name).Error()))
			}
		} else {
			text, err := render(piece.template, vars)
			if err != nil {
				return w.named(p, err)
			}
			p.values = append(p.values, text...)
		}
		p.ends = append(p.ends, len(p.values))
	}
	return nil
}

func (w *Writer) named(p *prepared, err *fanfare.Error) error {
	return w.mailing.Template.at(p.part, err)
}

// needs says what of a recipient the templates rendered for each one read, so
// that nothing else is decoded.
type needs struct {
	any        bool // there are such templates
	attributes bool
	data       bool // sub
	first      bool // subscription
	all        bool // subscriptions
}

func (n *needs) add(paths []path) {
	n.any = true
	for _, p := range paths {
		switch p.root {
		case "subscriber":
			n.attributes = n.attributes || len(p.segments) == 0 || p.segments[0].name == "attributes" || p.segments[0].name == ""
		case "sub":
			n.data = true
		case "subscription":
			n.first = true
		case "subscriptions":
			n.all = true
		}
	}
}

// variables makes what Liquid sees of a recipient.
func (w *Writer) variables(r *Recipient) (map[string]any, error) {
	subscriber := map[string]any{"id": r.ID, "address": r.Address, "locale": r.Locale, "time_zone": r.TimeZone}
	vars := map[string]any{
		"event": w.shared["event"], "meta": w.shared["meta"],
		"subscriber": subscriber, "unsubscribe_url": string(w.url),
	}
	if w.needs.attributes {
		if err := present(subscriber, "attributes", r.Attributes); err != nil {
			return nil, err
		}
	}
	if w.needs.data {
		if err := present(vars, "sub", r.Data); err != nil {
			return nil, err
		}
	}
	n := 0
	if w.needs.all {
		n = len(r.Subscriptions)
	} else if w.needs.first {
		n = min(1, len(r.Subscriptions))
	}
	all := make([]any, n)
	for i, s := range r.Subscriptions[:n] {
		one := map[string]any{"id": s.ID, "rule": s.Rule}
		if err := present(one, "params", s.Params); err != nil {
			return nil, err
		}
		if err := present(one, "data", s.Data); err != nil {
			return nil, err
		}
		all[i] = one
	}
	vars["subscriptions"] = all
	if n > 0 {
		vars["subscription"] = all[0]
	}
	return vars, nil
}

// present sets a field if there is JSON for it: what is not there is missing and
// not null.
func present(in map[string]any, name string, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	value, err := decode(raw)
	if err != nil {
		return refused(name, "is not valid JSON")
	}
	in[name] = value
	return nil
}
