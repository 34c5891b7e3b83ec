package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// A WebhookBatch holds all that is the same for every receiver of a batch to webhooks. Each
// receiver gets a JSON document, with the outer members that Standard Webhooks recommends:
//
//	{
//	  "type": "price",                            of the event
//	  "timestamp": "2026-11-20T08:15:00Z",        time of the event
//	  "data": {
//	    "event": {"specversion": "1.0", ...},     the event as a CloudEvent 1.0.2
//	    "service": "stocks", "topic": "prices",
//	    "ref": "evt-20777-64",                    its id in traces
//	    "subscriber": {"id": "reader-7"},
//	    "subscriptions": [{"id": "sub-1", "rule": "above", "params": {...}, "data": {...}}],
//	    "recipient": {...},                       of a direct send: the recipient's own data
//	    "message": {"subject": "...", "text": "...", "html": "..."}   of a direct send
//	  }
//	}
//
// The type of a digest is "digest", its timestamp is the time when it was due, and instead
// of event and topic it has
//
//	"digest": {"due": "2026-11-20T08:00:00Z", "cadence": "daily 08:00", "time_zone": "Europe/London"},
//	"count": 7, "more": 5,
//	"items": [{"event": {"specversion": "1.0", ...}, "topic": "prices", "ref": "evt-20777-64", "subscriptions": ["sub-1"]}, ...],
//
// A text message to a phone number has a document of its own:
//
//	{"id": "dlv-20261120-40041-17", "to": "+447700900123", "text": "...", "from": "...", "reference": "..."}
//
// If the template has JSON, the rendered JSON is the document.
type WebhookBatch struct {
	Template      *Template             // nil: none
	OnMissing     func(variable string) // as in MailBatch
	RefuseMissing bool
	Direct        bool   // a direct send: the document has what the template renders
	Texts         bool   // the recipients have phone numbers; the template has a text
	Reference     string // of a direct send, for Texts
	From, Prefix  string // of Texts: name or number of the sender, and what precedes the text; may be empty
	Event         *fanfare.Event
	Digest        *Digest // instead of Event, which is then nil
	EventRef      fanfare.EventRef
	Topic         string
	Service       string
}

// A WebhookWriter writes the documents of one batch. It belongs to one goroutine.
type WebhookWriter struct {
	rendering
	byLocalization *writersByLocalization[*WebhookWriter] // if set, nothing else is

	texts                   bool          // as in the batch
	sms                     *preparedPart // of Texts, instead of head
	reference, from, prefix string

	head     []byte         // the document up to the subscriber's id
	document *preparedPart  // the template's JSON, instead of head
	events   *itemDocuments // of a digest
	message  []messagePart
	text     []byte
}

// A messagePart is a part that becomes a member of "message".
type messagePart struct {
	name string
	*preparedPart
}

// Writer prepares the batch.
func (p WebhookBatch) Writer() (*WebhookWriter, error) {
	if p.Template == nil || p.Template.needsNoLocalization() {
		return p.writer(p.Template, nil)
	}
	return &WebhookWriter{byLocalization: newWritersByLocalization(p.Template, p.writer)}, nil
}

