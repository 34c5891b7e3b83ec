package httpapi

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/signin"
)

// SignIns are the sign-ins of people to the console; *signin.SignIns has these methods.
type SignIns interface {
	Begin(ctx context.Context, key, agent, address string) (secret string, in signin.SignIn, err error)
	BeginPerson(ctx context.Context, p signin.Person, agent, address string) (secret string, in signin.SignIn, err error)
	Find(secret string) (signin.SignIn, bool)
	Peek(secret string) (signin.SignIn, bool)
	List(service string) []signin.SignIn
	End(ctx context.Context, service, id string) (signin.SignIn, error)
}

// The cookies of the console. Browsers accept the first one over HTTPS only (RFC 6265bis, section 4.1.3.2), so a page on another port of the same host
// cannot set it. The second one is for a browser on the same machine.
const (
	secureCookie   = "__Host-fanfare"
	loopbackCookie = "fanfare-console"
)

// signInPath is where the console exchanges a key for a cookie.
const signInPath = "/console/sign-in"

// maxSignInBytes is the maximum size of the body with a key.
const maxSignInBytes = 4 << 10

func (a *API) signInRoutes() {
	for method, serve := range map[string]func(*responseWriter, *http.Request) error{
		http.MethodGet: a.showSignIn, http.MethodPost: a.beginSignIn, http.MethodDelete: a.endSignIn,
	} {
		a.mux.HandleFunc(method+" "+signInPath, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*responseWriter)
			protect(x.Header(), nothingPolicy)
			err := foreignPage()
			if a.crossOrigin.Check(r) == nil {
				err = serve(x, r)
			}
			if err != nil {
				a.fail(x, err)
			}
		})
	}
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"keys"}, Summary: summary}
	}
	list := op("list-sign-ins", http.MethodGet, "/v1/sign-ins", "List the sign-ins to the console, the newest first")
	list.Description = "A sign-in with a key has the rights of the key, and ends with it; one with OpenID Connect has the current roles of the person, and ends when there are none left. The list has those whose rights are in the service only; for a key for all services, it has all."
	read(a, list, mayConfigure, func(_ context.Context, c caller, in *Page) (page wire.SignInPage, err error) {
		var all []wire.SignIn
		for _, one := range a.deps.SignIns.List(c.service) {
			all = append(all, signInOf(one))
		}
		page.SignIns, page.Next, err = inOrder(listingOf("sign-ins", c.service), in, all)
		return page, err
	})
	type One struct {
		Named
		ID string `path:"id" doc:"id of the sign-in, such as sin-k3j5h2m7q4r6"`
	}
	act(a, op("end-sign-in", http.MethodDelete, "/v1/sign-ins/{id}", "End a sign-in to the console"), mayConfigure, func(ctx context.Context, c caller, in *One) error {
		ended, err := a.deps.SignIns.End(ctx, c.service, in.ID)
		if err == nil {
			a.note(ctx, audit.Operation{Service: serviceOfSignIn(&ended), Action: "end", Kind: "sign-in", Name: ended.ID}, nil)
		}
		return err
	})
}

func signInOf(in signin.SignIn) wire.SignIn {
	p := &in.Principal
	shown := wire.SignIn{ID: in.ID, KeyID: p.KeyID, Service: serviceOfSignIn(&in), Scopes: p.Scopes.Names(),
		BeganAt: in.BeganAt, UsedAt: in.UsedAt, ExpiresAt: in.ExpiresAt, UserAgent: in.Agent, Address: in.Address}
	if in.Rights == nil {
		shown.KeyName = p.Name
		return shown
	}
	shown.Person, shown.Mail, shown.Issuer, shown.Subject = p.Name, p.Owner, p.Issuer, p.Subject
	add := func(service string, roles catalog.Roles) {
		if roles != 0 {
			shown.Roles = append(shown.Roles, wire.SignInRole{Service: service, Roles: roles.Names(), Scopes: roles.Scopes().Names()})
		}
	}
	add("", in.Rights.All)
	for _, service := range slices.Sorted(maps.Keys(in.Rights.Services)) {
		add(service, in.Rights.Services[service])
	}
	shown.Scopes = (in.Rights.All | in.Rights.Services[shown.Service]).Scopes().Names()
	return shown
}

// serviceOfSignIn returns the only service that a sign-in may access, or "".
func serviceOfSignIn(in *signin.SignIn) string {
	if in.Rights != nil && in.Rights.All == 0 && len(in.Rights.Services) == 1 {
		for only := range in.Rights.Services {
			return only
		}
	}
	return in.Principal.Service
}

