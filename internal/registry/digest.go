package registry

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// Digest says how what waits for a cadence is told together.
type Digest struct {
	Template string `json:"template"`      // of the message that tells of several events
	Key      string `json:"key,omitempty"` // field of the data, as a.b: of the events with one value of it the newest is told; "" tells all
	Max      int    `json:"max,omitempty"` // events that a message tells of; of more the newest
}

const (
	defaultDigestMax = 50
	maxDigestMax     = 1000
)

// IsZero reports whether the topic has none.
func (d Digest) IsZero() bool { return d.Template == "" }

func (n node) digest() (d Digest) {
	d.Max = defaultDigestMax
	n.fields(fields{
		"template": func(v node) { d.Template = v.name() },
		"key":      func(v node) { d.Key = v.text() },
		"max":      func(v node) { d.Max = v.number(1, maxDigestMax) },
	})
	n.needs("template", "name the template of the message that tells of several events")
	return d
}

// checkDigestKey refuses a key that no event of the topic can have.
func (pl *plan) checkDigestKey(at string, t *Topic) {
	if t.Digest.Key == "" {
		return
	}
	if err := pl.r.opt.Conditions.Check(condition.Definition{Schema: t.Schema, Key: t.Digest.Key}); err != nil {
		if e := inputerror.WithPrefix("", err); strings.HasPrefix(e.Pointer, "/key") {
			pl.fail(at+"/digest", e)
		}
	}
}

// dryRunDigests checks each template against all topics whose digests it writes,
// where the document names one of them, and notes which are used.
func (pl *plan) dryRunDigests(used map[string]bool) {
	topics := map[string][]*Topic{}
	for _, t := range sortedValues(pl.svc.topics) {
		if t.Digest.Template != "" {
			topics[t.Digest.Template] = append(topics[t.Digest.Template], t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		all, src := topics[name], pl.sourceOf(name)
		if src == nil {
			continue
		}
		used[name] = true
		named := slices.ContainsFunc(all, func(t *Topic) bool { return pl.doc.Topics[t.Name] != nil })
		if !named && !pl.tries(name) {
			continue
		}
		var schemas []json.RawMessage
		var names []string
		for _, t := range all {
			schemas, names = append(schemas, schemaOf(t)), append(names, t.Name)
		}
		if err := pl.r.opt.DryRunDigest(src, schemas); err != nil {
			pl.failIn("in digests of "+strings.Join(names, ", "), err)
		}
	}
}

// keepDigest notes the digest that the topic had, where it has none now: who is told
// at once since a moment ago may still wait for a message that tells of several events.
func (b *topicBody) keepDigest(known *topicBody) {
	if b.Digest.IsZero() {
		b.PastDigest = known.told()
	}
}

func (b *topicBody) told() Digest {
	if b.Digest.IsZero() {
		return b.PastDigest
	}
	return b.Digest
}

// ToldTogether says how what waits is told: as the topic's digest says, or the last
// one that it had.
func (t *Topic) ToldTogether() Digest { return t.body.told() }

// DigestTemplate returns the number of the current version of the template that
// writes the digests of a topic, or of its last one, where it was deleted with the
// digest; none where the topic never had one.
func (r *Registry) DigestTemplate(t *Topic) (number uint32, ok bool) {
	name := t.ToldTogether().Template
	if number, ok = r.TemplateVersion(t.Service, name); ok || name == "" {
		return number, ok
	}
	for _, past := range r.Configuration().TemplateVersions(t.Service, name) {
		number, ok = past.Number, true
	}
	return number, ok
}

// KeyOf returns what an event has in the field whose newest value is told.
func (d Digest) KeyOf(e *fanfare.Event) (key string, ok bool) { return condition.KeyAt(d.Key, e.Data) }