// writer prepares the batch for recipients with the same localization.
func (p WebhookBatch) writer(t *Template, v *readerLocalization) (*WebhookWriter, error) {
	w := &WebhookWriter{texts: p.Texts, reference: p.Reference, from: p.From, prefix: p.Prefix}
	if p.Texts && (t == nil || t.json == nil && t.text == nil) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the message has no text, and cannot be sent by SMS", Hint: "set a template with a text"}
	}
	if t != nil && (t.json != nil || p.Direct || p.Texts) {
		var err error
		if w.rendering, err = newRendering(t, messageContent{p.Event, p.Digest, p.Topic, p.Service}, v, t.missingVariables(p.OnMissing, p.RefuseMissing)); err != nil {
			return nil, err
		}
		for _, part := range t.parts() {
			if (part == t.json) != (t.json != nil) || p.Texts && part != t.text && part != t.json {
				continue
			}
			prep, err := w.prepare(part)
			if err != nil {
				return nil, t.setRenderedPosition(part, err)
			}
			if part == t.json {
				w.document = prep
				return w, nil
			}
			if p.Texts {
				w.sms = prep
				return w, nil
			}
			w.message = append(w.message, messagePart{part.Name, prep})
		}
	}
	b, err := w.appendHead(&p)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"service":`...)
	b = appendString(b, p.Service)
	if p.Topic != "" {
		b = append(b, `,"topic":`...)
		b = appendString(b, p.Topic)
	}
	b = append(b, `,"ref":`...)
	b = appendString(b, p.EventRef.String())
	b = append(b, `,"subscriber":{"id":`...)
	w.head = b
	return w, nil
}

// appendHead begins the document: its type, and the event or the digest.
func (w *WebhookWriter) appendHead(p *WebhookBatch) (b []byte, err error) {
	if p.Digest != nil {
		w.events = newItemDocuments(p.Digest)
		b = append(b, `{"type":"digest","timestamp":`...)
		b = appendTime(b, p.Digest.Due)
		return appendDigest(append(b, `,"data":{"digest":`...), p.Digest), nil
	}
	b = appendString(append(b, `{"type":`...), p.Event.Type)
	b = append(b, `,"timestamp":`...)
	b = appendTime(b, p.Event.Time)
	return appendCloudEvent(append(b, `,"data":{"event":`...), p.Event)
}

// Write appends the document for r to dst and returns the message, whose body is the appended
// slice, and the longer dst.
func (w *WebhookWriter) Write(dst []byte, r *Recipient) (driver.Message, []byte, error) {
	if w.byLocalization != nil {
		one, err := w.byLocalization.of(r)
		if err != nil {
			return driver.Message{}, dst, err
		}
		return one.Write(dst, r)
	}
	start := len(dst)
	parse := address.ParseURL
	if w.texts {
		parse = address.ParsePhone
	}
	to, err := parse(r.Address)
	if err != nil {
		return driver.Message{}, dst, invalidValue("to", "%s", err.Error())
	}
	var vars map[string]any
	if w.needs.any {
		if vars, err = w.variables(r); err != nil {
			return driver.Message{}, dst, err
		}
	}
	message := func(b []byte) (driver.Message, []byte, error) {
		return driver.Message{Delivery: r.Delivery, To: to, Body: b[start:len(b):len(b)]}, b, nil
	}
	if w.document != nil {
		if err := w.renderPersonal(w.document, r, vars); err != nil {
			return driver.Message{}, dst, err
		}
		b := w.document.AppendText(dst)
		if !json.Valid(b[start:]) {
			return driver.Message{}, dst, w.template.setRenderedPosition(w.document.part, notJSON())
		}
		return message(b)
	}
	if w.sms != nil {
		if err := w.renderPersonal(w.sms, r, vars); err != nil {
			return driver.Message{}, dst, err
		}
		w.text = w.sms.AppendText(w.text[:0])
		b := appendString(append(dst, `{"id":`...), r.Delivery.String())
		b = appendString(append(b, `,"to":`...), to)
		b = liquid.AppendText(append(b, `,"text":"`...), w.prefix, liquid.JSON)
		b = append(liquid.AppendText(b, bytes.TrimSpace(w.text), liquid.JSON), '"')
		if w.from != "" {
			b = appendString(append(b, `,"from":`...), w.from)
		}
		if w.reference != "" {
			b = appendString(append(b, `,"reference":`...), w.reference)
		}
		return message(append(b, '}'))
	}
	b := append(dst, w.head...)
	b = appendString(b, r.ID)
	b = append(b, `},"subscriptions":[`...)
	for i := range r.Subscriptions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSubscription(b, &r.Subscriptions[i])
	}
	b = append(b, ']')
	if w.events != nil {
		if b, err = w.events.append(b, r); err != nil {
			return driver.Message{}, dst, err
		}
	}
	if len(r.Data) > 0 {
		b = append(b, `,"recipient":`...)
		b = append(b, r.Data...)
	}
	for i, part := range w.message {
		if err := w.renderPersonal(part.preparedPart, r, vars); err != nil {
			return driver.Message{}, dst, err
		}
		b = append(b, [...]string{`,"message":{`, `,`}[min(i, 1)]...)
		b = append(appendString(b, part.name), ':')
		w.text = part.AppendText(w.text[:0])
		b = append(liquid.AppendText(append(b, '"'), w.text, liquid.JSON), '"')
	}
	if len(w.message) > 0 {
		b = append(b, '}')
	}
	return message(append(b, "}}"...))
}

// notJSON is the error of a JSON part that does not render to JSON.
func notJSON() *fanfare.Error {
	return invalid(0, "write values as {{ event.title }} between quotes, or as {{ event | json }} without quotes", "the rendered json is not valid JSON")
}

func appendSubscription(b []byte, s *Subscription) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, s.ID)
	if s.Rule != "" {
		b = append(b, `,"rule":`...)
		b = appendString(b, s.Rule)
	}
	if len(s.Params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, s.Params...)
	}
	if len(s.Data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, s.Data...)
	}
	return append(b, '}')
}

