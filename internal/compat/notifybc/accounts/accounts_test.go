package accounts_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"fanfare.dev/fanfare/internal/compat/notifybc/accounts"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

var (
	superAdmin = roles.Caller{SecurityID: "127.0.0.1", Strategy: "ip", Role: roles.SuperAdmin}
	anonymous  = roles.Caller{Role: roles.Anonymous}
)

type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time          { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// A world is the accounts of a service, and a router of their routes.
type world struct {
	*accounts.Accounts
	t     *testing.T
	store *control.Store
	clock *testClock
	from  string
}

func newWorld(t *testing.T) *world {
	store := control.New(storetest.Open(t))
	c := &testClock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	return &world{accounts.New(store, "press", c, slog.New(slog.DiscardHandler)), t, store, c, "192.0.2.1"}
}

// do sends a request, and returns the status and the decoded body.
func (w *world) do(by roles.Caller, method, target, body string) (int, any) {
	w.t.Helper()
	var answer resource.Answer
	var err error
	mux := http.NewServeMux()
	for _, route := range w.Routes() {
		mux.HandleFunc(route.Method+" "+route.Path, func(_ http.ResponseWriter, r *http.Request) {
			if !route.Who(&by) {
				err = roles.Forbidden()
				return
			}
			answer, err = route.Handle(&resource.Request{Request: r, Caller: by, Client: netip.MustParseAddr(w.from)})
		})
	}
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest(method, target, strings.NewReader(body)))
	if recorder.Code != http.StatusOK {
		w.t.Fatalf("%s %s: no route", method, target)
	}
	if refusal, ok := err.(*roles.Refusal); ok {
		answer = resource.Answer{Status: refusal.Status, Body: refusal.Body()}
	} else if err != nil {
		w.t.Fatalf("%s %s: %v", method, target, err)
	}
	text, err := json.Marshal(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		w.t.Fatal(err)
	}
	return answer.Status, decoded
}

// want sends a request, checks the status, and returns the body if it is an object.
func (w *world) want(status int, by roles.Caller, method, target, body string) map[string]any {
	w.t.Helper()
	got, answer := w.do(by, method, target, body)
	if got != status {
		w.t.Fatalf("%s %s %s: status %d, body %v; want %d", method, target, body, got, answer, status)
	}
	object, _ := answer.(map[string]any)
	return object
}

func where(text string) string { return "?where=" + url.QueryEscape(text) }

const ann = `{"email":"Ann@example.org","password":"Correct_horse1","username":"ann","unknown":1}`

func TestAdministratorsLogInForAToken(t *testing.T) {
	w := newWorld(t)
	created := w.want(200, superAdmin, "POST", "/administrators", ann)
	id, _ := created["id"].(string)
	if !regexp.MustCompile(`^[0-9a-f]{24}$`).MatchString(id) || created["email"] != "Ann@example.org" || created["unknown"] != nil || created["password"] != nil ||
		created["created"] != "2026-11-29T12:00:00.000Z" {
		t.Fatalf("created %v", created)
	}
	w.want(400, superAdmin, "POST", "/administrators", strings.Replace(ann, "Ann@", "ann@", 1))
	for _, weak := range []string{"short1_A", "alllower_case1", "ALLUPPER_CASE1", "No_digits_here", "NoSpecials1234"} {
		if body := w.want(400, superAdmin, "POST", "/administrators", `{"email":"b@example.org","password":"`+weak+`"}`); !strings.Contains(body["message"].(string), "must match pattern") {
			t.Errorf("%s: %v", weak, body)
		}
	}
	w.want(403, anonymous, "POST", "/administrators", ann)
	w.want(403, superAdmin, "POST", "/administrators/login", ann)
	w.want(401, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"wrong"}`)
	w.want(401, anonymous, "POST", "/administrators/login", `{"email":"nobody@example.org","password":"Correct_horse1"}`)
	w.want(400, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org"}`)
	token, _ := w.want(200, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Correct_horse1","tokenName":"t","ttl":60}`)["token"].(string)
	if !regexp.MustCompile(`^[A-Za-z0-9]{64}$`).MatchString(token) {
		t.Fatalf("token %q", token)
	}
	if holder, err := w.Holder(t.Context(), token); holder != id || err != nil {
		t.Errorf("holder %q, %v", holder, err)
	}
	if holder, err := w.Holder(t.Context(), accounts.TokenID(token)); holder != "" || err != nil {
		t.Errorf("the id of a token opens %q, %v", holder, err)
	}
	w.clock.advance(61 * time.Second)
	if holder, _ := w.Holder(t.Context(), token); holder != "" {
		t.Error("an expired token has a holder")
	}
	var stored strings.Builder
	for _, kind := range []string{accounts.KindAdministrator, accounts.KindCredential, accounts.KindToken} {
		records, err := w.store.NotifyBCRecords(t.Context(), "press", kind, "", 100)
		if err != nil || len(records) == 0 {
			t.Fatalf("%d records of kind %s, %v", len(records), kind, err)
		}
		for _, r := range records {
			stored.WriteString(r.ID + r.Body)
		}
	}
	if strings.Contains(stored.String(), token) || strings.Contains(stored.String(), "Correct_horse1") {
		t.Error("the database contains a token or a password")
	}
}

