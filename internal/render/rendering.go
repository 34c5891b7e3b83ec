package render

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/osteele/liquid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/mime"
)

// A rendering is how the parts of one template become the text of one event, or of
// the events of a digest, for many recipients: what they share is rendered once.
type rendering struct {
	template    *Template
	voice       *voice         // nil: it needs none
	shared      map[string]any // what templates see beside the recipient
	items       items          // of a digest
	effort      *effort        // of the part at hand
	absent      *absences
	fields      map[string]any // of the event, by plainName; nil: not needed yet
	needs       needs
	url         []byte // the link of the recipient at hand
	preferences []byte // the link to them
}

// about is what messages tell of.
type about struct {
	event          *fanfare.Event
	digest         *Digest // instead
	topic, service string
}

func newRendering(t *Template, of about, v *voice, absent *absences) (rendering, error) {
	w := rendering{template: t, voice: v, absent: absent, effort: new(effort)}
	if wrong := t.checkKind(of.digest); wrong != nil {
		return w, wrong
	}
	if of.digest != nil {
		w.items = items{digest: of.digest, service: of.service, effort: w.effort}
		w.shared = map[string]any{"digest": of.digest.variables(of.service)}
		return w, nil
	}
	var err error
	w.shared, err = eventVariables(of.event, of.topic, of.service)
	return w, err
}

// eventVariables are what templates see of an event.
func eventVariables(e *fanfare.Event, topic, service string) (map[string]any, error) {
	var data any
	if len(e.Data) > 0 {
		var err error
		if data, err = decode(e.Data); err != nil {
			return nil, invalidValue("event", "the event's data is not valid JSON")
		}
	}
	return map[string]any{
		"event": data,
		"meta": map[string]any{
			"id": e.ID, "source": e.Source, "type": e.Type, "subject": e.Subject,
			"time": e.Time.Format(time.RFC3339Nano), "topic": topic, "service": service,
			"extensions": extensions(e.Extensions),
		},
	}, nil
}

// A prepared part is a part with all done that does not need the recipient.
type prepared struct {
	part   *part
	whole  bool // rendered anew for each recipient
	pieces []piece
	mime.Body
	voice   *voice
	kept    []texts   // of pieces that several recipients have; of the whole if there are none
	headers [2][]byte // Content-Type and Content-Transfer-Encoding: as it is, quoted-printable
}

// prepare renders what the recipients share of a part.
func (w *rendering) prepare(p *part) (*prepared, *fanfare.Error) {
	prep := &prepared{part: p, whole: !p.split, voice: w.voice}
	if w.voice != nil && p.owner != w.template { // it is in the language of who says it
		prep.voice = p.owner.voiceFor(w.voice.hearer.locale, w.voice.hearer.zone)
	}
	w.shared[voiceVariable] = prep.voice
	subtype := "plain"
	if p.mode == markup {
		subtype = "html"
	}
	for i, encoding := range []string{"7bit", "quoted-printable"} {
		prep.headers[i] = []byte("Content-Type: text/" + subtype + "; charset=utf-8\r\nContent-Transfer-Encoding: " + encoding + "\r\n\r\n")
	}
	if prep.whole {
		if p.reach == ofRecipient || p.reach == ofAll {
			w.needs.add(p.paths)
		}
		prep.SetShared([]mime.Chunk{mime.NewChunk(nil), mime.NewChunk(nil)})
		prep.kept = make([]texts, 1)
		return prep, nil
	}
	prep.pieces, prep.kept = p.pieces, make([]texts, len(p.pieces))
	for _, piece := range p.pieces {
		if piece.template != nil && piece.reach == ofRecipient {
			w.needs.add(piece.paths)
		}
	}
	if p.outline != nil {
		if chunks := p.outline.chunks(w.shared, p.mode, w.absent); chunks != nil {
			prep.SetShared(chunks)
			return prep, nil
		}
	}
	text, err := render(p.shared, w.shared, &effort{absent: w.absent})
	if err != nil {
		return nil, err
	}
	rest := string(text)
	var chunks []mime.Chunk
	for i := range p.pieces {
		before, after, _ := strings.Cut(rest, slotMark+strconv.Itoa(i)+slotMark)
		chunks = append(chunks, mime.NewChunk([]byte(before)))
		rest = after
	}
	prep.SetShared(append(chunks, mime.NewChunk([]byte(rest))))
	return prep, nil
}