// appendCloudEvent appends an event in the JSON format of CloudEvents 1.0.2.
func appendCloudEvent(b []byte, e *fanfare.Event) ([]byte, error) {
	b = append(b, `{"specversion":"1.0"`...)
	for _, attribute := range []struct{ name, value string }{
		{"id", e.ID}, {"source", e.Source}, {"type", e.Type}, {"subject", e.Subject},
		{"datacontenttype", e.ContentType}, {"dataschema", e.DataSchema},
	} {
		if attribute.value != "" {
			b = append(b, `,"`+attribute.name+`":`...)
			b = appendString(b, attribute.value)
		}
	}
	b = append(b, `,"time":`...)
	b = appendTime(b, e.Time)
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		b = append(b, ',')
		b = appendString(b, name)
		b = append(b, ':')
		b = append(b, e.Extensions[name]...)
	}
	switch {
	case len(e.Binary) > 0:
		b = append(b, `,"data_base64":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, e.Binary), '"')
	case len(e.Data) > 0:
		if !json.Valid(e.Data) {
			return nil, invalidValue("event", "the event's data is not valid JSON")
		}
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, '}'), nil
}

func appendTime(b []byte, t time.Time) []byte {
	b = t.AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	return append(liquid.AppendText(append(b, '"'), s, liquid.JSON), '"')
}

// itemDocuments writes the items of a digest and caches them.
type itemDocuments struct {
	digest *Digest
	cache  textCache
	key    []byte
}

func newItemDocuments(d *Digest) *itemDocuments { return &itemDocuments{digest: d} }

// appendDigest appends what all receivers of a digest share.
func appendDigest(b []byte, d *Digest) []byte {
	b = d.Due.In(d.Zone).AppendFormat(append(b, `{"due":"`...), time.RFC3339)
	b = appendString(append(b, `","cadence":`...), d.Cadence)
	b = appendString(append(b, `,"time_zone":`...), d.Zone.String())
	return append(b, '}')
}

// append appends the items of a receiver.
func (t *itemDocuments) append(b []byte, r *Recipient) ([]byte, error) {
	b = strconv.AppendInt(append(b, `,"count":`...), int64(r.count()), 10)
	b = strconv.AppendInt(append(b, `,"more":`...), int64(r.Omitted), 10)
	b = append(b, `,"items":[`...)
	for i := range r.Items {
		if i > 0 {
			b = append(b, ',')
		}
		item := &r.Items[i]
		text, err := t.document(item.Number)
		if err != nil {
			return b, err
		}
		b = append(append(b, text...), `,"subscriptions":[`...)
		for j, place := range item.Subscriptions {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendString(b, r.Subscriptions[place].ID)
		}
		b = append(b, "]}"...)
	}
	return append(b, ']'), nil
}

// document returns an item without the ids of the subscriptions.
func (t *itemDocuments) document(number uint32) ([]byte, error) {
	t.key = strconv.AppendUint(t.key[:0], uint64(number), 10)
	if text, ok := t.cache.get(t.key); ok {
		return text, nil
	}
	item := t.digest.Item(number)
	text, err := appendCloudEvent([]byte(`{"event":`), item.Event)
	if err != nil {
		return nil, err
	}
	text = appendString(append(text, `,"topic":`...), item.Topic)
	text = appendString(append(text, `,"ref":`...), item.Ref.String())
	t.cache.put(t.key, text)
	return text, nil
}
