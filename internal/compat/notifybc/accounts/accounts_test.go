package accounts_test

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"fanfare.dev/fanfare/internal/compat/notifybc/accounts"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource/resourcetest"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
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
	resourcetest.Router
	store *control.Store
	clock *testClock
}

func newWorld(t *testing.T) *world {
	store := control.New(storetest.Open(t))
	c := &testClock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	a := accounts.New(store, "press", c, slog.New(slog.DiscardHandler))
	return &world{a, resourcetest.Router{T: t, Routes: a.Routes(), From: "192.0.2.1"}, store, c}
}

func where(text string) string { return "?where=" + url.QueryEscape(text) }

const ann = `{"email":"Ann@example.org","password":"Correct_horse1","username":"ann","unknown":1}`

func TestAdministratorsLogInForAToken(t *testing.T) {
	w := newWorld(t)
	created := w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", ann)
	id, _ := created["id"].(string)
	if !regexp.MustCompile(`^[0-9a-f]{24}$`).MatchString(id) || created["email"] != "Ann@example.org" || created["unknown"] != nil || created["password"] != nil ||
		created["created"] != "2026-11-29T12:00:00.000Z" {
		t.Fatalf("created %v", created)
	}
	w.Want(400, resourcetest.SuperAdmin, "POST", "/administrators", strings.Replace(ann, "Ann@", "ann@", 1))
	for _, weak := range []string{"short1_A", "alllower_case1", "ALLUPPER_CASE1", "No_digits_here", "NoSpecials1234"} {
		if body := w.Want(400, resourcetest.SuperAdmin, "POST", "/administrators", `{"email":"b@example.org","password":"`+weak+`"}`); !strings.Contains(body["message"].(string), "must match pattern") {
			t.Errorf("%s: %v", weak, body)
		}
	}
	w.Want(403, resourcetest.Anonymous, "POST", "/administrators", ann)
	w.Want(403, resourcetest.SuperAdmin, "POST", "/administrators/login", ann)
	w.Want(401, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"wrong"}`)
	w.Want(401, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"nobody@example.org","password":"Correct_horse1"}`)
	w.Want(400, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org"}`)
	token, _ := w.Want(200, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Correct_horse1","tokenName":"t","ttl":60}`)["token"].(string)
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
	one := w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", ann)["id"].(string)
	other := w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", strings.Replace(ann, "Ann@", "bob@", 1))["id"].(string)
	me := roles.Caller{SecurityID: one, Strategy: "accessToken", Role: roles.Admin}
	if _, list := w.Do(me, "GET", "/administrators", ""); len(list.([]any)) != 1 {
		t.Errorf("an administrator sees %v", list)
	}
	if _, list := w.Do(resourcetest.SuperAdmin, "GET", "/administrators?filter="+url.QueryEscape(`{"order":"-email","fields":["email"]}`), ""); len(list.([]any)) != 2 {
		t.Errorf("a super-administrator sees %v", list)
	}
	if n := w.Want(200, me, "GET", "/administrators/count", "")["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	w.Want(200, me, "GET", "/administrators/"+one, "")
	for _, r := range [][3]string{{"GET", "", ""}, {"PUT", "", ann}, {"PATCH", "", "{}"}, {"DELETE", "", ""}, {"POST", "/user-credential", `{"password":"Correct_horse2"}`},
		{"POST", "/access-tokens", "{}"}, {"GET", "/access-tokens", ""}, {"PATCH", "/access-tokens", "{}"}, {"DELETE", "/access-tokens", ""}} {
		w.Want(403, me, r[0], "/administrators/"+other+r[1], r[2])
		w.Want(403, resourcetest.Anonymous, r[0], "/administrators/"+other+r[1], r[2])
	}
	w.Want(403, me, "POST", "/administrators", ann)
	w.Want(404, resourcetest.SuperAdmin, "GET", "/administrators/0123", "")
	who := w.Want(200, me, "GET", "/administrators/whoami", "")
	if who["securityId"] != one || who["authnStrategy"] != "accessToken" || who["role"] != "Admin" {
		t.Errorf("whoami %v", who)
	}
}

func TestPasswordsAndTokensCanBeChanged(t *testing.T) {
	w := newWorld(t)
	id := w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", ann)["id"].(string)
	path := "/administrators/" + id
	w.Want(204, resourcetest.SuperAdmin, "PATCH", path, `{"password":"Other_horse22","username":"anna"}`)
	w.Want(400, resourcetest.SuperAdmin, "PATCH", path, `{"password":"weak"}`)
	w.Want(401, resourcetest.Anonymous, "POST", "/administrators/login", ann)
	w.Want(200, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Other_horse22"}`)
	credential := w.Want(200, resourcetest.SuperAdmin, "POST", path+"/user-credential", `{"password":"Third_horse33"}`)
	if credential["hash"] != nil || credential["password"] != nil || credential["userId"] != id {
		t.Errorf("credential %v", credential)
	}
	w.Want(200, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Third_horse33"}`)
	w.Want(204, resourcetest.SuperAdmin, "PUT", path, `{"email":"new@example.org"}`)
	if got := w.Want(200, resourcetest.SuperAdmin, "GET", path, ""); got["email"] != "new@example.org" || got["username"] != nil || got["created"] == nil {
		t.Errorf("replaced %v", got)
	}
	created := w.Want(200, resourcetest.SuperAdmin, "POST", path+"/access-tokens", `{"name":"robot","ttl":100}`)
	token := created["id"].(string)
	if created["name"] != "robot" || created["ttl"] != 100.0 || created["userId"] != id || len(token) != 64 {
		t.Errorf("created %v", created)
	}
	if _, list := w.Do(resourcetest.SuperAdmin, "GET", path+"/access-tokens", ""); len(list.([]any)) != 3 || strings.Contains(strings.Join(strings.Fields(toText(list)), ""), token) {
		t.Errorf("tokens %v", list)
	}
	byText := where(`{"id":"` + token + `"}`)
	w.Want(403, resourcetest.SuperAdmin, "PATCH", path+"/access-tokens"+byText, `{"userId":"x"}`)
	if n := w.Want(200, resourcetest.SuperAdmin, "PATCH", path+"/access-tokens"+byText, `{"name":"r2"}`)["count"]; n != 1.0 {
		t.Errorf("changed %v", n)
	}
	if n := w.Want(200, resourcetest.SuperAdmin, "DELETE", path+"/access-tokens"+where(`{"name":"r2"}`), "")["count"]; n != 1.0 {
		t.Errorf("deleted %v", n)
	}
	if holder, _ := w.Holder(t.Context(), token); holder != "" {
		t.Error("a deleted token has a holder")
	}
	w.Want(204, resourcetest.SuperAdmin, "DELETE", path, "")
	w.Want(401, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"new@example.org","password":"Third_horse33"}`)
	for _, kind := range []string{accounts.KindAdministrator, accounts.KindCredential, accounts.KindToken} {
		if records, err := w.store.NotifyBCRecords(t.Context(), "press", kind, "", 100); len(records) > 0 || err != nil {
			t.Errorf("records of kind %s remain: %v, %v", kind, records, err)
		}
	}
}

func toText(v any) string { b, _ := json.Marshal(v); return string(b) }

func TestAnImportedPasswordLogsIn(t *testing.T) {
	w := newWorld(t)
	id := w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", ann)["id"].(string)
	hash, err := bcrypt.GenerateFromPassword([]byte("Old_password1"), 10)
	if err != nil {
		t.Fatal(err)
	}
	c := resource.Collection{Records: w.store, Service: "press", Kind: accounts.KindCredential, Clock: w.clock}
	if err := c.Put(t.Context(), resource.Record{"id": id, "hash": string(hash)}); err != nil {
		t.Fatal(err)
	}
	w.Want(401, resourcetest.Anonymous, "POST", "/administrators/login", ann)
	w.Want(200, resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Old_password1"}`)
	if accounts.CheckHash(string(hash)) != nil || accounts.CheckHash("$2b$20$"+string(hash[7:])) == nil || accounts.CheckHash("x") == nil {
		t.Error("a hash that takes minutes is accepted, or a good one refused")
	}
}

func TestGuessesAreLimited(t *testing.T) {
	w := newWorld(t)
	w.Want(200, resourcetest.SuperAdmin, "POST", "/administrators", ann)
	limited := 0
	for range 40 {
		if status, _ := w.Do(resourcetest.Anonymous, "POST", "/administrators/login", `{"email":"ann@example.org","password":"Wrong_horse1"}`); status == 429 {
			limited++
		}
	}
	if limited != 10 {
		t.Errorf("%d of 40 wrong logins are refused without a check", limited)
	}
	w.From = "198.51.100.7"
	w.Want(200, resourcetest.Anonymous, "POST", "/administrators/login", ann)
}
