package render

import (
	"encoding/binary"
	"maps"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// digestItems turns the items of a digest into the variables of templates.
type digestItems struct {
	digest       *Digest
	service      string
	localization *liquid.Localization
	usage        *liquid.Usage

	decoded map[uint32]map[string]any
	bytes   int // of decoded data
	key     []byte
}

// Limits of the caches of a digest, in bytes. A cache that reaches its limit is emptied.
const (
	maxDecodedBytes = 1 << 20 // of decoded items
	maxCachedBytes  = 1 << 20 // of the rendered texts of one slot
)

// eventVariables returns the variables of an item that are the same for all recipients.
func (it *digestItems) eventVariables(number uint32) (map[string]any, error) {
	if known, ok := it.decoded[number]; ok {
		return known, nil
	}
	item := it.digest.Item(number)
	vars, err := eventVariables(item.Event, item.Topic, it.service)
	if err != nil {
		return nil, err
	}
	if it.bytes += len(item.Event.Data); it.decoded == nil || it.bytes > maxDecodedBytes {
		it.decoded, it.bytes = map[uint32]map[string]any{}, len(item.Event.Data)
	}
	it.decoded[number] = vars
	return vars, nil
}

// variables returns the items of a recipient; all are the recipient's subscriptions, if the
// template reads the subscriptions of items.
func (it *digestItems) variables(of []RecipientItem, all []any) ([]any, error) {
	told := make([]any, len(of))
	for i := range of {
		vars, err := it.eventVariables(of[i].Number)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			vars = maps.Clone(vars)
			wanted := make([]any, 0, len(of[i].Subscriptions))
			for _, place := range of[i].Subscriptions {
				wanted = append(wanted, all[place])
			}
			vars["subscriptions"] = wanted
			if len(wanted) > 0 {
				vars["subscription"] = wanted[0]
			}
		}
		told[i] = vars
	}
	return told, nil
}

// append appends the text of a program that reads nothing of a recipient but the items, or
// their number.
func (it *digestItems) append(dst []byte, t *liquid.Program, reach liquid.Sharing, kept *textCache, of []RecipientItem, more int) ([]byte, error) {
	it.key = binary.AppendUvarint(it.key[:0], uint64(more))
	if reach == liquid.SharedByCount {
		it.key = binary.AppendUvarint(it.key, uint64(len(of)))
	} else {
		for i := range of {
			it.key = binary.AppendUvarint(it.key, uint64(of[i].Number))
		}
	}
	if text, ok := kept.get(it.key); ok {
		return append(dst, text...), nil
	}
	told, err := it.variables(of, nil)
	if err != nil {
		return dst, err
	}
	text, wrong := t.Render(map[string]any{
		"digest": it.digest.variables(it.service), "items": told, "count": len(of) + more, "more": more,
		liquid.LocalizationVariable: it.localization,
	}, it.usage)
	if wrong != nil {
		return dst, wrong
	}
	kept.put(it.key, text)
	return append(dst, text...), nil
}

// A textCache holds rendered texts by the items that they depend on.
type textCache struct {
	known map[string][]byte
	bytes int
}

func (t *textCache) get(key []byte) ([]byte, bool) {
	text, ok := t.known[string(key)]
	return text, ok
}

func (t *textCache) put(key, text []byte) {
	if t.bytes += len(key) + len(text); t.known == nil || t.bytes > maxCachedBytes {
		t.known, t.bytes = map[string][]byte{}, len(key)+len(text)
	}
	t.known[string(key)] = text
}

// A Digest is the content of one run: several events, of which each recipient gets a selection.
//
// Templates of digests have these variables instead of event and meta:
//
//	items   the events in the message, oldest first; each has event, meta,
//	        subscription and subscriptions (those of the recipient that matched it)
//	count   number of events, the omitted ones included
//	more    number of omitted events
//	digest  due (RFC 3339, in the time zone), cadence, time_zone, service
//
// The body of a loop over items is rendered once for all recipients of an item, if it reads
// nothing of the recipient.
type Digest struct {
	Due     time.Time
	Cadence string // such as daily 08:00
	Zone    *time.Location

	// Item returns an item by its number.
	Item func(number uint32) *Item
}

// An Item is an event of a digest.
type Item struct {
	Event *fanfare.Event
	Ref   fanfare.EventRef
	Topic string
}

// A RecipientItem is an item in the message of one recipient.
type RecipientItem struct {
	Number        uint32
	Subscriptions []uint32 // that matched it: indexes of the recipient's subscriptions, ascending
}

// due returns the time of the run as templates see it.
func (d *Digest) due() string { return d.Due.In(d.Zone).Format(time.RFC3339) }

// variables returns the variable digest.
func (d *Digest) variables(service string) map[string]any {
	return map[string]any{"due": d.due(), "cadence": d.Cadence, "time_zone": d.Zone.String(), "service": service}
}

// checkKind refuses a template for one event in a digest, and a template for digests elsewhere.
func (t *Template) checkKind(d *Digest) *fanfare.Error {
	event, several := t.firstReferences()
	switch {
	case d == nil && several != nil:
		return t.wrongKind(several, "this variable exists only in digests", "use event and meta, or use the template in a digest")
	case d != nil && event != nil:
		return t.wrongKind(event, "a digest has several events", "write {% for item in items %}, and use item.event and item.meta")
	}
	return nil
}

// A reference is a path and the part that reads it.
type reference struct {
	part *templatePart
	path liquid.Path
}

func (t *Template) wrongKind(u *reference, why, hint string) *fanfare.Error {
	err := invalid(u.path.Line, hint, "%s: %s", u.path.Text, why)
	return t.setPosition(u.part, err, u.path.Text)
}

// firstReferences finds the first use of a variable that only messages about one event have,
// and of a variable that only digests have.
func (t *Template) firstReferences() (event, several *reference) {
	for _, part := range t.allParts() {
		for _, p := range part.Paths {
			switch {
			case event == nil && (p.Root == "event" || p.Root == "meta" || p.Root == "sub" || p.Root == liquid.FieldsVariable):
				event = &reference{part, p}
			case several == nil && liquid.OnlyInDigests(p.Root):
				several = &reference{part, p}
			}
		}
	}
	return event, several
}

// Digest reports whether the template is for digests: it reads items, count, more or digest.
func (t *Template) Digest() bool {
	_, several := t.firstReferences()
	return several != nil
}
