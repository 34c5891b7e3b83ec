package render

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/mime"
)

// A rendering renders the parts of one template for one event, or for the events of a digest.
// Text that recipients share is rendered once.
type rendering struct {
	template     *Template
	localization *readerLocalization // nil: the template needs none
	shared       map[string]any      // variables that do not depend on the recipient
	items        digestItems         // of a digest
	usage        *liquid.Usage       // of the current part
	missing      *liquid.MissingVariables
	fields       map[string]any // of the event, by plain name; nil: not needed yet
	needs        needs
	url          []byte // the link of the current recipient
	preferences  []byte // the link to the current recipient's preferences
}

// messageContent is the content of a batch: an event or a digest.
type messageContent struct {
	event          *fanfare.Event
	digest         *Digest // instead of event
	topic, service string
}

func newRendering(t *Template, of messageContent, v *readerLocalization, absent *liquid.MissingVariables) (rendering, error) {
	w := rendering{template: t, localization: v, missing: absent, usage: new(liquid.Usage)}
	if wrong := t.checkKind(of.digest); wrong != nil {
		return w, wrong
	}
	if of.digest != nil {
		w.items = digestItems{digest: of.digest, service: of.service, usage: w.usage}
		w.shared = map[string]any{"digest": of.digest.variables(of.service)}
		return w, nil
	}
	var err error
	w.shared, err = eventVariables(of.event, of.topic, of.service)
	return w, err
}

// eventVariables returns the variables of an event.
func eventVariables(e *fanfare.Event, topic, service string) (map[string]any, error) {
	var data any
	if len(e.Data) > 0 {
		var err error
		if data, err = liquid.Decode(e.Data); err != nil {
			return nil, invalidValue("event", "the event's data is not valid JSON")
		}
	}
	return map[string]any{
		"event": data,
		"meta": map[string]any{
			"id": e.ID, "source": e.Source, "type": e.Type, "subject": e.Subject,
			"time": e.Time.Format(time.RFC3339Nano), "topic": topic, "service": service,
			"extensions": extensionValues(e.Extensions),
		},
	}, nil
}

// A preparedPart is a part with the text that all recipients share.
type preparedPart struct {
	part  *templatePart
	whole bool // rendered anew for each recipient
	slots []liquid.Slot
	mime.Body
	localization *liquid.Localization
	cache        []textCache // of each slot, for text that several recipients share; without slots, of the whole part
	headers      [2][]byte   // Content-Type and Content-Transfer-Encoding, for 7bit and for quoted-printable
}

// prepare renders the text of a part that all recipients share.
func (w *rendering) prepare(p *templatePart) (*preparedPart, *fanfare.Error) {
	prep := &preparedPart{part: p, whole: !p.Split}
	switch {
	case w.localization == nil:
	case p.owner != w.template: // a part of another variant is in the language of that variant
		prep.localization = &p.owner.localizationFor(w.localization.reader.locale, w.localization.reader.zone).Localization
	default:
		prep.localization = &w.localization.Localization
	}
	w.shared[liquid.LocalizationVariable] = prep.localization
	subtype := "plain"
	if p.Mode == liquid.HTML {
		subtype = "html"
	}
	for i, encoding := range []string{"7bit", "quoted-printable"} {
		prep.headers[i] = []byte("Content-Type: text/" + subtype + "; charset=utf-8\r\nContent-Transfer-Encoding: " + encoding + "\r\n\r\n")
	}
	if prep.whole {
		if p.Sharing == liquid.Personal || p.Sharing == liquid.SharedByAll {
			w.needs.add(p.Paths)
		}
		prep.SetShared([]mime.Chunk{mime.NewChunk(nil), mime.NewChunk(nil)})
		prep.cache = make([]textCache, 1)
		return prep, nil
	}
	prep.slots, prep.cache = p.Slots, make([]textCache, len(p.Slots))
	for _, piece := range p.Slots {
		if piece.Program != nil && piece.Sharing == liquid.Personal {
			w.needs.add(piece.Paths)
		}
	}
	texts, err := p.RenderShared(w.shared, &liquid.Usage{Missing: w.missing})
	if err != nil {
		return nil, err
	}
	chunks := make([]mime.Chunk, len(texts))
	for i, text := range texts {
		chunks[i] = mime.NewChunk(text)
	}
	prep.SetShared(chunks)
	return prep, nil
}

