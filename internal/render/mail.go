package render

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/mime"
)

// A MailBatch holds all that is the same for every recipient of a batch of mails.
type MailBatch struct {
	Template *Template
	From     mail.Address // header From
	ReplyTo  string       // an address with or without a display name, or ""
	Sender   string       // envelope sender; "" is the null sender
	Domain   string       // right side of Message-ID

	// Multicast writes one message for all recipients who get the same content. It names no
	// recipient, its Message-ID is derived from its content, and it has no personal unsubscribe
	// link. driver.Message.Individual turns it into a message to one recipient with the
	// functions of Individual.
	Multicast  bool
	Individual func() IndividualFuncs

	Event    *fanfare.Event
	EventRef fanfare.EventRef
	Topic    string
	Service  string

	Digest *Digest // instead of Event, which is then nil

	OnMissing     func(variable string) // called once a writer for each missing variable that no schema describes; may be nil
	RefuseMissing bool                  // refuse a message that lacks such a variable

	// Sign appends the signature headers to out and moves the message, which begins at start,
	// behind them; files follow the message. It may leave bytes that are filled in before the
	// message is sent. Nil signs nothing.
	Sign func(out []byte, start int, files []byte) []byte

	Files       []fanfare.File                                 // attached in addition to those of the template
	EncodeFiles func(mime.FileSet) (*mime.EncodedFiles, error) // encodes files or returns them from a cache; called if there are files

	ListID            string                                // RFC 2919, without angle brackets, or ""
	UnsubscribeURL    func(dst []byte, r *Recipient) []byte // appends the signed https link; nil for none
	PreferencesURL    func(dst []byte, r *Recipient) []byte // appends the signed link to the preferences; nil for none
	UnsubscribeMailto string                                // an address that accepts unsubscribe mails, or ""

	// ReturnAddress appends the return address of a delivery; nil: bounces go to Sender. With
	// PersonalMailto, List-Unsubscribe has such an address too, instead of UnsubscribeMailto.
	ReturnAddress  func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte
	PersonalMailto bool
}

// A Recipient is one recipient of a batch.
type Recipient struct {
	Delivery      fanfare.DeliveryRef
	Address       string
	ID            string
	Locale        string
	TimeZone      string
	Attributes    json.RawMessage // of the subscriber; valid JSON or nil
	Data          json.RawMessage // of a direct send: data for this recipient's message; valid JSON or nil
	Formatted     json.RawMessage // by the formatter of the template; valid JSON or nil
	Subscriptions []Subscription  // all that matched, first the one that selected the template; none for a direct send
	Items         []RecipientItem // of a digest, oldest first
	Omitted       int             // of a digest: number of events that are not in Items
	Individual    bool            // the only recipient of the batch: write an individual message in spite of Multicast
	Date          time.Time       // of the first attempt, so that a retry has the same bytes
}

// count returns the number of events of a digest, the omitted ones included.
func (r *Recipient) count() int { return len(r.Items) + r.Omitted }

// A Subscription is a subscription that matched.
type Subscription struct {
	Row    fanfare.RowID // for the links; templates do not see it
	ID     string
	Rule   string          // "" for a subscription with a filter
	Params json.RawMessage // valid JSON or nil
	Data   json.RawMessage // valid JSON or nil

	Title, Description string // for the subscriber
}

// A MailWriter writes the messages of one batch. It belongs to one goroutine.
type MailWriter struct {
	rendering
	byLocalization *writersByLocalization[*MailWriter] // if set, nothing else is: the writers of the recipients

	batch          MailBatch
	utf8           bool   // a shared header needs SMTPUTF8
	head           []byte // From, Reply-To
	subject        []byte // the whole Subject line, if it is the same for all
	list           []byte // List-Id
	mailto         []byte // what follows the link in List-Unsubscribe, if it is the same for all
	addressScratch []byte
	tail           []byte             // Auto-Submitted to MIME-Version
	boundary       string             // of multipart/alternative
	files          *mime.EncodedFiles // nil: the messages have no files
	subjectPart    *preparedPart
	textPart       *preparedPart // nil if the template has none
	htmlPart       *preparedPart

	multicast multicast // empty without Multicast, or if something is personal

	dateSecond  int64 // time of date, in seconds
	date        []byte
	scratch     []byte
	lineScratch []byte
	dotLine     bool // a line of the current message may begin with a dot
}

// Writer prepares the batch: it decodes the event, renders what all recipients share and checks
// the header values. The pointer of an error about a header value is /from, /reply_to, /sender,
// /domain, /list_id or /unsubscribe_mailto; an error about the template has its pointer and
// line.
func (m MailBatch) Writer() (*MailWriter, error) {
	if m.Template.needsNoLocalization() {
		return m.writer(m.Template, nil)
	}
	return &MailWriter{byLocalization: newWritersByLocalization(m.Template, m.writer)}, nil
}