func (a *API) showSignIn(x *responseWriter, r *http.Request) error {
	in, ok := a.signedIn(r)
	if !ok {
		return noSignIn()
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", signInOf(in))
}

// endSignIn signs out. It succeeds without a sign-in, too.
func (a *API) endSignIn(x *responseWriter, r *http.Request) error {
	if in, ok := a.signedIn(r); ok {
		ctx := signInActor(r.Context(), x, &in)
		if _, err := a.deps.SignIns.End(ctx, "", in.ID); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		a.note(ctx, audit.Operation{Service: serviceOfSignIn(&in), Action: "end", Kind: "sign-in", Name: in.ID}, nil)
	}
	for _, name := range []string{secureCookie, loopbackCookie} {
		http.SetCookie(x, &http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, Secure: name == secureCookie, SameSite: http.SameSiteLaxMode}) //nolint:gosec // over HTTP, only for a browser on the same machine
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) beginSignIn(x *responseWriter, r *http.Request) error {
	secure, err := a.cookieIsSecure(r)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); mt != "application/json" {
		return httpio.UnknownType(mt, "application/json")
	}
	var body wire.SignInRequest
	r.Body = http.MaxBytesReader(x, r.Body, maxSignInBytes)
	if err := httpio.ReadJSON(x, r, &body); err != nil {
		return err
	}
	secret, in, err := a.deps.SignIns.Begin(r.Context(), body.Key, r.UserAgent(), a.wrongKeys.ClientAddress(r).String())
	if fanfare.CodeOf(err) == fanfare.Unauthenticated {
		if tooMany := a.wrongKeys.Count(r, x.began); tooMany != nil {
			return tooMany
		}
	}
	if err != nil {
		return err
	}
	a.welcome(x, r, secure, secret, &in)
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", signInOf(in))
}

// welcome sends the cookie of a sign-in that has begun, and records it. The secret is always new, so nobody can know the cookie before the sign-in.
func (a *API) welcome(x *responseWriter, r *http.Request, secure bool, secret string, in *signin.SignIn) {
	x.key, x.signIn = in.Principal.KeyID, in.ID
	a.note(signInActor(r.Context(), x, in), audit.Operation{Service: serviceOfSignIn(in), Action: "begin", Kind: "sign-in", Name: in.ID}, nil)
	cookie := &http.Cookie{Name: loopbackCookie, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		cookie.Name, cookie.Secure = secureCookie, true
	}
	http.SetCookie(x, cookie)
}

// signInActor returns a context that attributes the beginning or the end of a sign-in to the person.
func signInActor(ctx context.Context, x *responseWriter, in *signin.SignIn) context.Context {
	return caller{principal: in.Principal}.acting(ctx, x, mayConfigure)
}

// cookieIsSecure reports whether a sign-in is over HTTPS. It fails if a cookie would be sent over a network without encryption.
func (a *API) cookieIsSecure(r *http.Request) (secure bool, err error) {
	if r.TLS != nil || a.wrongKeys.IsProxied(r) && strings.EqualFold(lastOf(r.Header.Values("X-Forwarded-Proto")), "https") {
		return true, nil
	}
	if isLoopback(r) {
		return false, nil
	}
	return false, &fanfare.Error{Code: fanfare.Forbidden, Message: "signing in needs HTTPS, except from a browser on the same machine",
		Hint: "set tls_cert and tls_key; behind a proxy that ends TLS, list it in proxies and let it set X-Forwarded-Proto; or open a tunnel: ssh -L 8085:127.0.0.1:8085 HOST"}
}

// lastOf returns the last element of a list header.
func lastOf(values []string) string {
	all := strings.Split(strings.Join(values, ","), ",")
	return strings.TrimSpace(all[len(all)-1])
}

// isLoopback reports whether a browser on the same machine sent a request, for a name of this machine. A page of another name that resolves to the
// loopback address (DNS rebinding) is refused by its name.
func isLoopback(r *http.Request) bool {
	if !httpio.IsLocal(r) {
		return false
	}
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
	}
	named, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || err == nil && named.IsLoopback()
}

// signedIn returns the sign-in of the cookie of a request, and counts this as a use.
func (a *API) signedIn(r *http.Request) (signin.SignIn, bool) {
	return signInIn(r, a.deps.SignIns.Find)
}

// stillSignedIn is signedIn for a request that goes on. It does not count as a use.
func (a *API) stillSignedIn(r *http.Request) (signin.SignIn, bool) {
	return signInIn(r, a.deps.SignIns.Peek)
}

// signInIn finds the sign-in of the cookie of a request.
func signInIn(r *http.Request, find func(secret string) (signin.SignIn, bool)) (signin.SignIn, bool) {
	for _, name := range []string{secureCookie, loopbackCookie} {
		cookie, err := r.Cookie(name)
		if err != nil || name == loopbackCookie && !isLoopback(r) {
			continue
		}
		if in, ok := find(cookie.Value); ok {
			return in, true
		}
	}
	return signin.SignIn{}, false
}

// cookieCaller authenticates a request of the console by its cookie. Requests that pages of other origins could cause are refused, and so are those that
// change to another protocol, which browsers send for every page.
func (a *API) cookieCaller(r *http.Request, find func(*http.Request) (signin.SignIn, bool)) (in signin.SignIn, known bool, err error) {
	if in, known = find(r); !known {
		return in, false, nil
	}
	if a.crossOrigin.Check(r) != nil || r.Header.Get("Upgrade") != "" {
		return in, true, foreignPage()
	}
	return in, true, nil
}

func foreignPage() error {
	return &fanfare.Error{Code: fanfare.Forbidden, Message: "the request comes from a page of another origin, which may not use the sign-in to the console", Hint: "programs send a key in the header Authorization: Bearer <key>"}
}

func noSignIn() error {
	return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "nobody is signed in, or the sign-in has ended", Hint: "sign in"}
}
