package registry

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare/internal/condition"
)

// checkDigestKey refuses a key that no event of the topic can have.
func (pl *plan) checkDigestKey(at string, t *catalog.Topic) {
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
	topics := map[string][]*catalog.Topic{}
	for _, t := range catalog.SortedValues(pl.svc.Topics) {
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
		named := slices.ContainsFunc(all, func(t *catalog.Topic) bool { return pl.doc.Topics[t.Name] != nil })
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

// DigestTemplate returns the number of the current version of the template that
// writes the digests of a topic, or of its last one, where it was deleted with the
// digest; none where the topic never had one.
func (r *Registry) DigestTemplate(t *catalog.Topic) (number uint32, ok bool) {
	name := t.LatestDigest().Template
	if number, ok = r.TemplateVersion(t.Service, name); ok || name == "" {
		return number, ok
	}
	for _, past := range r.Configuration().TemplateVersions(t.Service, name) {
		number, ok = past.Number, true
	}
	return number, ok
}
