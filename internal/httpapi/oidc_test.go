package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/signin"
	"fanfare.dev/fanfare/internal/signin/oidc"
	"fanfare.dev/fanfare/internal/test/issuer"
)

// visitors are people who use a server with an issuer. The claim groups decides the roles.
type visitors struct {
	*API
	t        *testing.T
	world    *world
	issuer   *issuer.Issuer
	snapshot *catalog.Snapshot
	ledger   *ledger
	log      strings.Builder
}

func visitorsOf(t *testing.T, change ...func(*Dependencies)) *visitors {
	t.Helper()
	p := &visitors{t: t, world: newWorld(), issuer: issuer.Start(t), ledger: new(ledger)}
	settings, err := oidc.Parse([]byte(fmt.Sprintf("issuers: [{id: staff, name: Staff, issuer: %q, client_id: %s, client_secret_env: SECRET}]\nroles: [{issuer: %q, claim: groups, value: everything, role: admin}, {issuer: %q, claim: groups, value: readers, role: viewer}]\n",
		p.issuer.URL, issuer.ClientID, p.issuer.URL, p.issuer.URL)), oidc.Sources{ReadFile: os.ReadFile, LookupEnv: func(string) (string, bool) { return issuer.ClientSecret, true }})
	if err != nil {
		t.Fatal(err)
	}
	p.grant(map[string]string{"news": "news-%s", "games": "games-%s"})
	roles := signin.NewRoles(settings.URLs(), settings.Roles, func() *catalog.Snapshot { return p.snapshot })
	p.API = p.world.api(append([]func(*Dependencies){func(d *Dependencies) {
		d.SignIns, d.Audit = signIns(p.world, roles), p.ledger
		d.OIDC = oidc.New(oidc.Options{Issuers: settings.Issuers, Claims: roles.Claims, Clock: clock.System{}})
		d.Log, d.AccessLog = slog.New(slog.NewTextHandler(&p.log, nil)), LogAll
	}}, change...)...)
	return p
}

// grant gives each role in the services to a group that has the name of the role in it.
func (p *visitors) grant(services map[string]string) {
	p.snapshot = catalog.NewSnapshot()
	for name, group := range services {
		s := catalog.NewService(1, name)
		for _, role := range catalog.RoleNames {
			s.Roles = append(s.Roles, catalog.RoleGrant{Issuer: p.issuer.URL, Claim: "groups", Value: fmt.Sprintf(group, role), Role: role})
		}
		p.snapshot.Services[name] = s
	}
}

// begin goes to the issuer and back, and returns the address of the callback with the cookie of the flow.
func (p *visitors) begin(groups ...string) (back *url.URL, flow *http.Cookie) {
	p.t.Helper()
	p.issuer.Change(func(s *issuer.State) { s.Claims["groups"] = groups })
	rec := page{method: "GET", path: "/console/sign-in/oidc/staff?return=%2Fconsole%2Fevents%3Fservice%3Dnews"}.send(p)
	if rec.Code != http.StatusSeeOther || len(rec.Result().Cookies()) != 1 {
		p.t.Fatalf("the sign-in begins with %d %s %s", rec.Code, rec.Header().Get("Location"), p.log.String())
	}
	return p.issuer.Visit(p.t, rec.Header().Get("Location")), rec.Result().Cookies()[0]
}

// signIn signs in a person of groups, and returns the cookie.
func (p *visitors) signIn(groups ...string) *http.Cookie {
	p.t.Helper()
	back, flow := p.begin(groups...)
	rec := page{method: "GET", path: back.RequestURI(), cookie: flow}.send(p)
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/console/events?service=news" {
		p.t.Fatalf("the sign-in ends with %d %s %s", rec.Code, rec.Header().Get("Location"), p.log.String())
	}
	return p.sessionIn(rec)
}

// sessionIn returns the cookie of the sign-in in a response.
func (p *visitors) sessionIn(rec *httptest.ResponseRecorder) *http.Cookie {
	p.t.Helper()
	for _, cookie := range rec.Result().Cookies() {
		if cookie.Name == loopbackCookie && cookie.Value != "" {
			return cookie
		}
	}
	return nil
}

func (p *visitors) mustGet(cookie *http.Cookie, want int, method, path, body string, header ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	rec := page{method: method, path: path, body: body, cookie: cookie, header: header}.send(p)
	if rec.Code != want {
		p.t.Errorf("%s %s gets %d %s, want %d", method, path, rec.Code, rec.Body, want)
	}
	return rec
}

