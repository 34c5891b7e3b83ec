package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// scoped is a world with a key for each combination of scopes. The secret of a key is
// its scopes, joined with +, after "all " for a key for all services.
type scoped struct{ *world }

func (s scoped) Authenticate(secret string) (catalog.Principal, bool) {
	names, all := strings.CutPrefix(secret, "all ")
	scopes, err := catalog.ParseScopes(strings.Split(names, "+"))
	p := catalog.Principal{KeyID: "key-7", Service: "news", Scopes: scopes}
	if all {
		p.Service = ""
	}
	return p, err == nil
}

func TestAnEndpointOpensForItsScopesOnly(t *testing.T) {
	evt := newsEvent.String()
	for _, test := range []struct {
		method, path, body string
		open               string // the scopes that open it, beside admin
		lacks              string // what a key without any of them is told
	}{
		{"POST", "/v1/topics/quakes/events", `{"mag":4}`, "publish", "publish"},
		{"POST", "/v1/events", `{"specversion":"1.0","id":"1","source":"/a","type":"quakes","data":{"mag":1}}`, "publish", "publish"},
		{"POST", "/v1/topics/quakes/match", `{"mag":"big"}`, "publish+subscribe+read", "publish or subscribe or read"},
		{"POST", "/v1/dry-run/messages", `{"channel":"mail"}`, "publish", "publish"},
		{"POST", "/v1/subscriptions", oneSub, "subscribe", "subscribe"},
		{"PUT", "/v1/subscriptions/mine", oneSub, "subscribe", "subscribe"},
		{"DELETE", "/v1/subscriptions/none", "", "subscribe", "subscribe"},
		{"POST", "/v1/subscriptions/none/pause", "", "subscribe", "subscribe"},
		{"POST", "/v1/subscriptions/none/resume", "", "subscribe", "subscribe"},
		{"GET", "/v1/subscriptions/none", "", "subscribe+read", "subscribe or read"},
		{"GET", "/v1/status", "", "read", "read"},
		{"GET", "/v1/broadcasts", "", "read", "read"},
		{"GET", "/v1/events/" + evt, "", "read", "read"},
		{"GET", "/v1/events/" + evt + "/deliveries", "", "read", "read"},
		{"GET", "/v1/subscribers/a@example.com/deliveries", "", "read", "read"},
		{"GET", "/v1/channels/email/destinations", "", "read", "read"},
		{"POST", "/v1/channels/email/destinations/example.org/resume", "", "", "admin"},
		{"GET", "/v1/parked", "", "read", "read"},
		{"POST", "/v1/parked/none/retry", "", "", "admin"},
		{"DELETE", "/v1/parked/none", "", "", "admin"},
		{"POST", "/v1/apply", "service: news\n", "", "admin"},
		{"POST", "/v1/pause", `{"scope":{"kind":"service","name":"news"}}`, "", "admin"},
		{"POST", "/v1/resume", `{"scope":{"kind":"service","name":"news"}}`, "", "admin"},
		{"POST", "/v1/cancel", `{"scope":{"kind":"broadcast","name":"` + evt + `"}}`, "", "admin"},
		{"POST", "/v1/broadcasts/" + evt + "/recall", "", "", "admin"},
		{"PUT", "/v1/broadcasts/" + evt + "/expiry", `{"at":null}`, "", "admin"},
		{"GET", "/v1/mailboxes", "", "read", "read"},
		{"GET", "/v1/mailboxes/a@example.com", "", "read", "read"},
		{"PUT", "/v1/mailboxes/a@example.com", "", "", "admin"},
		{"PATCH", "/v1/mailboxes/a@example.com", `{"max_bytes":1}`, "", "admin"},
		{"GET", "/v1/mailboxes/a@example.com/export", "", "", "admin"},
		{"POST", "/v1/mailboxes/a@example.com/import", "", "", "admin"},
		{"DELETE", "/v1/mailboxes/a@example.com", "", "", "admin"},
		{"POST", "/v1/rate", `{"scope":{"kind":"channel","name":"news/email"},"rate":"30/s"}`, "", "admin"},
		{"POST", "/v1/approve", `{"event":"` + evt + `"}`, "approve", "approve"},
		{"POST", "/v1/sessions", `{"worker":"pricing"}`, "sessions", "sessions"},
		{"GET", "/v1/sessions", "", "sessions+read", "read or sessions"},
		{"GET", "/v1/sessions/ses-1", "", "sessions+read", "read or sessions"},
		{"DELETE", "/v1/sessions/ses-1", "", "sessions", "sessions"},
		{"GET", "/v1/sessions/ses-1/clients/risk/responses", "", "sessions+read", "read or sessions"},
		{"GET", "/v1/sessions/ses-1/clients/risk/requests/1", "", "sessions+read", "read or sessions"},
		{"GET", "/v1/sessions/ses-1/clients/risk/stream", "", "sessions", "sessions"},
		{"GET", "/v1/workers/pricing/stream?instance=a", "", "work", "work"},
		{"GET", "/v1/agents/host1/stream", "", "work", "work"},
		{"GET", "/v1/workers", "", "read", "read"},
		{"GET", "/v1/workers/pricing", "", "read", "read"},
		{"PUT", "/v1/workers/pricing", "{}", "", "admin"},
		{"DELETE", "/v1/workers/pricing", "", "", "admin"},
		{"GET", "/v1/agents", "", "read", "read"},
		{"GET", "/v1/keys", "", "", "admin"},
		{"POST", "/v1/keys", `{"name":"x"}`, "", "admin"},
		{"GET", "/v1/keys/key-2", "", "", "admin"},
		{"PATCH", "/v1/keys/key-2", `{"name":"x"}`, "", "admin"},
		{"POST", "/v1/keys/key-2/rotate", "", "", "admin"},
		{"DELETE", "/v1/keys/key-2", "", "", "admin"},
	} {
		for _, scope := range []string{"admin", "publish", "subscribe", "read", "secrets", "approve", "sessions", "work"} {
			t.Run(test.method+" "+test.path+" "+scope, func(t *testing.T) {
				w := newWorld()
				b := &fakeBroker{}
				a := w.api(func(p *Dependencies) { p.Keys, p.Sessions, p.Agents = scoped{w}, b, b })
				rec := ask(t, a, test.method, test.path, test.body, "Authorization", "Bearer "+scope)
				if scope == "admin" || strings.Contains(test.open, scope) {
					if rec.Code == http.StatusForbidden {
						t.Errorf("refused: %s", rec.Body)
					}
					return
				}
				p := problemIn(t, rec, 403, fanfare.Forbidden)
				if !strings.Contains(p.Detail, "scope "+test.lacks) || !strings.Contains(p.Hint, "key-7 has "+scope) {
					t.Errorf("does not say that %s is lacking: %+v", test.lacks, p)
				}
			})
		}
	}
}