// writer prepares the batch for recipients with the same localization.
func (m MailBatch) writer(t *Template, v *readerLocalization) (*MailWriter, error) {
	w := &MailWriter{batch: m, dateSecond: -1 << 62}
	if err := w.prepareHeaders(); err != nil {
		return nil, err
	}
	if t.subject == nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer(""), Message: "the template is for webhooks or text messages and cannot be sent by email", Hint: "add a subject and a text to the template"}
	}
	var err error
	if w.files, err = m.encodeFiles(t); err != nil {
		return nil, err
	}
	if w.rendering, err = newRendering(t, messageContent{m.Event, m.Digest, m.Topic, m.Service}, v, t.missingVariables(m.OnMissing, m.RefuseMissing)); err != nil {
		return nil, err
	}
	for _, slot := range []struct {
		part *templatePart
		into **preparedPart
	}{{t.subject, &w.subjectPart}, {t.text, &w.textPart}, {t.html, &w.htmlPart}} {
		if slot.part == nil {
			continue
		}
		p, err := w.prepare(slot.part)
		if err != nil {
			return nil, t.setRenderedPosition(slot.part, err)
		}
		*slot.into = p
	}
	if s := w.subjectPart; !s.whole && len(s.slots) == 0 {
		w.subject = mime.AppendSubject(nil, mime.CleanSubject(append([]byte(nil), s.Chunks[0].Text...)))
	}
	w.multicast.on = m.Multicast && !w.subjectPart.isPersonal() && !w.textPart.isPersonal() && !w.htmlPart.isPersonal()
	if w.multicast.on {
		w.multicast.sender = w.sender(fanfare.DeliveryRef{Day: m.EventRef.Day, Manifest: fanfare.NewManifestID(m.EventRef.Seq, 0)}, true)
	}
	return w, nil
}

// encodeFiles returns the encoded files of a template, nil if there are none.
func (m *MailBatch) encodeFiles(t *Template) (*mime.EncodedFiles, error) {
	of := t.fileSet(m.Files)
	if len(of.Files) == 0 {
		return nil, nil
	}
	return m.EncodeFiles(of)
}

func (w *MailWriter) prepareHeaders() error {
	m := &w.batch
	var err error
	if w.head, w.utf8, err = mime.AppendMailbox(nil, "From", "from", m.From); err != nil {
		return err
	}
	if m.ReplyTo != "" {
		a, err := mail.ParseAddress(m.ReplyTo)
		if err != nil {
			return invalidValue("reply_to", "%q is not an email address", m.ReplyTo)
		}
		var unicode bool
		if w.head, unicode, err = mime.AppendMailbox(w.head, "Reply-To", "reply_to", *a); err != nil {
			return err
		}
		w.utf8 = w.utf8 || unicode
	}
	if m.Sender != "" {
		normal, err := address.Parse(m.Sender)
		if err != nil {
			return invalidValue("sender", "%s", err.Error())
		}
		var unicode bool
		if m.Sender, unicode, err = address.Route(normal); err != nil {
			return invalidValue("sender", "%s", err.Error())
		}
		w.utf8 = w.utf8 || unicode
	}
	if err := mime.CheckHostName(m.Domain, "domain"); err != nil {
		return err
	}
	if m.ListID != "" {
		if err := mime.CheckHostName(m.ListID, "list_id"); err != nil {
			return err
		}
		w.list = []byte("List-Id: <" + m.ListID + ">\r\n")
	}
	if m.UnsubscribeMailto != "" {
		address, err := address.Parse(m.UnsubscribeMailto)
		if err != nil {
			return invalidValue("unsubscribe_mailto", "%s", err.Error())
		}
		w.mailto = []byte("<mailto:" + address + ">")
		if err := mime.CheckURL(w.mailto[1:len(w.mailto)-1], "unsubscribe_mailto"); err != nil {
			return err
		}
	}
	ref := m.EventRef.String()
	w.tail = []byte("Auto-Submitted: auto-generated\r\nX-Fanfare-Event: " + ref + "\r\nMIME-Version: 1.0\r\n")
	// "=_" cannot occur in quoted-printable text, and a part that has it is sent in no other
	// encoding. Messages with files have other boundaries.
	w.boundary = "=_" + ref
	return nil
}

// Write appends the message for r to dst and returns the message, whose body is the appended
// slice, and the longer dst. On an error, which is a *fanfare.Error, dst is returned unchanged.
// The error names a missing variable; the pointer of an error about a header value is /to,
// /date or /unsubscribe_url.
func (w *MailWriter) Write(dst []byte, r *Recipient) (driver.Message, []byte, error) {
	if w.byLocalization != nil {
		one, err := w.byLocalization.of(r)
		if err != nil {
			return driver.Message{}, dst, err
		}
		return one.Write(dst, r)
	}
	if w.multicast.on && !r.Individual {
		message, err := w.writeShared(r)
		return message, dst, err
	}
	start := len(dst)
	fail := func(err error) (driver.Message, []byte, error) { return driver.Message{}, dst[:start], err }

	to, utf8Needed, err := recipientPath(r.Address)
	if err != nil {
		return fail(err)
	}
	w.url = w.url[:0]
	if w.batch.UnsubscribeURL != nil {
		w.url = w.batch.UnsubscribeURL(w.url, r)
		if err := mime.CheckURL(w.url, "unsubscribe_url"); err != nil {
			return fail(err)
		}
	}
	if w.preferences = w.preferences[:0]; w.needs.preferences && w.batch.PreferencesURL != nil {
		w.preferences = w.batch.PreferencesURL(w.preferences, r)
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
	out = append(out, w.batch.Domain...)
	out = append(out, ">\r\n"...)
	out = append(out, w.list...)
	w.preparePersonalMailto(r)
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
		NoDotStuffing: !w.dotLine,
	}, out, nil
}

