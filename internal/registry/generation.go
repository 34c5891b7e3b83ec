package registry

import (
	"fanfare.dev/fanfare/internal/catalog"
)

// Generation is that of a topic; the default where there is none.
func (r *Registry) Generation(service, topic string) catalog.Generation {
	t, ok := r.Topic(service, topic)
	if !ok {
		return catalog.Generation{}
	}
	return t.Generation
}