func TestAPersonSignsInWithOpenIDConnect(t *testing.T) {
	p := visitorsOf(t)
	rec := p.mustGet(nil, 200, "GET", "/console/sign-in/oidc", "")
	if rec.Body.String() != `{"issuers":[{"id":"staff","name":"Staff"}]}`+"\n" {
		t.Errorf("the issuers are %s", rec.Body)
	}
	cookie := p.signIn("news-viewer", "news-approver", "other")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || len(cookie.Value) < 40 {
		t.Errorf("the cookie is %+v", cookie)
	}
	var in wire.SignIn
	decode(t, p.mustGet(cookie, 200, "GET", signInPath, ""), &in)
	if in.Person != "Ada Example" || in.Mail != "ada@example.com" || in.Issuer != p.issuer.URL || in.Subject != "ada-1" || in.Service != "news" || fmt.Sprint(in.Scopes) != "[read approve]" || fmt.Sprint(in.Roles) != "[{news [viewer approver] [read approve]}]" || in.KeyID != "" {
		t.Errorf("the sign-in is %+v", in)
	}
	p.mustGet(cookie, 200, "GET", "/v1/status", "")
	p.mustGet(cookie, 403, "GET", "/v1/status?service=games", "")
	p.mustGet(cookie, 403, "POST", "/v1/pause", `{"scope":{"kind":"service","name":"news"}}`)
	p.mustGet(cookie, 204, "DELETE", signInPath, "")
	p.mustGet(cookie, 401, "GET", "/v1/status", "")
	who := "Ada Example <ada@example.com> (" + p.issuer.URL + ")"
	if by, deeds := p.ledger.by, p.ledger.deeds; len(by) != 2 || by[0].KeyName != who || by[0].KeyID != "" || by[1].KeyName != who || deeds[0].Action != "begin" || deeds[0].Service != "news" || deeds[1].Action != "end" {
		t.Errorf("the audit log has %+v by %+v", deeds, by)
	}
	log := p.log.String()
	if !strings.Contains(log, "sign_in=sin-") {
		t.Errorf("the access log does not name the sign-in:\n%s", log)
	}
	for _, secret := range []string{cookie.Value, issuer.ClientSecret, "ada@example.com", "Ada", "code=", "state=", "eyJ"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s:\n%s", secret, log)
		}
	}
}

func TestRolesOfAPersonAreChecked(t *testing.T) {
	p := visitorsOf(t)
	const pause, approve = `{"scope":{"kind":"service","name":"news"}}`, "/v1/topics/quakes/events"
	for _, c := range []struct {
		groups, path string
		want         int
	}{
		{"news-viewer", "GET /v1/broadcasts", 200}, {"news-viewer", "GET /v1/services", 200}, {"news-viewer", "POST " + approve, 403}, {"news-viewer", "POST /v1/pause", 403}, {"news-viewer", "GET /v1/keys", 403},
		{"news-sender", "GET /v1/broadcasts", 200}, {"news-sender", "POST " + approve, 202}, {"news-sender", "POST /v1/approve", 403}, {"news-sender", "POST /v1/pause", 403},
		{"news-approver", "POST /v1/approve", 404}, {"news-approver", "POST " + approve, 403},
		{"news-admin", "POST /v1/pause", 204}, {"news-admin", "GET /v1/keys", 200}, {"news-admin", "POST /v1/pause?service=games", 403}, {"news-admin", "GET /v1/nodes", 403},
		{"readers", "GET /v1/broadcasts?service=games", 200}, {"readers", "POST /v1/pause?service=news", 403},
		{"readers news-admin", "GET /v1/broadcasts?service=games", 200}, {"readers news-admin", "GET /v1/broadcasts", 200}, {"readers news-admin", "POST /v1/pause?service=news", 204}, {"readers news-admin", "POST /v1/pause?service=games", 403}, {"readers news-admin", "POST /v1/pause", 403},
		{"everything", "POST /v1/pause", 204}, {"everything", "GET /v1/nodes", 200}, {"everything", "POST /v1/pause?service=news", 204},
		{"news-admin games-viewer", "GET /v1/broadcasts", 422}, {"news-admin games-viewer", "GET /v1/broadcasts?service=games", 200}, {"news-admin games-viewer", "POST /v1/pause", 422},
		{"news-admin games-viewer", "POST /v1/pause?service=news", 204}, {"news-admin games-viewer", "POST /v1/pause?service=games", 403}, {"news-admin games-viewer", "GET /v1/broadcasts?service=shop", 403}, {"news-admin games-viewer", "GET /v1/nodes?service=news", 403},
	} {
		method, path, _ := strings.Cut(c.path, " ")
		body := map[string]string{"/v1/pause": pause, approve: `{"mag":4}`, "/v1/approve": `{}`}[strings.Split(path, "?")[0]]
		rec := page{method: method, path: path, body: body, cookie: p.signIn(strings.Fields(c.groups)...)}.send(p)
		if rec.Code != c.want {
			t.Errorf("%s: %s gets %d %s, want %d", c.groups, c.path, rec.Code, rec.Body, c.want)
		}
		if rec.Code == 422 && strings.Contains(c.groups, "games") && !strings.Contains(rec.Body.String(), "(games, news)") {
			t.Errorf("%s: %s does not list the services: %s", c.groups, c.path, rec.Body)
		}
		if rec.Code >= 400 && strings.Contains(rec.Body.String(), "key-") {
			t.Errorf("%s: %s speaks of a key: %s", c.groups, c.path, rec.Body)
		}
	}
}