// fill renders what is the recipient's own of a part.
func (w *rendering) fill(p *prepared, r *Recipient, vars map[string]any) (err error) {
	p.Values, p.Ends = p.Values[:0], p.Ends[:0]
	*w.effort = effort{absent: w.absent} // of all pieces together
	if p.voice != nil {
		w.items.voice = p.voice
		if vars != nil {
			vars[voiceVariable] = p.voice
		}
	}
	if p.whole {
		p.Values, err = w.append(p, 0, p.part.whole, p.part.reach, r, vars)
		p.Ends = append(p.Ends, len(p.Values))
		return err
	}
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.field == nil {
			if p.Values, err = w.append(p, i, piece.template, piece.reach, r, vars); err != nil {
				return err
			}
		} else {
			var ok bool
			if p.Values, ok = piece.field.append(p.Values, r, w.url, p.part.mode); !ok {
				if err := w.absent.lacks(spelled(piece.field.name), true); err != nil {
					return w.named(p, invalid(piece.field.line, "", "%s", err.Error()))
				}
			}
		}
		p.Ends = append(p.Ends, len(p.Values))
	}
	return nil
}

// append renders the template of a part's piece for r, unless its text is known from
// another recipient who has the same.
func (w *rendering) append(p *prepared, piece int, t *liquid.Template, reach reach, r *Recipient, vars map[string]any) (out []byte, err error) {
	out, kept := p.Values, &p.kept[piece]
	switch reach {
	case ofItem:
		for i := 0; i < len(r.Items) && err == nil; i++ {
			out, err = w.items.append(out, t, reach, kept, r.Items[i:i+1], 0)
		}
	case ofList, ofTally:
		out, err = w.items.append(out, t, reach, kept, r.Items, r.More)
	default:
		text, wrong := render(t, vars, w.effort)
		if wrong != nil {
			return out, w.named(p, wrong)
		}
		out = append(out, text...)
	}
	if wrong, ours := errors.AsType[*fanfare.Error](err); ours && wrong.Pointer == "" {
		return out, w.named(p, wrong)
	}
	return out, err
}

func (w *rendering) named(p *prepared, err *fanfare.Error) error {
	return w.template.rendered(p.part, err)
}

// needs says what of a recipient the templates rendered for each one read, so
// that nothing else is decoded.
type needs struct {
	any        bool // there are such templates
	attributes bool
	data       bool // sub
	first      bool // subscription
	all        bool // subscriptions
	fields     bool // of the syntax of Notify
	items      bool
	wanted     bool // the subscriptions of items

	preferences bool // the link to them
}

func (n *needs) add(paths []path) {
	n.any = true
	for _, p := range paths {
		switch p.root {
		case "subscriber":
			n.attributes = n.attributes || len(p.segments) == 0 || p.segments[0].name == "attributes" || p.segments[0].name == ""
		case "sub":
			n.data = true
		case "preferences_url":
			n.preferences = true
		case fieldsVariable:
			n.data, n.fields = true, true
		case "subscription":
			n.first = true
		case "subscriptions":
			n.all = true
		case "items":
			n.items = true
			n.wanted = n.wanted || p.reach() == ofRecipient
		}
	}
}

// variables makes what Liquid sees of a recipient.
func (w *rendering) variables(r *Recipient) (map[string]any, error) {
	subscriber := map[string]any{"id": r.ID, "address": r.Address, "locale": r.Locale, "time_zone": r.TimeZone}
	vars := map[string]any{"subscriber": subscriber, "unsubscribe_url": string(w.url), "preferences_url": string(w.preferences)}
	maps.Copy(vars, w.shared)
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
	if w.needs.fields {
		if w.fields == nil {
			w.fields = plainNames(vars["event"])
		}
		vars[fieldsVariable] = newFields(plainNames(vars["sub"]), w.fields, string(w.url))
	}
	n := 0
	if w.needs.all || w.needs.wanted {
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
	if w.items.digest == nil {
		return vars, nil
	}
	vars["count"], vars["more"] = r.count(), r.More
	if w.needs.items {
		told, err := w.items.variables(r.Items, all)
		if err != nil {
			return nil, err
		}
		vars["items"] = told
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
		return invalidValue(name, "is not valid JSON")
	}
	in[name] = value
	return nil
}

// invalidValue is the error about a value that a message is made of; name names it.
func invalidValue(name, format string, args ...any) *fanfare.Error {
	err := invalid(0, "", format, args...)
	err.Pointer = "/" + name
	return err
}
