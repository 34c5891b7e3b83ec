package httpapi

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A page is a request that a browser sends.
type page struct {
	method, path, body string
	from               string // remote address; "": this machine
	host               string // "": localhost
	tls                bool
	cookie             *http.Cookie
	header             []string
}

func (p page) send(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(p.method, p.path, strings.NewReader(p.body))
	r.RemoteAddr, r.Host = "127.0.0.1:1234", "localhost:8085"
	if p.from != "" {
		r.RemoteAddr = p.from
	}
	if p.host != "" {
		r.Host = p.host
	}
	if p.tls {
		r.TLS = &tls.ConnectionState{}
	}
	if p.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.cookie != nil {
		r.AddCookie(p.cookie)
	}
	for i := 0; i+1 < len(p.header); i += 2 {
		r.Header.Set(p.header[i], p.header[i+1])
	}
	return serve(h, r)
}

// signIn signs in with a key and returns the cookie.
func signIn(t *testing.T, h http.Handler, secret string) *http.Cookie {
	t.Helper()
	rec := page{method: "POST", path: signInPath, body: `{"key":"` + secret + `"}`}.send(h)
	if rec.Code != http.StatusCreated || len(rec.Result().Cookies()) != 1 {
		t.Fatalf("signing in gets %d %s", rec.Code, rec.Body)
	}
	return rec.Result().Cookies()[0]
}

