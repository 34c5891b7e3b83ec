package render

import (
	"encoding/binary"
	"maps"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// digestItems are what the messages of a digest tell of, as templates see them.
type digestItems struct {
	digest       *Digest
	service      string
	localization *liquid.Localization
	usage        *liquid.Usage

	decoded map[uint32]map[string]any
	bytes   int // of data that was decoded
	key     []byte
}

// Limits of what is kept of a digest for the next recipients, in bytes. Beyond
// them what is kept is forgotten, and made again where it is needed.
const (
	maxDecodedBytes = 1 << 20 // data of items that are at hand as variables
	maxCachedBytes  = 1 << 20 // text of one piece
)

// eventVariables returns what templates see of an item whoever is told of it.
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

// variables are the items of a recipient; all are his subscriptions, where the
// template asks whose they were.
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

// append appends what a template says to whoever has these items, or as many; it
// reads nothing else of a recipient.
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

// textCache are what was rendered already, by the items that it tells of.
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

// A Digest is what the messages of one run tell of: several events, and of each
// recipient a choice of them.
//
// Templates of digests see instead of event and meta
//
//	items   those that the message tells of, oldest first; each has event, meta,
//	        subscription and subscriptions (those of the recipient that wanted it)
//	count   how many there were, also those that are left out
//	more    how many of them are left out
//	digest  due (RFC 3339, on the clock of the time zone), cadence, time_zone, service
//
// What a template says of an item, in a loop over items, is rendered once for all
// recipients who are told of it, as long as it reads nothing of theirs.
type Digest struct {
	Due     time.Time
	Cadence string // such as daily 08:00
	Zone    *time.Location

	// Item returns one of those that recipients name; all of these are at hand.
	Item func(number uint32) *Item
}

// An Item is an event that a digest tells of.
type Item struct {
	Event *fanfare.Event
	Ref   fanfare.EventRef
	Topic string
}

// An ItemOf is an item as one recipient gets it.
type RecipientItem struct {
	Number        uint32
	Subscriptions []uint32 // that wanted it: places in the recipient's, ascending
}

// due is when the run was, as a template says it.
func (d *Digest) due() string { return d.Due.In(d.Zone).Format(time.RFC3339) }

// variables are what templates see of the run itself.
func (d *Digest) variables(service string) map[string]any {
	return map[string]any{"due": d.due(), "cadence": d.Cadence, "time_zone": d.Zone.String(), "service": service}
}

// checkKind refuses a template that is for one event where there are several, and
// the other way round.
func (t *Template) checkKind(d *Digest) *fanfare.Error {
	event, several := t.firstReferences()
	switch {
	case d == nil && several != nil:
		return t.wrongKind(several, "a message about one event has none", "read event and meta, or use the template for digests")
	case d != nil && event != nil:
		return t.wrongKind(event, "a digest tells of several events", "write {% for item in items %} and read item.event, item.meta")
	}
	return nil
}

// A use is a path where a part reads it.
type reference struct {
	part *templatePart
	path liquid.Path
}

func (t *Template) wrongKind(u *reference, why, hint string) *fanfare.Error {
	err := invalid(u.path.Line, hint, "%s: %s", u.path.Text, why)
	return t.setPosition(u.part, err, u.path.Text)
}

// firstReferences finds the first use of what only a message about one event has, and of what
// only a digest has.
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

// Digest reports whether the template tells of several events: it reads items,
// count, more or digest.
func (t *Template) Digest() bool {
	_, several := t.firstReferences()
	return several != nil
}