func (w *MailWriter) sign(out []byte, start int) []byte {
	if w.batch.Sign == nil {
		return out
	}
	return w.batch.Sign(out, start, w.files.Bytes())
}

func (w *MailWriter) setDate(date time.Time) error {
	if w.dateSecond == date.Unix() {
		return nil
	}
	if year := date.UTC().Year(); year < 1900 || year > 9999 {
		return invalidValue("date", "the year %d is not allowed in the date of a message", year)
	}
	w.dateSecond = date.Unix()
	w.date = date.UTC().AppendFormat(w.date[:0], time.RFC1123Z)
	return nil
}

func (w *MailWriter) appendSubject(out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	if w.subject != nil {
		return append(out, w.subject...), nil
	}
	if err := w.renderPersonal(w.subjectPart, r, vars); err != nil {
		return out, err
	}
	w.scratch = w.subjectPart.AppendText(w.scratch[:0])
	w.scratch = mime.CleanSubject(w.scratch)
	return mime.AppendSubject(out, w.scratch), nil
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

// sender returns the envelope sender of a delivery.
func (w *MailWriter) sender(delivery fanfare.DeliveryRef, shared bool) string {
	if w.batch.ReturnAddress == nil {
		return w.batch.Sender
	}
	w.addressScratch = w.batch.ReturnAddress(w.addressScratch[:0], signedlink.BounceReturn, delivery, shared)
	return string(w.addressScratch)
}

// preparePersonalMailto sets the mailto of a delivery, if each delivery has its own.
func (w *MailWriter) preparePersonalMailto(r *Recipient) {
	if !w.hasPersonalMailto() {
		return
	}
	w.mailto = appendPersonalMailto(w.mailto[:0], w.batch.ReturnAddress, r.Delivery)
}

// hasPersonalMailto reports whether each delivery has its own mailto.
func (w *MailWriter) hasPersonalMailto() bool {
	return w.batch.ReturnAddress != nil && w.batch.PersonalMailto
}

// appendPersonalMailto appends the mailto of a delivery.
func appendPersonalMailto(dst []byte, returns func([]byte, byte, fanfare.DeliveryRef, bool) []byte, delivery fanfare.DeliveryRef) []byte {
	dst = append(dst, "<mailto:"...)
	dst = returns(dst, signedlink.UnsubscribeReturn, delivery, false)
	return append(dst, "?subject=unsubscribe>"...)
}

// appendUnsubscribe appends the headers of RFC 2369 and RFC 8058 with the link and the mailto,
// each of which may be empty.
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

func (w *MailWriter) appendParts(out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	w.dotLine = false
	if w.files != nil {
		return w.appendPartsWithFiles(w.files, out, r, vars)
	}
	multi := w.textPart != nil && w.htmlPart != nil
	if multi {
		out = append(out, "Content-Type: multipart/alternative;\r\n boundary=\""...)
		out = append(out, w.boundary...)
		out = append(out, "\"\r\n\r\n"...)
	}
	for _, p := range [2]*preparedPart{w.textPart, w.htmlPart} {
		if p == nil {
			continue
		}
		if err := w.renderPersonal(p, r, vars); err != nil {
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

// appendPartsWithFiles appends the parts of a message that ends with files.
func (w *MailWriter) appendPartsWithFiles(files *mime.EncodedFiles, out []byte, r *Recipient, vars map[string]any) ([]byte, error) {
	out = files.AppendOpening(out)
	for _, p := range [2]*preparedPart{w.textPart, w.htmlPart} {
		if p == nil {
			continue
		}
		if err := w.renderPersonal(p, r, vars); err != nil {
			return out, err
		}
		out = files.AppendPartOpening(out, p == w.htmlPart)
		out = w.appendPart(out, p)
	}
	return out, nil
}

// appendPart appends the part's headers and its body in the simplest encoding that can carry
// it.
func (w *MailWriter) appendPart(out []byte, p *preparedPart) []byte {
	if p.SevenBit() {
		start := len(out)
		out = append(out, p.headers[0]...)
		text := len(out)
		var dots bool
		out, dots = p.AppendPlain(out)
		w.dotLine = w.dotLine || dots
		if !bytes.Contains(out[text:], []byte("--=_")) {
			return out
		}
		out = out[:start]
	}
	w.dotLine = true // the starts of quoted-printable lines are not examined
	out = append(out, p.headers[1]...)
	out, w.lineScratch = p.AppendQuotedPrintable(out, w.lineScratch)
	return out
}
