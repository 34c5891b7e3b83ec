package format

import (
	"encoding/json"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Mailing is all that is the same for every recipient of a batch.
type Mailing struct {
	Template *Template
	From     mail.Address // the header From
	ReplyTo  string       // an address, with or without a display name, or ""
	Sender   string       // the envelope sender; "" is the null sender
	Domain   string       // the right side of Message-ID

	Event    *fanfare.Event
	EventRef fanfare.EventRef
	Topic    string
	Service  string

	ListID            string                                // RFC 2919, without angle brackets, or ""
	Unsubscribe       func(dst []byte, r *Recipient) []byte // appends the signed https link; nil for none
	UnsubscribeMailto string                                // an address that takes unsubscribe mails, or ""
}

// A Recipient is what differs.
type Recipient struct {
	Delivery      fanfare.DeliveryRef
	Address       string
	ID            string
	Locale        string
	TimeZone      string
	Attributes    json.RawMessage // of the subscriber; valid JSON or nil
	Data          json.RawMessage // of a direct send: what only this recipient's message sees; valid JSON or nil
	Subscriptions []Subscription  // all that matched, the one that picked the template first; none of a direct send
	Date          time.Time       // of the first attempt, so that a later one has the same bytes
}

// A Subscription is one that matched.
type Subscription struct {
	Place  fanfare.Place // for the link; not visible to templates
	ID     string
	Rule   string          // "" for one with its own filter
	Params json.RawMessage // valid JSON or nil
	Data   json.RawMessage // valid JSON or nil
}

// A Writer writes the messages of one mailing. It is not safe for concurrent
// use; make one for each goroutine.
type Writer struct {
	mailing     Mailing
	utf8        bool   // a header that all share needs SMTPUTF8
	head        []byte // From, Reply-To
	subject     []byte // the whole Subject line, if it is the same for all
	list        []byte // List-Id
	mailto      []byte // what follows the link in List-Unsubscribe
	tail        []byte // Auto-Submitted to MIME-Version
	boundary    string // of multipart/alternative
	shared      map[string]any
	subjectPart *prepared
	textPart    *prepared // nil if the template has none
	htmlPart    *prepared
	needs       needs

	second  int64 // that date is of
	date    []byte
	url     []byte
	cleaned []byte
	line    []byte
}

// A prepared part is a part with all done that does not need the recipient.
type prepared struct {
	part   *part
	whole  bool // rendered anew for each recipient
	pieces []piece
	body
	headers [2][]byte // Content-Type and Content-Transfer-Encoding: as it is, quoted-printable
}

// Writer prepares the mailing: it decodes the event, renders what all recipients
// share and checks the header values. An error about a header value has the
// pointer /from, /reply_to, /sender, /domain, /list_id or /unsubscribe_mailto;
// one about the template has its pointer and line.
func (m Mailing) Writer() (*Writer, error) {
	w := &Writer{mailing: m, second: -1 << 62}
	if err := w.prepareHeaders(); err != nil {
		return nil, err
	}
	var event any
	if len(m.Event.Data) > 0 {
		var err error
		if event, err = decode(m.Event.Data); err != nil {
			return nil, refused("event", "the event's data is not valid JSON")
		}
	}
	w.shared = map[string]any{
		"event": event,
		"meta": map[string]any{
			"id": m.Event.ID, "source": m.Event.Source, "type": m.Event.Type, "subject": m.Event.Subject,
			"time": m.Event.Time.Format(time.RFC3339Nano), "topic": m.Topic, "service": m.Service,
			"extensions": extensions(m.Event.Extensions),
		},
	}
	t := m.Template
	for _, slot := range []struct {
		part *part
		into **prepared
	}{{t.subject, &w.subjectPart}, {t.text, &w.textPart}, {t.html, &w.htmlPart}} {
		if slot.part == nil {
			continue
		}
		p, err := w.prepare(slot.part)
		if err != nil {
			return nil, t.at(slot.part, err)
		}
		*slot.into = p
	}
	if s := w.subjectPart; !s.whole && len(s.pieces) == 0 {
		w.subject = appendSubject(nil, cleanSubject(append([]byte(nil), s.chunks[0].text...)))
	}
	return w, nil
}

// prepare renders what the recipients share of a part.
func (w *Writer) prepare(p *part) (*prepared, *fanfare.Error) {
	prep := &prepared{part: p, whole: !p.split}
	subtype := "plain"
	if p.mode == markup {
		subtype = "html"
	}
	for i, encoding := range []string{"7bit", "quoted-printable"} {
		prep.headers[i] = []byte("Content-Type: text/" + subtype + "; charset=utf-8\r\nContent-Transfer-Encoding: " + encoding + "\r\n\r\n")
	}
	if prep.whole {
		w.needs.add(p.paths)
		prep.chunks = []chunk{newChunk(nil), newChunk(nil)}
		return prep, nil
	}
	text, err := render(p.shared, w.shared)
	if err != nil {
		return nil, err
	}
	prep.pieces = p.pieces
	rest := string(text)
	for i, piece := range p.pieces {
		if piece.template != nil {
			w.needs.add(piece.paths)
		}
		before, after, _ := strings.Cut(rest, slotMark+strconv.Itoa(i)+slotMark)
		prep.chunks = append(prep.chunks, newChunk([]byte(before)))
		rest = after
	}
	prep.chunks = append(prep.chunks, newChunk([]byte(rest)))
	return prep, nil
}

func (w *Writer) prepareHeaders() error {
	m := &w.mailing
	var err error
	if w.head, w.utf8, err = appendMailbox(nil, "From", "from", m.From); err != nil {
		return err
	}
	if m.ReplyTo != "" {
		a, err := mail.ParseAddress(m.ReplyTo)
		if err != nil {
			return refused("reply_to", "%q is not a mail address", m.ReplyTo)
		}
		var unicode bool
		if w.head, unicode, err = appendMailbox(w.head, "Reply-To", "reply_to", *a); err != nil {
			return err
		}
		w.utf8 = w.utf8 || unicode
	}
	if m.Sender != "" {
		normal, err := ParseAddress(m.Sender)
		if err != nil {
			return refused("sender", "%s", err.Error())
		}
		var unicode bool
		if m.Sender, unicode, err = route(normal); err != nil {
			return refused("sender", "%s", err.Error())
		}
		w.utf8 = w.utf8 || unicode
	}
	if err := hostName(m.Domain, "domain"); err != nil {
		return err
	}
	if m.ListID != "" {
		if err := hostName(m.ListID, "list_id"); err != nil {
			return err
		}
		w.list = []byte("List-Id: <" + m.ListID + ">\r\n")
	}
	if m.UnsubscribeMailto != "" {
		address, err := ParseAddress(m.UnsubscribeMailto)
		if err != nil {
			return refused("unsubscribe_mailto", "%s", err.Error())
		}
		w.mailto = []byte("<mailto:" + address + ">")
		if err := headerURL(w.mailto[1:len(w.mailto)-1], "unsubscribe_mailto"); err != nil {
			return err
		}
	}
	ref := m.EventRef.String()
	w.tail = []byte("Auto-Submitted: auto-generated\r\nX-Fanfare-Event: " + ref + "\r\nMIME-Version: 1.0\r\n")
	// "=_" cannot occur in quoted-printable text; a part that has it is not sent
	// in another encoding.
	w.boundary = "=_" + ref
	return nil
}
