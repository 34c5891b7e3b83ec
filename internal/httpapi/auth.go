package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/signin"
)

// A caller is the key or the person that sent a request, and the service that the request is for.
type caller struct {
	principal catalog.Principal
	service   string   // the service of the request; "" if the caller may access all services and the request specifies none
	services  []string // of a person with roles in several services, if the request specifies none of them; otherwise nil
	signIn    string   // id of the sign-in; "" for a key that was sent with the request
}

// caller authenticates the sender of r, for an access.
func (a *API) caller(r *http.Request, who access) (caller, error) {
	return a.callerBy(r, who, a.signedIn)
}

// callerBy is caller with the function that finds the sign-in of a request that has a cookie instead of a key.
func (a *API) callerBy(r *http.Request, who access, find func(*http.Request) (signin.SignIn, bool)) (caller, error) {
	secret, ok := bearer(r.Header.Get("Authorization"))
	if !ok && r.Header.Get("Authorization") == "" {
		if in, known, err := a.cookieCaller(r, find); known {
			if err != nil {
				return caller{}, err
			}
			return callerOf(r, &in, who)
		}
	}
	if !ok {
		return caller{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "this request needs an API key", Hint: "send the header Authorization: Bearer <key>"}
	}
	principal, ok := a.deps.Keys.Authenticate(secret)
	if !ok {
		return caller{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "unknown or revoked API key", Hint: "create a key with fanfare key create; the first key is in admin.key of the data directory"}
	}
	return serviceOf(r, principal)
}

// callerOf returns the caller who has a sign-in.
func callerOf(r *http.Request, in *signin.SignIn, who access) (c caller, err error) {
	if in.Rights == nil {
		c, err = serviceOf(r, in.Principal)
	} else {
		c, err = personCaller(serviceIn(r), in.Principal, in.Rights, who)
	}
	c.signIn = in.ID
	return c, err
}

// personCaller returns the caller for a person. Their roles in all services are used where they suffice, and else, those in the service of the request are
// added, so that the request can access only this service. A person with a role in only one service is like a key for it.
func personCaller(named string, person catalog.Principal, rights *catalog.Rights, who access) (caller, error) {
	c := caller{principal: person, service: named}
	c.principal.Scopes = rights.All.Scopes()
	if named == "" && rights.All == 0 {
		c.services = slices.Sorted(maps.Keys(rights.Services))
		c.principal.Service = c.services[0] // a request that does not specify a service must not reach all of them by mistake
		for _, roles := range rights.Services {
			c.principal.Scopes |= roles.Scopes()
		}
		if len(c.services) == 1 {
			c.service, c.services = c.services[0], nil
		}
		return c, nil
	}
	roles := rights.Services[named]
	if rights.All|roles == 0 {
		return caller{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "you have no role in service " + named, Hint: "ask an administrator of this service for a role"}
	}
	if roles != 0 && !c.principal.Scopes.Has(scopesOf[who]) {
		c.principal.Service, c.principal.Scopes = named, c.principal.Scopes|roles.Scopes()
	}
	return c, nil
}

// name returns the id of the key, or the title of the person.
func (c caller) name() string {
	if c.principal.KeyID != "" {
		return c.principal.KeyID
	}
	return c.principal.Title()
}

// sees reports whether the caller may know of a service.
func (c caller) sees(service string) bool {
	if c.services != nil {
		return slices.Contains(c.services, service)
	}
	return c.service == "" || c.service == service
}

// serviceIn returns the service that a request specifies.
func serviceIn(r *http.Request) string {
	if r.URL.RawQuery != "" {
		if q := r.URL.Query().Get("service"); q != "" {
			return q
		}
	}
	return r.Header.Get("X-Fanfare-Service")
}

// serviceOf returns the caller with a key.
func serviceOf(r *http.Request, principal catalog.Principal) (caller, error) {
	named := serviceIn(r)
	c := caller{principal: principal, service: named}
	if principal.Service != "" {
		c.service = principal.Service
	}
	if named != "" && named != c.service {
		return caller{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "this key is not for service " + named, Hint: "use a key for that service, or one for all services"}
	}
	return c, nil
}

// bearer reads the credentials of RFC 6750, section 2.1.
func bearer(header string) (string, bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	return strings.TrimSpace(header[len(scheme):]), true
}

// nameService is the hint for a request that has to specify a service.
const nameService = "set the header X-Fanfare-Service or the query parameter service"

// subject returns the beginning of a sentence about the rights of the caller.
func (c caller) subject() string {
	if c.principal.Issuer != "" {
		return "your roles are"
	}
	return "the key is"
}

// oneService returns the service of a request that needs exactly one: the service of the
// key, the service that the request specifies, or the only service of the server.
func (a *API) oneService(c caller) (string, error) {
	if c.service != "" {
		return c.service, nil
	}
	all := a.deps.Topics.Services()
	if len(all) == 1 {
		return all[0], nil
	}
	e := &fanfare.Error{Code: fanfare.Invalid, Message: c.subject() + " for all services, but the request does not specify a service", Hint: nameService}
	if len(all) == 0 {
		e.Message, e.Hint = "the server has no services yet", "apply a document with a service first"
	} else if len(all) <= 10 {
		all = slices.Sorted(slices.Values(all))
		e.Hint += " (" + strings.Join(all, ", ") + ")"
	}
	return "", e
}
