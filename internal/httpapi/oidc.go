package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/signin"
	"fanfare.dev/fanfare/internal/signin/oidc"
)

// OIDC signs people in with OpenID Connect; *oidc.Client has these methods.
type OIDC interface {
	Issuers() []oidc.Issuer
	Begin(ctx context.Context, id, callback, path string, from netip.Addr) (oidc.Start, error)
	Finish(ctx context.Context, browser string, reply url.Values) (oidc.Result, error)
}

// The addresses of the sign-in with OpenID Connect, and the cookies that bind it to a browser. The cookies have names like those of sign-ins.
const (
	oidcPath           = signInPath + "/oidc"
	oidcCallback       = oidcPath + "/callback"
	secureFlowCookie   = "__Host-fanfare-oidc"
	loopbackFlowCookie = "fanfare-console-oidc"
)

// The reasons for which a sign-in is refused, besides those of package oidc. The console has a text for each.
const (
	refusedNoRole  = "no_role"
	refusedNoHTTPS = "no_https"
	refusedNoURL   = "no_url" // the server does not know its own address
	refusedFailed  = "failed" // by the server
)

// maxPathBytes is the maximum size of the address to which a person returns.
const maxPathBytes = 2000

func (a *API) oidcRoutes() {
	a.mux.HandleFunc("GET "+oidcPath, func(w http.ResponseWriter, _ *http.Request) {
		x := w.(*responseWriter)
		protect(x.Header(), nothingPolicy)
		all := wire.Issuers{Issuers: []wire.Issuer{}}
		if a.deps.OIDC != nil {
			for _, i := range a.deps.OIDC.Issuers() {
				all.Issuers = append(all.Issuers, wire.Issuer{ID: i.ID, Name: i.Name})
			}
		}
		if err := httpio.WriteJSON(x, http.StatusOK, "application/json", all); err != nil {
			a.fail(x, err)
		}
	})
	if a.deps.OIDC == nil {
		return
	}
	for pattern, serve := range map[string]func(*responseWriter, *http.Request){oidcPath + "/{issuer}": a.beginOIDC, oidcCallback: a.finishOIDC} {
		a.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*responseWriter)
			protect(x.Header(), nothingPolicy)
			serve(x, r)
		})
	}
}

// beginOIDC sends a browser to an issuer.
func (a *API) beginOIDC(x *responseWriter, r *http.Request) {
	back := consolePath(r.URL.Query().Get("return"))
	secure, err := a.cookieIsSecure(r)
	if err != nil {
		a.refuseSignIn(x, r, back, refusedNoHTTPS, err)
		return
	}
	callback, ok := a.oidcCallback(r, secure)
	if !ok {
		a.refuseSignIn(x, r, back, refusedNoURL, errors.New("public_url must be an https:// URL, so that issuers can return people"))
		return
	}
	start, err := a.deps.OIDC.Begin(r.Context(), r.PathValue("issuer"), callback, back, a.wrongKeys.ClientAddress(r))
	if err != nil {
		a.refuseSignIn(x, r, back, reasonOf(err), err)
		return
	}
	setFlowCookie(x, secure, start.Browser, int(oidc.FlowTime.Seconds()))
	http.Redirect(x, r, start.URL, http.StatusSeeOther)
}

// finishOIDC signs in a person whom an issuer returns.
func (a *API) finishOIDC(x *responseWriter, r *http.Request) {
	secure, err := a.cookieIsSecure(r)
	if err != nil {
		a.refuseSignIn(x, r, "", refusedNoHTTPS, err)
		return
	}
	name, browser := loopbackFlowCookie, ""
	if secure {
		name = secureFlowCookie
	}
	if cookie, err := r.Cookie(name); err == nil {
		browser = cookie.Value
	}
	setFlowCookie(x, secure, "", -1)
	done, err := a.deps.OIDC.Finish(r.Context(), browser, r.URL.Query())
	if err != nil {
		a.refuseSignIn(x, r, done.Path, reasonOf(err), err)
		return
	}
	secret, in, err := a.deps.SignIns.BeginPerson(r.Context(), done.Person, r.UserAgent(), a.wrongKeys.ClientAddress(r).String())
	switch {
	case errors.Is(err, signin.ErrNoRole):
		a.log.Warn("a person who has no role wanted to sign in to the console", "request_id", x.id, "issuer", done.Person.Issuer, "subject", done.Person.Subject)
		a.refuseSignIn(x, r, done.Path, refusedNoRole, nil)
		return
	case err != nil:
		a.refuseSignIn(x, r, done.Path, refusedFailed, err)
		return
	}
	a.welcome(x, r, secure, secret, &in)
	http.Redirect(x, r, done.Path, http.StatusSeeOther)
}

// setFlowCookie sets the cookie that binds a flow to a browser, or removes it with a negative age.
func setFlowCookie(x *responseWriter, secure bool, value string, age int) {
	cookie := &http.Cookie{Name: loopbackFlowCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		cookie.Name, cookie.Secure = secureFlowCookie, true
	}
	http.SetCookie(x, cookie)
}

// oidcCallback returns the address to which an issuer returns people: below the public URL, or below the address of the request on the same machine.
func (a *API) oidcCallback(r *http.Request, secure bool) (callback string, ok bool) {
	switch {
	case strings.HasPrefix(a.deps.PublicURL, "https://") && secure:
		return strings.TrimRight(a.deps.PublicURL, "/") + oidcCallback, true
	case isLoopback(r) && secure:
		return "https://" + r.Host + oidcCallback, true
	case isLoopback(r):
		return "http://" + r.Host + oidcCallback, true
	}
	return "", false
}

// refuseSignIn shows the page of the sign-in with a reason. err is logged, unless it is nil.
func (a *API) refuseSignIn(x *responseWriter, r *http.Request, back, reason string, err error) {
	if err != nil {
		if write, left := a.access.allowLine(a.now().Unix()); write {
			a.log.Warn("a person could not sign in to the console", "request_id", x.id, "reason", reason, "err", err, "refusals_not_logged", left)
		}
	}
	if back == "" {
		back = consoleRoot
	}
	separator := "?"
	if strings.Contains(back, "?") {
		separator = "&"
	}
	http.Redirect(x, r, back+separator+"refused="+url.QueryEscape(reason), http.StatusSeeOther) //nolint:gosec // consolePath has checked back
}

// reasonOf returns the reason in an error, as the console knows it.
func reasonOf(err error) string {
	if reason, ok := errors.AsType[oidc.Refusal](err); ok {
		return string(reason)
	}
	return refusedFailed
}

// consolePath returns an address to return to if it is a page of the console, and else its first page.
func consolePath(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" || len(text) > maxPathBytes,
		!strings.HasPrefix(text, consoleRoot), strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }),
		path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"), strings.HasPrefix(u.Path, signInPath):
		return consoleRoot
	}
	query := u.Query()
	query.Del("refused")
	u.RawQuery = query.Encode()
	return u.String()
}
