package render

import (
	"time"

	"fanfare.dev/fanfare"
)

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
type ItemOf struct {
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
	event, several := t.reads()
	switch {
	case d == nil && several != nil:
		return t.unfit(several, "a message about one event has none", "read event and meta, or use the template for digests")
	case d != nil && event != nil:
		return t.unfit(event, "a digest tells of several events", "write {% for item in items %} and read item.event, item.meta")
	}
	return nil
}

// A use is a path where a part reads it.
type use struct {
	part *part
	path path
}

func (t *Template) unfit(u *use, why, hint string) *fanfare.Error {
	err := invalid(u.path.line, hint, "%s: %s", u.path.text, why)
	return t.at(u.part, err, u.path.text)
}

// reads finds the first use of what only a message about one event has, and of what
// only a digest has.
func (t *Template) reads() (event, several *use) {
	for _, part := range t.everyPart() {
		for _, p := range part.paths {
			switch {
			case event == nil && (p.root == "event" || p.root == "meta" || p.root == "sub" || p.root == fieldsVariable):
				event = &use{part, p}
			case several == nil && ofDigests(p.root):
				several = &use{part, p}
			}
		}
	}
	return event, several
}

// Digest reports whether the template tells of several events: it reads items,
// count, more or digest.
func (t *Template) Digest() bool {
	_, several := t.reads()
	return several != nil
}