func TestAKeyIsExchangedForACookie(t *testing.T) {
	h := newWorld().api()
	cookie := signIn(t, h, adminSecret)
	if cookie.Name != loopbackCookie || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || strings.Contains(cookie.Value, adminSecret) || len(cookie.Value) < 40 {
		t.Errorf("the cookie is %+v", cookie)
	}
	if rec := (page{method: "GET", path: "/v1/status", cookie: cookie}).send(h); rec.Code != http.StatusOK {
		t.Errorf("with the cookie: %d %s", rec.Code, rec.Body)
	}
	if rec := (page{method: "GET", path: signInPath, cookie: cookie}).send(h); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"key_id":"key-1"`) {
		t.Errorf("the sign-in is %d %s", rec.Code, rec.Body)
	}
	again := signIn(t, h, adminSecret)
	if again.Value == cookie.Value {
		t.Error("two sign-ins have the same secret")
	}
	out := page{method: "DELETE", path: signInPath, cookie: cookie}.send(h)
	if out.Code != http.StatusNoContent || len(out.Result().Cookies()) != 2 {
		t.Errorf("signing out gets %d %v", out.Code, out.Result().Cookies())
	}
	for path, want := range map[string]int{signInPath: 401, "/v1/status": 401} {
		if rec := (page{method: "GET", path: path, cookie: cookie}).send(h); rec.Code != want {
			t.Errorf("after signing out, %s gets %d", path, rec.Code)
		}
	}
	if rec := (page{method: "GET", path: "/v1/status", cookie: again}).send(h); rec.Code != http.StatusOK {
		t.Errorf("the other sign-in gets %d", rec.Code)
	}
}

func TestACookieIsNeverSentWithoutEncryptionOverANetwork(t *testing.T) {
	h := newWorld().api(func(d *Dependencies) {
		d.Proxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("127.0.0.2/32")}
	})
	const body = `{"key":"` + adminSecret + `"}`
	for name, c := range map[string]struct {
		page
		cookie string // "": refused
	}{
		"this machine":                     {page{}, loopbackCookie},
		"this machine by address":          {page{host: "127.0.0.1:8085"}, loopbackCookie},
		"this machine by IPv6":             {page{from: "[::1]:1234", host: "[::1]:8085"}, loopbackCookie},
		"another name (DNS rebinding)":     {page{host: "rebound.example.com:8085"}, ""},
		"a name that begins like it":       {page{host: "localhost.example.com"}, ""},
		"another machine":                  {page{from: "198.51.100.1:1234", host: "localhost"}, ""},
		"a tunnel of a proxy":              {page{header: []string{"X-Forwarded-For", "198.51.100.1"}}, ""},
		"HTTPS":                            {page{from: "198.51.100.1:1234", host: "fanfare.example.com", tls: true}, secureCookie},
		"a trusted proxy with HTTPS":       {page{from: "192.0.2.7:1234", host: "fanfare.example.com", header: []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "198.51.100.1"}}, secureCookie},
		"a trusted proxy with HTTP":        {page{from: "192.0.2.7:1234", host: "fanfare.example.com", header: []string{"X-Forwarded-Proto", "http"}}, ""},
		"a client's word before a proxy's": {page{from: "192.0.2.7:1234", host: "fanfare.example.com", header: []string{"X-Forwarded-Proto", "https, http"}}, ""},
		"anybody who claims HTTPS":         {page{from: "198.51.100.1:1234", host: "fanfare.example.com", header: []string{"X-Forwarded-Proto", "https"}}, ""},
	} {
		c.method, c.path, c.body = "POST", signInPath, body
		rec := c.send(h)
		cookies := rec.Result().Cookies()
		if c.cookie == "" {
			if rec.Code != http.StatusForbidden || len(cookies) != 0 || !strings.Contains(rec.Body.String(), "needs HTTPS") {
				t.Errorf("%s: %d %s %v", name, rec.Code, rec.Body, cookies)
			}
			continue
		}
		if rec.Code != http.StatusCreated || len(cookies) != 1 || cookies[0].Name != c.cookie || cookies[0].Secure != (c.cookie == secureCookie) {
			t.Errorf("%s: %d %s %v", name, rec.Code, rec.Body, cookies)
		}
	}
	cookie := signIn(t, h, adminSecret)
	if rec := (page{method: "GET", path: "/v1/status", cookie: cookie, from: "198.51.100.1:1234"}).send(h); rec.Code != http.StatusUnauthorized {
		t.Errorf("the cookie of this machine is accepted from another one: %d", rec.Code)
	}
	if rec := (page{method: "GET", path: "/v1/status", cookie: cookie, host: "rebound.example.com"}).send(h); rec.Code != http.StatusUnauthorized {
		t.Errorf("the cookie of this machine is accepted for another name: %d", rec.Code)
	}
}

func TestPagesOfOtherOriginsCannotUseASignIn(t *testing.T) {
	w := newWorld()
	h := w.api()
	cookie := signIn(t, h, adminSecret)
	const apply = "/v1/apply"
	for name, header := range map[string][]string{
		"another site":           {"Sec-Fetch-Site", "cross-site"},
		"another host of a site": {"Sec-Fetch-Site", "same-site"},
		"another port":           {"Origin", "http://localhost:9999"},
		"a sandboxed frame":      {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
	} {
		for _, path := range []string{apply, "/v1/pause", signInPath} {
			rec := page{method: "POST", path: path, body: `{"key":"` + adminSecret + `"}`, cookie: cookie, header: header}.send(h)
			if rec.Code != http.StatusForbidden || len(rec.Result().Cookies()) != 0 {
				t.Errorf("%s: %s gets %d %s", name, path, rec.Code, rec.Body)
			}
		}
		if rec := (page{method: "DELETE", path: signInPath, cookie: cookie, header: header}).send(h); rec.Code != http.StatusForbidden {
			t.Errorf("%s signs out: %d", name, rec.Code)
		}
	}
	if len(w.applied)+len(w.controls) != 0 {
		t.Errorf("a page of another origin changed something: %v %v", w.applied, w.controls)
	}
	if rec := (page{method: "GET", path: "/v1/workers/pricing/stream?instance=a", cookie: cookie, header: []string{"Upgrade", "websocket", "Connection", "Upgrade"}}).send(h); rec.Code != http.StatusForbidden {
		t.Errorf("a WebSocket with the cookie gets %d", rec.Code)
	}
	own := page{method: "POST", path: "/v1/pause", body: `{"scope":{"kind":"service","name":"news"}}`, cookie: cookie, header: []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:8085"}}.send(h)
	if own.Code >= 300 {
		t.Errorf("the console's own page gets %d %s", own.Code, own.Body)
	}
	if rec := (page{method: "GET", path: "/v1/status", cookie: cookie, header: []string{"Authorization", "Basic eDp5"}}).send(h); rec.Code != http.StatusUnauthorized {
		t.Errorf("a wrong key beside the cookie gets %d", rec.Code)
	}
}

func TestASignInHasTheRightsOfItsKey(t *testing.T) {
	h := newWorld().api()
	cookie := signIn(t, h, newsSecret)
	for path, want := range map[string]int{"/v1/status": 200, "/v1/status?service=news": 200, "/v1/status?service=games": 403, "/v1/backup": 403} {
		if rec := (page{method: "GET", path: path, cookie: cookie}).send(h); rec.Code != want {
			t.Errorf("%s gets %d %s, want %d", path, rec.Code, rec.Body, want)
		}
	}
	signIn(t, h, adminSecret)
	var all wire.SignInPage
	decode(t, page{method: "GET", path: "/v1/sign-ins", cookie: cookie}.send(h), &all)
	if len(all.SignIns) != 1 || all.SignIns[0].KeyID != "key-2" {
		t.Errorf("a key of a service sees the sign-ins %+v", all.SignIns)
	}
	decode(t, ask(t, h, "GET", "/v1/sign-ins", ""), &all)
	if len(all.SignIns) != 2 {
		t.Fatalf("the sign-ins are %+v", all.SignIns)
	}
	slices.SortFunc(all.SignIns, func(a, b wire.SignIn) int { return strings.Compare(a.KeyID, b.KeyID) }) // the own one last
	for _, one := range all.SignIns {
		want := http.StatusNoContent
		if one.KeyID == "key-1" {
			want = http.StatusNotFound
		}
		if rec := (page{method: "DELETE", path: "/v1/sign-ins/" + one.ID, cookie: cookie}).send(h); rec.Code != want {
			t.Errorf("ending the sign-in of %s gets %d", one.KeyID, rec.Code)
		}
	}
	if rec := (page{method: "GET", path: "/v1/status", cookie: cookie}).send(h); rec.Code != http.StatusUnauthorized {
		t.Errorf("the ended sign-in gets %d", rec.Code)
	}
}

func TestWrongKeysDoNotSignIn(t *testing.T) {
	h := newWorld().api()
	for body, want := range map[string]int{`{"key":"wrong"}`: 401, `{}`: 401, `{"key":"admin-secret","more":1}`: 422, `[`: 422, `{"key":"` + strings.Repeat("x", 10_000) + `"}`: 413} {
		if rec := (page{method: "POST", path: signInPath, body: body}).send(h); rec.Code != want || len(rec.Result().Cookies()) != 0 {
			t.Errorf("%.40s gets %d %s", body, rec.Code, rec.Body)
		}
	}
	limited := false
	for range 100 {
		rec := page{method: "POST", path: signInPath, body: `{"key":"wrong"}`}.send(h)
		limited = limited || rec.Code == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("nothing limits the guessing of keys")
	}
	form := page{method: "POST", path: signInPath, body: "key=" + adminSecret, header: []string{"Content-Type", "application/x-www-form-urlencoded"}}.send(h)
	if form.Code < 400 || len(form.Result().Cookies()) != 0 || !strings.Contains(form.Body.String(), "x-www-form-urlencoded") {
		t.Errorf("a form gets %d %s", form.Code, form.Body)
	}
}

func TestTheConsoleIsServedWithItsPolicy(t *testing.T) {
	h := newWorld().api()
	for _, path := range []string{"/console/", "/console/events/evt-1", "/console/people/..%2f..%2fkeys", "/console/x.html"} {
		rec := page{method: "GET", path: path}.send(h)
		policy := rec.Header().Get("Content-Security-Policy")
		if rec.Code == http.StatusOK && !strings.Contains(rec.Body.String(), "<!doctype html>") || rec.Code != http.StatusOK && rec.Code != http.StatusNotFound {
			t.Errorf("%s gets %d %.80s", path, rec.Code, rec.Body)
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
	if rec := (page{method: "GET", path: "/console/assets/none.js"}).send(h); rec.Code != http.StatusNotFound {
		t.Errorf("an unknown file gets %d", rec.Code)
	}
	if rec := (page{method: "GET", path: "/console"}).send(h); rec.Code != http.StatusPermanentRedirect {
		t.Errorf("/console gets %d", rec.Code)
	}
}

// decode reads a response.
func decode(t *testing.T, rec *httptest.ResponseRecorder, v any) {
	t.Helper()
	if rec.Code != http.StatusOK {
		t.Fatalf("the response is %d %s", rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil {
		t.Fatal(err)
	}
}