func TestARemovedRoleTakesEffectAtOnce(t *testing.T) {
	p := visitorsOf(t)
	cookie := p.signIn("news-admin", "games-viewer")
	p.mustGet(cookie, 200, "GET", "/v1/keys?service=news", "")
	p.grant(map[string]string{"games": "games-%s"})
	p.mustGet(cookie, 403, "GET", "/v1/keys?service=news", "")
	p.mustGet(cookie, 200, "GET", "/v1/status", "")
	p.grant(nil)
	p.mustGet(cookie, 401, "GET", "/v1/status", "")
	p.mustGet(cookie, 401, "GET", signInPath, "")
}

// mustRefuse fails unless a response shows the page of the sign-in with a reason, and signs nobody in.
func (p *visitors) mustRefuse(what string, rec *httptest.ResponseRecorder, where, reason string) {
	p.t.Helper()
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != where+"refused="+reason || p.sessionIn(rec) != nil {
		p.t.Errorf("%s: %d %s %v", what, rec.Code, rec.Header().Get("Location"), rec.Result().Cookies())
	}
}

func TestARefusedSignInIsExplained(t *testing.T) {
	p := visitorsOf(t)
	back, flow := p.begin("unknown")
	p.mustRefuse("without a role", page{method: "GET", path: back.RequestURI(), cookie: flow}.send(p), "/console/events?service=news&", "no_role")
	p.mustRefuse("again", page{method: "GET", path: back.RequestURI(), cookie: flow}.send(p), "/console/?", "expired")
	p.mustRefuse("an unknown issuer", page{method: "GET", path: "/console/sign-in/oidc/unknown"}.send(p), "/console/?", "unknown")
	p.mustRefuse("over a network", page{method: "GET", path: "/console/sign-in/oidc/staff", from: "198.51.100.1:1"}.send(p), "/console/?", "no_https")
	p.mustRefuse("without a public URL", page{method: "GET", path: "/console/sign-in/oidc/staff", from: "198.51.100.1:1", host: "fanfare.example.com", tls: true}.send(p), "/console/?", "no_url")
	back, _ = p.begin("everything")
	p.mustRefuse("in another browser", page{method: "GET", path: back.RequestURI()}.send(p), "/console/?", "expired")
	p.issuer.Change(func(s *issuer.State) { s.Denies = "access_denied" })
	back, flow = p.begin("everything")
	p.mustRefuse("denied", page{method: "GET", path: back.RequestURI(), cookie: flow}.send(p), "/console/events?service=news&", "denied")
	if log := p.log.String(); !strings.Contains(log, "subject=ada-1") || strings.Contains(log, "unknown]") {
		t.Errorf("the log is\n%s", log)
	}
	down := visitorsOf(t)
	down.issuer.Change(func(s *issuer.State) { s.Down = true })
	down.mustRefuse("down", page{method: "GET", path: "/console/sign-in/oidc/staff?return=/console/topics"}.send(down), "/console/topics?", "unavailable")
}

func TestTheCallbackIsBelowThePublicURL(t *testing.T) {
	p := visitorsOf(t, func(d *Dependencies) { d.PublicURL = "https://fanfare.example.com" })
	rec := page{method: "GET", path: "/console/sign-in/oidc/staff", from: "198.51.100.1:1", host: "evil.example.com", tls: true}.send(p)
	to, err := url.Parse(rec.Header().Get("Location"))
	if cookies := rec.Result().Cookies(); err != nil || to.Query().Get("redirect_uri") != "https://fanfare.example.com/console/sign-in/oidc/callback" || len(cookies) != 1 || cookies[0].Name != "__Host-fanfare-oidc" || !cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "/" || cookies[0].MaxAge != 600 {
		t.Errorf("%s %+v", to, cookies)
	}
}