func TestATokenOpensOnlyTheOwnAccount(t *testing.T) {
	w := newWorld(t)
	one := w.want(200, superAdmin, "POST", "/administrators", ann)["id"].(string)
	other := w.want(200, superAdmin, "POST", "/administrators", strings.Replace(ann, "Ann@", "bob@", 1))["id"].(string)
	me := roles.Caller{SecurityID: one, Strategy: "accessToken", Role: roles.Admin}
	if _, list := w.do(me, "GET", "/administrators", ""); len(list.([]any)) != 1 {
		t.Errorf("an administrator sees %v", list)
	}
	if _, list := w.do(superAdmin, "GET", "/administrators?filter="+url.QueryEscape(`{"order":"-email","fields":["email"]}`), ""); len(list.([]any)) != 2 {
		t.Errorf("a super-administrator sees %v", list)
	}
	if n := w.want(200, me, "GET", "/administrators/count", "")["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	w.want(200, me, "GET", "/administrators/"+one, "")
	for _, r := range [][3]string{{"GET", "", ""}, {"PUT", "", ann}, {"PATCH", "", "{}"}, {"DELETE", "", ""}, {"POST", "/user-credential", `{"password":"Correct_horse2"}`},
		{"POST", "/access-tokens", "{}"}, {"GET", "/access-tokens", ""}, {"PATCH", "/access-tokens", "{}"}, {"DELETE", "/access-tokens", ""}} {
		w.want(403, me, r[0], "/administrators/"+other+r[1], r[2])
		w.want(403, anonymous, r[0], "/administrators/"+other+r[1], r[2])
	}
	w.want(403, me, "POST", "/administrators", ann)
	w.want(404, superAdmin, "GET", "/administrators/0123", "")
	who := w.want(200, me, "GET", "/administrators/whoami", "")
	if who["securityId"] != one || who["authnStrategy"] != "accessToken" || who["role"] != "Admin" {
		t.Errorf("whoami %v", who)
	}
}

func TestPasswordsAndTokensCanBeChanged(t *testing.T) {
	w := newWorld(t)
	id := w.want(200, superAdmin, "POST", "/administrators", ann)["id"].(string)
	path := "/administrators/" + id
	w.want(204, superAdmin, "PATCH", path, `{"password":"Other_horse22","username":"anna"}`)
	w.want(400, superAdmin, "PATCH", path, `{"password":"weak"}`)
	w.want(401, anonymous, "POST", "/administrators/login", ann)
	w.want(200, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Other_horse22"}`)
	credential := w.want(200, superAdmin, "POST", path+"/user-credential", `{"password":"Third_horse33"}`)
	if credential["hash"] != nil || credential["password"] != nil || credential["userId"] != id {
		t.Errorf("credential %v", credential)
	}
	w.want(200, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Third_horse33"}`)
	w.want(204, superAdmin, "PUT", path, `{"email":"new@example.org"}`)
	if got := w.want(200, superAdmin, "GET", path, ""); got["email"] != "new@example.org" || got["username"] != nil || got["created"] == nil {
		t.Errorf("replaced %v", got)
	}
	created := w.want(200, superAdmin, "POST", path+"/access-tokens", `{"name":"robot","ttl":100}`)
	token := created["id"].(string)
	if created["name"] != "robot" || created["ttl"] != 100.0 || created["userId"] != id || len(token) != 64 {
		t.Errorf("created %v", created)
	}
	if _, list := w.do(superAdmin, "GET", path+"/access-tokens", ""); len(list.([]any)) != 3 || strings.Contains(strings.Join(strings.Fields(toText(list)), ""), token) {
		t.Errorf("tokens %v", list)
	}
	byText := where(`{"id":"` + token + `"}`)
	w.want(403, superAdmin, "PATCH", path+"/access-tokens"+byText, `{"userId":"x"}`)
	if n := w.want(200, superAdmin, "PATCH", path+"/access-tokens"+byText, `{"name":"r2"}`)["count"]; n != 1.0 {
		t.Errorf("changed %v", n)
	}
	if n := w.want(200, superAdmin, "DELETE", path+"/access-tokens"+where(`{"name":"r2"}`), "")["count"]; n != 1.0 {
		t.Errorf("deleted %v", n)
	}
	if holder, _ := w.Holder(t.Context(), token); holder != "" {
		t.Error("a deleted token has a holder")
	}
	w.want(204, superAdmin, "DELETE", path, "")
	w.want(401, anonymous, "POST", "/administrators/login", `{"email":"new@example.org","password":"Third_horse33"}`)
	for _, kind := range []string{accounts.KindAdministrator, accounts.KindCredential, accounts.KindToken} {
		if records, err := w.store.NotifyBCRecords(t.Context(), "press", kind, "", 100); len(records) > 0 || err != nil {
			t.Errorf("records of kind %s remain: %v, %v", kind, records, err)
		}
	}
}

func toText(v any) string { b, _ := json.Marshal(v); return string(b) }

func TestAnImportedPasswordLogsIn(t *testing.T) {
	w := newWorld(t)
	id := w.want(200, superAdmin, "POST", "/administrators", ann)["id"].(string)
	hash, err := bcrypt.GenerateFromPassword([]byte("Old_password1"), 10)
	if err != nil {
		t.Fatal(err)
	}
	c := resource.Collection{Records: w.store, Service: "press", Kind: accounts.KindCredential, Clock: w.clock}
	if err := c.Put(t.Context(), resource.Record{"id": id, "hash": string(hash)}); err != nil {
		t.Fatal(err)
	}
	w.want(401, anonymous, "POST", "/administrators/login", ann)
	w.want(200, anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Old_password1"}`)
	if accounts.CheckHash(string(hash)) != nil || accounts.CheckHash("$2b$20$"+string(hash[7:])) == nil || accounts.CheckHash("x") == nil {
		t.Error("a hash that takes minutes is accepted, or a good one refused")
	}
}

func TestGuessesAreLimited(t *testing.T) {
	w := newWorld(t)
	w.want(200, superAdmin, "POST", "/administrators", ann)
	limited := 0
	for range 40 {
		if status, _ := w.do(anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Wrong_horse1"}`); status == 429 {
			limited++
		}
	}
	if limited != 10 {
		t.Errorf("%d of 40 wrong logins are refused without a check", limited)
	}
	w.from = "198.51.100.7"
	w.want(200, anonymous, "POST", "/administrators/login", ann)
}
