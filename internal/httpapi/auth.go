package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/signin"
)

// A caller is the key that sent a request and the service that the request is for.
type caller struct {
	principal catalog.Principal
	service   string // the service of the request; "" if the key is for all services and the request specifies none
}

// caller authenticates the key of r.
func (a *API) caller(r *http.Request) (caller, error) { return a.callerBy(r, a.signedIn) }

// callerBy is caller with the function that finds the sign-in of a request that has a cookie instead of a key.
func (a *API) callerBy(r *http.Request, find func(*http.Request) (signin.SignIn, bool)) (caller, error) {
	secret, ok := bearer(r.Header.Get("Authorization"))
	if !ok && r.Header.Get("Authorization") == "" {
		if in, known, err := a.cookieCaller(r, find); known {
			if err != nil {
				return caller{}, err
			}
			return serviceOf(r, in.Principal)
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

// serviceOf returns the caller with the service of the request.
func serviceOf(r *http.Request, principal catalog.Principal) (caller, error) {
	named := r.Header.Get("X-Fanfare-Service")
	if r.URL.RawQuery != "" {
		if q := r.URL.Query().Get("service"); q != "" {
			named = q
		}
	}
	c := caller{principal, named}
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
	e := &fanfare.Error{Code: fanfare.Invalid, Message: "the key is for all services, but the request does not specify a service", Hint: "set the header X-Fanfare-Service or the query parameter service"}
	if len(all) == 0 {
		e.Message, e.Hint = "the server has no services yet", "apply a document with a service first"
	} else if len(all) <= 10 {
		all = slices.Sorted(slices.Values(all))
		e.Hint += " (" + strings.Join(all, ", ") + ")"
	}
	return "", e
}
