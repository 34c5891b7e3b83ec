package content

import (
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// A Writer appends items. UTF8 says that the client accepts UTF-8 in quoted strings.
type Writer struct{ UTF8 bool }

// Structure appends the structure of a part: BODYSTRUCTURE if extended, else BODY.
func (w Writer) Structure(b []byte, p *mimetree.Part, extended bool) []byte {
	b = append(b, '(')
	if p.IsMultipart() {
		b = w.multipart(b, p, extended)
	} else {
		b = w.single(b, p, extended)
	}
	return append(b, ')')
}

// emptyPart stands for the parts of a multipart that has none: the grammar requires one.
const emptyPart = `("text" "plain" ("charset" "us-ascii") NIL NIL "7bit" 0 0`

func (w Writer) multipart(b []byte, p *mimetree.Part, extended bool) []byte {
	for _, child := range p.Children {
		b = w.Structure(b, child, extended)
	}
	if len(p.Children) == 0 {
		b = append(b, emptyPart...)
		if extended {
			b = append(b, " NIL NIL NIL NIL"...)
		}
		b = append(b, ')')
	}
	b = append(b, ' ')
	b = w.str(b, p.Subtype)
	if !extended {
		return b
	}
	b = append(b, ' ')
	b = w.params(b, p.Params, false)
	return w.extension(b, p)
}

func (w Writer) single(b []byte, p *mimetree.Part, extended bool) []byte {
	isText := strings.EqualFold(p.Type, "text")
	b = w.str(b, p.Type)
	b = append(b, ' ')
	b = w.str(b, p.Subtype)
	b = append(b, ' ')
	b = w.params(b, p.Params, isText)
	b = append(b, ' ')
	b = w.optional(b, p.ID, p.Present.Has(mimetree.HasID))
	b = append(b, ' ')
	b = w.optional(b, p.Description, p.Present.Has(mimetree.HasDescription))
	b = append(b, ' ')
	encoding := p.Encoding
	if encoding == "" {
		encoding = "7bit"
	}
	b = w.str(b, encoding)
	b = append(b, ' ')
	b = strconv.AppendInt(b, p.Body.Len(), 10)
	switch {
	case isText:
		b = append(b, ' ')
		b = strconv.AppendInt(b, p.Lines, 10)
	case p.IsMessage():
		b = append(b, ' ')
		b = w.Envelope(b, p.Children[0].Envelope)
		b = append(b, ' ')
		b = w.Structure(b, p.Children[0], extended)
		b = append(b, ' ')
		b = strconv.AppendInt(b, p.Lines, 10)
	}
	if !extended {
		return b
	}
	b = append(b, ' ')
	b = w.optional(b, p.MD5, p.Present.Has(mimetree.HasMD5))
	return w.extension(b, p)
}

// extension appends the disposition, the language and the location.
func (w Writer) extension(b []byte, p *mimetree.Part) []byte {
	b = append(b, ' ')
	if p.Present.Has(mimetree.HasDisposition) {
		b = append(b, '(')
		b = w.str(b, p.Disposition)
		b = append(b, ' ')
		b = w.params(b, p.DispositionParams, false)
		b = append(b, ')')
	} else {
		b = append(b, "NIL"...)
	}
	b = append(b, ' ')
	if len(p.Language) == 0 {
		b = append(b, "NIL"...)
	} else {
		b = append(b, '(')
		for i, language := range p.Language {
			if i > 0 {
				b = append(b, ' ')
			}
			b = w.str(b, language)
		}
		b = append(b, ')')
	}
	b = append(b, ' ')
	return w.optional(b, p.Location, p.Present.Has(mimetree.HasLocation))
}

// params appends parameters; of a text without a character set, with its default.
func (w Writer) params(b []byte, params []mimetree.Param, isText bool) []byte {
	if len(params) == 0 && !isText {
		return append(b, "NIL"...)
	}
	b = append(b, '(')
	for i, p := range params {
		if i > 0 {
			b = append(b, ' ')
		}
		b = w.str(b, p.Name)
		b = append(b, ' ')
		b = w.str(b, p.Value)
		isText = isText && !strings.EqualFold(p.Name, "charset")
	}
	if isText {
		if len(params) > 0 {
			b = append(b, ' ')
		}
		b = append(b, `"charset" "us-ascii"`...)
	}
	return append(b, ')')
}

func (w Writer) str(b []byte, s string) []byte { return syntax.AppendString(b, s, w.UTF8) }

// optional appends a string, or NIL for a field that does not exist.
func (w Writer) optional(b []byte, s string, exists bool) []byte {
	if !exists {
		return append(b, "NIL"...)
	}
	return w.str(b, s)
}

// Envelope appends an envelope.
func (w Writer) Envelope(b []byte, e *mimetree.Envelope) []byte {
	if e == nil {
		e = &mimetree.Envelope{}
	}
	b = append(b, '(')
	b = w.optional(b, e.Date, e.Present.Has(mimetree.HasDate))
	b = append(b, ' ')
	b = w.optional(b, e.Subject, e.Present.Has(mimetree.HasSubject))
	for _, list := range [][]mimetree.Address{e.From, e.Sender, e.ReplyTo, e.To, e.Cc, e.Bcc} {
		b = append(b, ' ')
		b = w.addresses(b, list)
	}
	b = append(b, ' ')
	b = w.optional(b, e.InReplyTo, e.Present.Has(mimetree.HasInReplyTo))
	b = append(b, ' ')
	b = w.optional(b, e.MessageID, e.Present.Has(mimetree.HasMessageID))
	return append(b, ')')
}

func (w Writer) addresses(b []byte, list []mimetree.Address) []byte {
	if len(list) == 0 {
		return append(b, "NIL"...)
	}
	b = append(b, '(')
	for _, a := range list {
		switch a.Group {
		case mimetree.GroupBegin:
			b = append(b, "(NIL NIL "...)
			b = w.str(b, a.Mailbox)
			b = append(b, " NIL)"...)
		case mimetree.GroupEnd:
			b = append(b, "(NIL NIL NIL NIL)"...)
		default:
			b = append(b, '(')
			b = w.optional(b, a.Name, a.Name != "")
			b = append(b, ' ')
			b = w.optional(b, a.Route, a.Route != "")
			b = append(b, ' ')
			b = w.str(b, a.Mailbox)
			b = append(b, ' ')
			b = w.str(b, a.Host)
			b = append(b, ')')
		}
	}
	return append(b, ')')
}