func TestOnlyTheOperatorReachesEverything(t *testing.T) {
	for key, status := range map[string]int{"all admin": 204, "all publish+read": 403, "admin": 403} {
		w := newWorld()
		rec := ask(t, w.api(func(p *Dependencies) { p.Keys = scoped{w} }), "POST", "/v1/pause", `{"scope":{"kind":"all"}}`, "Authorization", "Bearer "+key)
		if rec.Code != status {
			t.Errorf("%s: %d %s", key, rec.Code, rec.Body)
		}
	}
}

func TestAKeyOfAServiceMakesNoKeyThatReachesFurther(t *testing.T) {
	for body, status := range map[string]int{
		`{"name":"x"}`: 201, `{"service":"news","scopes":["admin"]}`: 201,
		`{"service":"other"}`: 403, `{"all_services":true}`: 403, `{"all_services":true,"scopes":["read"]}`: 403,
		`{"service":"news","all_services":true}`: 422, `{"scopes":["write"]}`: 422, `{"scopes":[]}`: 422, `{"expires_at":"2001-01-01T00:00:00Z"}`: 422,
	} {
		w := newWorld()
		rec := ask(t, w.api(func(p *Dependencies) { p.Keys = scoped{w} }), "POST", "/v1/keys", body, "Authorization", "Bearer admin")
		if rec.Code != status {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
		if status == 201 && (!strings.Contains(rec.Body.String(), `"service":"news"`) || rec.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("%s: %s %v", body, rec.Body, rec.Header())
		}
	}
}

func TestAScopeOutsideTheNamedServiceIsExplained(t *testing.T) {
	a := newWorld().api()
	for body, key := range map[string]string{`{"scope":{"kind":"service","name":"other"}}`: "service", `{"scope":{"kind":"all"}}`: "all"} {
		p := problemIn(t, ask(t, a, "POST", "/v1/pause?service=news", body), 422, fanfare.Invalid)
		if !strings.Contains(p.Detail, "the request is for service news") || !strings.Contains(p.Hint, "X-Fanfare-Service") {
			t.Errorf("%s: %+v", key, p)
		}
	}
}

func TestAPatchOfAKeyChangesWhatItNames(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                    `"name":"website","service":"news","scopes":["subscribe"],"expires_at":"2100-01-01T00:00:00Z","disabled":false`,
		`{"expires_at":null}`:                   `"scopes":["subscribe"],"disabled":false`,
		`{"scopes":["publish","read"]}`:         `"scopes":["publish","read"]`,
		`{"disabled":true,"name":"old"}`:        `"name":"old"`,
		`{"scopes":["x"]}`:                      `/scopes/0`,
		`{"name":7}`:                            `/name`,
		`{"service":"other"}`:                   `/service`,
		`[]`:                                    `is not allowed here`,
		`{"expires_at":"2001-01-01T00:00:00Z"}`: `must be in the future`,
	} {
		rec := ask(t, newWorld().api(), "PATCH", "/v1/keys/key-2", body, "Content-Type", httpio.MergePatch)
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
}
