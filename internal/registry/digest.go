package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

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
