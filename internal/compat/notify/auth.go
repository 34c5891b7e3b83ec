package notify

import (
	"net/http"

	"github.com/google/uuid"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/compat/notify/token"
)

// authenticate returns the service and the key of a request.
func (a *API) authenticate(r *http.Request) (*caller, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return nil, refuse(http.StatusUnauthorized, nameAuth, "Unauthorized: authentication token must be provided")
	}
	text, ok := token.Bearer(header)
	if !ok {
		return nil, refuse(http.StatusUnauthorized, nameAuth, "Unauthorized: authentication bearer scheme must be used")
	}
	forbidden := func(message string) error { return refuse(http.StatusForbidden, nameAuth, message) }
	signed, err := token.Parse(text)
	if err != nil {
		return nil, forbidden(err.Error())
	}
	service, ok := a.directory().services[signed.Service()]
	if !ok {
		return nil, forbidden("Invalid token: service not found")
	}
	held := a.options.Catalog.NotifyKeys(service.Name)
	if len(held) == 0 {
		return nil, forbidden("Invalid token: service has no API keys")
	}
	keys := make([]token.Key, len(held))
	for i := range held {
		keys[i] = token.Key{Secret: held[i].Secret, Revoked: held[i].Revoked}
	}
	found, err := signed.Verify(keys, a.options.Clock.Now())
	if err != nil {
		return nil, forbidden(err.Error())
	}
	a.options.Catalog.NotifyKeyUsed(held[found].ID)
	return &caller{service, held[found]}, nil
}

// A lookup finds services and templates of one snapshot by their UUIDs.
type lookup struct {
	snapshot  *catalog.Snapshot
	services  map[string]*catalog.ServiceSnapshot
	templates map[templateKey]*catalog.TemplateSource // the latest version, also of a deleted template
}

type templateKey struct{ service, id string }

// directory returns the lookup of the current snapshot.
func (a *API) directory() *lookup {
	now := a.options.Catalog.Snapshot()
	if known := a.lookup.Load(); known != nil && known.snapshot == now {
		return known
	}
	l := &lookup{now, map[string]*catalog.ServiceSnapshot{}, map[templateKey]*catalog.TemplateSource{}}
	for _, svc := range now.Services {
		if svc.Notify.Active() {
			l.services[svc.Notify.ID] = svc
		}
	}
	for _, t := range now.Templates {
		svc := now.Services[t.Service]
		if svc == nil || !svc.Notify.Active() {
			continue
		}
		key := templateKey{t.Service, templateID(svc, t)}
		if known := l.templates[key]; known == nil || known.Number < t.Number {
			l.templates[key] = t
		}
	}
	a.lookup.Store(l)
	return l
}

// templateID returns the UUID of a template: its own, or one that is derived from its name.
func templateID(svc *catalog.ServiceSnapshot, t *catalog.TemplateSource) string {
	if t.ID != "" {
		return t.ID
	}
	space, err := uuid.Parse(svc.Notify.ID)
	if err != nil {
		return ""
	}
	return uuid.NewSHA1(space, []byte("template "+t.Name)).String()
}