func TestASignInReturnsToThePagesOfTheConsoleOnly(t *testing.T) {
	for to, want := range map[string]string{
		"/console/events?service=news&x=a%20b": "/console/events?service=news&x=a+b", "/console/": "/console/", "/console/event?id=evt-1&refused=denied": "/console/event?id=evt-1", "": "/console/",
		"https://evil.example": "/console/", "//evil.example/console/": "/console/", "/console//evil.example": "/console/", "/v1/backup": "/console/", "/console/../v1/backup": "/console/", "/console/%2e%2e/v1/backup": "/console/", "/console/..%2fv1": "/console/",
		`/console/\evil.example`: "/console/", "javascript:alert(1)": "/console/", "/console/\tx": "/console/", "/console/x\r\nSet-Cookie: a": "/console/", "/consolex": "/console/", "/console/sign-in/oidc/staff": "/console/", "/console/x#y": "/console/", "/console/" + strings.Repeat("x", 3000): "/console/",
	} {
		if got := consolePath(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// An attacker who has put a cookie into the browser of a person does not know the cookie that the person gets.
func TestASignInIsNotFixed(t *testing.T) {
	p := visitorsOf(t)
	planted := &http.Cookie{Name: loopbackCookie, Value: strings.Repeat("f", 43)}
	back, flow := p.begin("everything")
	rec := page{method: "GET", path: back.RequestURI(), cookie: flow, header: []string{"Cookie", flow.String() + "; " + planted.String()}}.send(p)
	if got := p.sessionIn(rec); got == nil || got.Value == planted.Value {
		t.Errorf("the cookie is %+v", got)
	}
	p.mustGet(planted, 401, "GET", "/v1/status", "")
	own := p.signIn("everything") // of the attacker, who would sign in the person as themselves
	back, _ = p.begin("everything")
	p.mustRefuse("a reply to the flow of an attacker", page{method: "GET", path: back.RequestURI(), cookie: own}.send(p), "/console/?", "expired")
}

func TestPeopleAreLimitedLikeKeys(t *testing.T) {
	p := visitorsOf(t, func(d *Dependencies) { d.Limits = limits.Limits{RatePerSecond: 1, Burst: 3} })
	one, two := p.signIn("everything"), p.signIn("everything") // the same person
	refused := 0
	for range 3 {
		for _, cookie := range []*http.Cookie{one, two} {
			if (page{method: "GET", path: "/v1/status", cookie: cookie}).send(p).Code == http.StatusTooManyRequests {
				refused++
			}
		}
	}
	if refused < 2 {
		t.Errorf("%d of 6 requests are refused", refused)
	}
	if rec := ask(t, p, "GET", "/v1/status", ""); rec.Code != http.StatusOK {
		t.Errorf("a key gets %d", rec.Code)
	}
}

func TestEveryResponseOfTheConsoleForbidsFrames(t *testing.T) {
	p := visitorsOf(t)
	back, flow := p.begin("everything")
	for _, one := range []page{
		{method: "GET", path: "/console"}, {method: "GET", path: "/console/"}, {method: "GET", path: "/console/events"}, {method: "GET", path: "/console/assets/none.js"}, {method: "GET", path: signInPath},
		{method: "POST", path: signInPath, body: `{"key":"wrong"}`}, {method: "DELETE", path: signInPath}, {method: "GET", path: oidcPath}, {method: "GET", path: oidcPath + "/staff"}, {method: "GET", path: oidcPath + "/none"},
		{method: "GET", path: back.RequestURI(), cookie: flow}, {method: "GET", path: oidcCallback},
	} {
		h := one.send(p).Header()
		for name, want := range map[string]string{"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin"} {
			if !strings.Contains(h.Get(name), want) {
				t.Errorf("%s %s has the header %s: %q", one.method, one.path, name, h.Get(name))
			}
		}
	}
}

func TestTheAuditLogIsFilteredByPerson(t *testing.T) {
	q := audit.Query{Person: "Ada (x)"}
	for want, e := range map[bool]audit.Entry{true: {Actor: audit.Actor{KeyName: "Ada (x)"}}, false: {Actor: audit.Actor{KeyID: "key-1", KeyName: "Ada (x)"}}} {
		if q.Matches(&e) != want {
			t.Errorf("%+v: %v", e, !want)
		}
	}
}

func TestAPersonWithoutScopesOfTheServerHasNoOwnService(t *testing.T) {
	rights := &catalog.Rights{Services: map[string]catalog.Roles{"news": catalog.RoleAdmin, "games": catalog.RoleViewer}}
	c, err := personCaller("", catalog.Principal{Issuer: "i", Subject: "s"}, rights, mayConfigure)
	if err != nil || c.principal.Operator() || fanfare.CodeOf(c.must(mayConfigure)) != fanfare.Invalid || fanfare.CodeOf(c.must(operator)) != fanfare.Forbidden || c.sees("shop") {
		t.Errorf("%+v %v", c, err)
	}
}