// renderPersonal renders the text of a part that is the recipient's own.
func (w *rendering) renderPersonal(p *preparedPart, r *Recipient, vars map[string]any) (err error) {
	p.Values, p.Ends = p.Values[:0], p.Ends[:0]
	*w.usage = liquid.Usage{Missing: w.missing} // of all slots together
	if p.localization != nil {
		w.items.localization = p.localization
		if vars != nil {
			vars[liquid.LocalizationVariable] = p.localization
		}
	}
	if p.whole {
		p.Values, err = w.renderSlot(p, 0, p.part.Whole, p.part.Sharing, r, vars)
		p.Ends = append(p.Ends, len(p.Values))
		return err
	}
	for i := range p.slots {
		piece := &p.slots[i]
		if piece.Field == nil {
			if p.Values, err = w.renderSlot(p, i, piece.Program, piece.Sharing, r, vars); err != nil {
				return err
			}
		} else {
			var ok bool
			if p.Values, ok = appendField(p.Values, piece.Field, r, w.url, p.part.Mode); !ok {
				if err := w.missing.Report(liquid.QuotePath(piece.Field.Name), true); err != nil {
					return w.withPosition(p, invalid(piece.Field.Line, "", "%s", err.Error()))
				}
			}
		}
		p.Ends = append(p.Ends, len(p.Values))
	}
	return nil
}

// renderSlot renders the program of a slot for r, or takes the text from the cache.
func (w *rendering) renderSlot(p *preparedPart, piece int, t *liquid.Program, reach liquid.Sharing, r *Recipient, vars map[string]any) (out []byte, err error) {
	out, kept := p.Values, &p.cache[piece]
	switch reach {
	case liquid.SharedPerItem:
		for i := 0; i < len(r.Items) && err == nil; i++ {
			out, err = w.items.append(out, t, reach, kept, r.Items[i:i+1], 0)
		}
	case liquid.SharedByItems, liquid.SharedByCount:
		out, err = w.items.append(out, t, reach, kept, r.Items, r.Omitted)
	default:
		text, wrong := t.Render(vars, w.usage)
		if wrong != nil {
			return out, w.withPosition(p, wrong)
		}
		out = append(out, text...)
	}
	if wrong, ours := errors.AsType[*fanfare.Error](err); ours && wrong.Pointer == "" {
		return out, w.withPosition(p, wrong)
	}
	return out, err
}

func (w *rendering) withPosition(p *preparedPart, err *fanfare.Error) error {
	return w.template.setRenderedPosition(p.part, err)
}

// needs tells what the programs that are rendered for each recipient read, so that nothing else
// is decoded.
type needs struct {
	any               bool // there are such programs
	attributes        bool
	data              bool // sub
	formatted         bool
	firstSubscription bool // subscription
	allSubscriptions  bool // subscriptions
	fields            bool // of the syntax of GOV.UK Notify
	items             bool
	itemSubscriptions bool // the subscriptions of items

	preferences bool // preferences_url
}

func (n *needs) add(paths []liquid.Path) {
	n.any = true
	for _, p := range paths {
		switch p.Root {
		case "subscriber":
			n.attributes = n.attributes || len(p.Steps) == 0 || p.Steps[0].Name == "attributes" || p.Steps[0].Name == ""
		case "sub":
			n.data = true
		case "formatted":
			n.formatted = true
		case "preferences_url":
			n.preferences = true
		case liquid.FieldsVariable:
			n.data, n.fields = true, true
		case "subscription":
			n.firstSubscription = true
		case "subscriptions":
			n.allSubscriptions = true
		case "items":
			n.items = true
			n.itemSubscriptions = n.itemSubscriptions || p.Sharing() == liquid.Personal
		}
	}
}

// variables returns the variables of a recipient.
func (w *rendering) variables(r *Recipient) (map[string]any, error) {
	subscriber := map[string]any{"id": r.ID, "address": r.Address, "locale": r.Locale, "time_zone": r.TimeZone}
	vars := map[string]any{"subscriber": subscriber, "unsubscribe_url": string(w.url), "preferences_url": string(w.preferences)}
	maps.Copy(vars, w.shared)
	if w.needs.attributes {
		if err := setJSON(subscriber, "attributes", r.Attributes); err != nil {
			return nil, err
		}
	}
	if w.needs.data {
		if err := setJSON(vars, "sub", r.Data); err != nil {
			return nil, err
		}
	}
	if w.needs.formatted {
		if err := setJSON(vars, "formatted", r.Formatted); err != nil {
			return nil, err
		}
	}
	if w.needs.fields {
		if w.fields == nil {
			w.fields = liquid.PlainNames(vars["event"])
		}
		vars[liquid.FieldsVariable] = liquid.NewFields(liquid.PlainNames(vars["sub"]), w.fields, string(w.url))
	}
	n := 0
	if w.needs.allSubscriptions || w.needs.itemSubscriptions {
		n = len(r.Subscriptions)
	} else if w.needs.firstSubscription {
		n = min(1, len(r.Subscriptions))
	}
	all := make([]any, n)
	for i, s := range r.Subscriptions[:n] {
		one := map[string]any{"id": s.ID, "rule": s.Rule, "title": s.Title, "description": s.Description}
		if err := setJSON(one, "params", s.Params); err != nil {
			return nil, err
		}
		if err := setJSON(one, "data", s.Data); err != nil {
			return nil, err
		}
		all[i] = one
	}
	vars["subscriptions"] = all
	if n > 0 {
		vars["subscription"] = all[0]
	}
	if w.items.digest == nil {
		return vars, nil
	}
	vars["count"], vars["more"] = r.count(), r.Omitted
	if w.needs.items {
		told, err := w.items.variables(r.Items, all)
		if err != nil {
			return nil, err
		}
		vars["items"] = told
	}
	return vars, nil
}

// setJSON sets a variable from JSON. Without JSON the variable is missing, not null.
func setJSON(in map[string]any, name string, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	value, err := liquid.Decode(raw)
	if err != nil {
		return invalidValue(name, "is not valid JSON")
	}
	in[name] = value
	return nil
}

// invalidValue is the error about a value of a message; name becomes its pointer.
func invalidValue(name, format string, args ...any) *fanfare.Error {
	err := invalid(0, "", format, args...)
	err.Pointer = "/" + name
	return err
}

// extensionValues returns the extension attributes of an event.
func extensionValues(of map[string]json.RawMessage) map[string]any {
	values := make(map[string]any, len(of))
	for name, raw := range of {
		if v, err := liquid.Decode(raw); err == nil { // intake accepts JSON only
			values[name] = v
		}
	}
	return values
}

// appendField appends the text of a field, or reports false if it is missing.
func appendField(dst []byte, f *liquid.Field, r *Recipient, url []byte, m liquid.Mode) ([]byte, bool) {
	if f.Raw {
		m = liquid.Plain
	}
	out, empty, ok := readField(dst, f, r, url, m)
	if f.Fallback != nil && (empty || !ok) {
		return liquid.AppendValue(dst, f.Fallback, m), true
	}
	return out, ok
}

// readField appends the text of a field. empty tells that the filter default would replace the
// value, ok that the value exists.
func readField(dst []byte, f *liquid.Field, r *Recipient, url []byte, m liquid.Mode) (out []byte, empty, ok bool) {
	var raw json.RawMessage
	switch f.Source {
	case liquid.SubscriberID:
		return liquid.AppendText(dst, r.ID, m), r.ID == "", true
	case liquid.SubscriberAddress:
		return liquid.AppendText(dst, r.Address, m), r.Address == "", true
	case liquid.SubscriberLocale:
		return liquid.AppendText(dst, r.Locale, m), r.Locale == "", true
	case liquid.SubscriberTimeZone:
		return liquid.AppendText(dst, r.TimeZone, m), r.TimeZone == "", true
	case liquid.UnsubscribeURL:
		return liquid.AppendText(dst, url, m), len(url) == 0, true
	case liquid.ItemCount:
		return strconv.AppendInt(dst, int64(r.count()), 10), false, true
	case liquid.OmittedCount:
		return strconv.AppendInt(dst, int64(r.Omitted), 10), false, true
	case liquid.ShownCount:
		return strconv.AppendInt(dst, int64(len(r.Items)), 10), false, true
	case liquid.SubscriberAttributes:
		raw = r.Attributes
	case liquid.RecipientData:
		raw = r.Data
	case liquid.FormattedMessage:
		raw = r.Formatted
	default:
		if len(r.Subscriptions) == 0 {
			return dst, false, false
		}
		s := &r.Subscriptions[0]
		switch f.Source {
		case liquid.SubscriptionID:
			return liquid.AppendText(dst, s.ID, m), s.ID == "", true
		case liquid.SubscriptionRule:
			return liquid.AppendText(dst, s.Rule, m), s.Rule == "", true
		case liquid.SubscriptionTitle:
			return liquid.AppendText(dst, s.Title, m), s.Title == "", true
		case liquid.SubscriptionDescription:
			return liquid.AppendText(dst, s.Description, m), s.Description == "", true
		case liquid.SubscriptionParams:
			raw = s.Params
		default:
			raw = s.Data
		}
	}
	if len(raw) == 0 {
		return dst, false, false
	}
	if found, ok := liquid.FindJSON(raw, f.Path); ok {
		if out, ok := liquid.AppendJSON(dst, found, m); ok {
			return out, liquid.IsEmptyJSON(found), true
		}
	}
	value, err := liquid.Decode(raw)
	if err != nil {
		return dst, false, false
	}
	if value, ok = liquid.Lookup(value, f.Steps); !ok {
		return dst, false, false
	}
	return liquid.AppendValue(dst, value, m), liquid.IsEmpty(value), true
}

// TextMember returns the string that a member of a JSON object contains, or "".
func TextMember(object []byte, name string) string {
	found, ok := liquid.FindJSON(object, []string{name})
	if ok && len(found) > 1 && found[0] == '"' {
		return string(found[1 : len(found)-1])
	}
	return ""
}
