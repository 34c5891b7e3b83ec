package push_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A testClock stands still until it is set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

type world struct {
	*testing.T
	store  *mailbox.Store
	clock  *testClock
	hook   *httptest.Server
	got    chan object // what the push service received
	status chan int    // of the next responses; empty: 201
	stop   func()
	server *core.Server
	login  core.Login
}

// An object is a JSON object.
type object = map[string]any

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: &testClock{now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}, got: make(chan object, 100), status: make(chan int, 10)}
	w.store = mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(w.store.Close)
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: 7, Service: "press", Address: "ann@example.org"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.store.AddCredential(t.Context(), 7, &mailbox.Credential{Name: "x", Verifier: mailbox.Verifier{Iterations: 1, Salt: []byte("s"), StoredKey: []byte("k"), ServerKey: []byte("k")}}); err != nil {
			t.Fatal(err)
		}
	}
	w.hook = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		message := object{}
		if r.Header.Get("Content-Encoding") == "aes128gcm" {
			message["encrypted"] = len(body)
		} else if err := json.Unmarshal(body, &message); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		message["path"] = r.URL.Path
		if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("TTL") == "" {
			t.Errorf("the header is %v", r.Header)
		}
		select {
		case status := <-w.status:
			rw.WriteHeader(status)
		default:
			rw.WriteHeader(http.StatusCreated)
		}
		w.got <- message
	}))
	t.Cleanup(w.hook.Close)
	w.login = core.Login{Credential: w.password(0)}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// password names an app password of the account.
func (w *world) password(i int) string {
	w.Helper()
	list, err := w.store.Credentials(w.Context(), 7)
	if err != nil {
		w.Fatal(err)
	}
	return push.AppPassword(list[i].ID)
}

// start starts the server, with what is stored.
func (w *world) start() {
	s := push.NewSubscriptions(push.Options{Store: w.store, Client: w.hook.Client(), Clock: w.clock, Logger: slog.New(slog.NewTextHandler(w.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.server = &core.Server{Methods: s.Table(), Capabilities: []string{core.Capability}, Limits: core.Limits{MaxCallsInRequest: 9, MaxObjectsInGet: 99, MaxObjectsInSet: 99}, Logger: slog.New(slog.DiscardHandler)}
}

// call makes one call as the login, and returns the name of the response and its arguments.
func (w *world) call(method, arguments string) (string, object) {
	w.Helper()
	r, refused := core.ParseRequest([]byte(`{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["` + method + `",` + arguments + `,"0"]]}`))
	if refused != nil {
		w.Fatal(refused)
	}
	r.Login = w.login
	response, refused := w.server.Run(w.Context(), "a7", r, "s")
	if refused != nil {
		w.Fatal(refused)
	}
	var result object
	if err := json.Unmarshal(response.Responses[0].Arguments, &result); err != nil {
		w.Fatal(err)
	}
	return response.Responses[0].Name, result
}

// next returns the next message of the push service.
func (w *world) next() object {
	w.Helper()
	select {
	case message := <-w.got:
		return message
	case <-time.After(time.Minute):
		w.Fatal("nothing was pushed")
		return nil
	}
}

// create makes a subscription and returns its id, or the type of the error.
func (w *world) create(path, rest string) (id, failed string) {
	w.Helper()
	_, result := w.call("PushSubscription/set", `{"create":{"k":{"deviceClientId":"phone","url":"`+w.hook.URL+path+`"`+rest+`}}}`)
	if made, ok := result["created"].(object); ok && made["k"] != nil {
		return made["k"].(object)["id"].(string), ""
	}
	return "", fmt.Sprint(result["notCreated"].(object)["k"].(object)["type"])
}

func (w *world) deliver() {
	w.Helper()
	if _, err := w.store.Append(w.Context(), 7, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: []byte("Subject: x\r\n\r\nx\r\n")}}); err != nil {
		w.Fatal(err)
	}
}

func TestRFC8620Section72AVerifiedSubscriptionGetsChanges(t *testing.T) {
	w := newWorld(t)
	id, failed := w.create("/a", `,"types":["Email","Calendar"],"expires":"2027-11-27T12:00:00Z"`)
	if failed != "" {
		t.Fatal(failed)
	}
	code := w.next()
	if code["@type"] != "PushVerification" || code["pushSubscriptionId"] != id || code["path"] != "/a" {
		t.Fatalf("the verification is %v", code)
	}
	_, result := w.call("PushSubscription/set", `{"update":{"`+id+`":{"verificationCode":"wrong"}}}`)
	if result["notUpdated"].(object)[id].(object)["type"] != "invalidProperties" {
		t.Errorf("a wrong code: %v", result)
	}
	w.deliver() // not yet pushed
	_, result = w.call("PushSubscription/set", `{"update":{"`+id+`":{"verificationCode":"`+code["verificationCode"].(string)+`"}}}`)
	if _, ok := result["updated"].(object)[id]; !ok {
		t.Fatalf("the right code: %v", result)
	}
	types := func(message object) string {
		changed, err := json.Marshal(message["changed"])
		if err != nil || message["@type"] != "StateChange" {
			t.Errorf("the change is %v, %v", message, err)
		}
		return string(changed)
	}
	first := types(w.next())
	w.deliver()
	second := types(w.next())
	if !strings.HasPrefix(second, `{"a7":{"Email":"`) || strings.Contains(second, "Mailbox") || first == second {
		t.Errorf("the changes are %s and %s", first, second)
	}
	_, result = w.call("PushSubscription/get", `{"ids":null}`)
	list, _ := json.Marshal(result["list"])
	if want := `[{"deviceClientId":"phone","expires":"2026-12-04T12:00:00Z","id":"` + id + `","types":["Email","Calendar"],"verificationCode":"` + code["verificationCode"].(string) + `"}]`; string(list) != want {
		t.Errorf("the subscriptions are %s, want %s", list, want)
	}
	if name, result := w.call("PushSubscription/get", `{"ids":null,"properties":["url"]}`); name != "error" || result["type"] != "forbidden" {
		t.Errorf("the URL: %s %v", name, result)
	}

	w.stop() // the server starts again
	w.deliver()
	w.start()
	if got := types(w.next()); got == second {
		t.Errorf("after a restart %s was pushed again", got)
	}

	w.login.Credential = w.password(1) // another program of the same person
	if _, result := w.call("PushSubscription/get", `{"ids":["`+id+`"]}`); len(result["list"].([]any)) != 0 {
		t.Errorf("another app password reads %v", result)
	}
	if _, result := w.call("PushSubscription/set", `{"destroy":["`+id+`"]}`); result["destroyed"] != nil {
		t.Errorf("another app password destroys %v", result)
	}
	w.status <- http.StatusGone
	w.deliver()
	w.next()
	w.login.Credential = w.password(0)
	w.eventually("the subscription of a URL that is gone is removed", func() bool {
		_, result := w.call("PushSubscription/get", `{"ids":null}`)
		return len(result["list"].([]any)) == 0
	})
}

// eventually waits until cond holds.
func (w *world) eventually(what string, cond func() bool) {
	w.Helper()
	deadline := time.After(time.Minute)
	for !cond() {
		select {
		case <-deadline:
			w.Fatal(what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSubscriptionsEndWithTheirCredential(t *testing.T) {
	w := newWorld(t)
	w.login = core.Login{Credential: "token x", Until: w.clock.Now().Add(time.Hour)}
	if _, failed := w.create("/token", ""); failed != "" {
		t.Fatal(failed)
	}
	w.next()
	_, result := w.call("PushSubscription/get", `{"ids":null}`)
	if got := result["list"].([]any)[0].(object)["expires"]; got != "2026-11-27T13:00:00Z" {
		t.Errorf("the subscription of a token expires at %v", got)
	}
	w.clock.advance(time.Hour)
	if _, result := w.call("PushSubscription/get", `{"ids":null}`); len(result["list"].([]any)) != 0 {
		t.Errorf("it is there: %v", result)
	}
	w.login = core.Login{Credential: w.password(0)}
	id, _ := w.create("/password", "")
	list, err := w.store.Credentials(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.RemoveCredential(t.Context(), 7, list[0].ID); err != nil {
		t.Fatal(err)
	}
	w.call("PushSubscription/set", `{}`) // makes the server look
	w.eventually("the subscriptions of revoked and expired credentials are removed", func() bool {
		all, err := w.store.RecordsWithWork(t.Context(), mailbox.SubscriptionRecord, mailbox.RecordPlace{}, 9)
		return err == nil && len(all) == 0
	})
	if id == "" {
		t.Error("the subscription was not made")
	}
}

func TestSubscriptionsAreChecked(t *testing.T) {
	w := newWorld(t)
	const keys = `,"keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`
	if _, failed := w.create("/keys", keys); failed != "" {
		t.Fatal(failed)
	}
	if got := w.next(); got["encrypted"] == nil || got["encrypted"].(int) < 100 {
		t.Errorf("the verification is %v", got)
	}
	for _, rest := range []string{`,"keys":{"p256dh":"AAAA","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`, strings.Replace(keys, "BTBZMqHH6r4Tts7J_aSIgg", "short", 1), `,"verificationCode":"x"`, `,"deviceClientId2":"x"`, `,"expires":"tomorrow"`, `,"types":[1]`} {
		if _, failed := w.create("/wrong", rest); failed != "invalidProperties" {
			t.Errorf("%s: %q", rest, failed)
		}
	}
	for _, url := range []string{"http://example.org/", "https://joe:x@example.org/", "https:///x", "ftp://example.org", "https://example.org/#a", ""} {
		_, result := w.call("PushSubscription/set", `{"create":{"k":{"deviceClientId":"phone","url":"`+url+`"}}}`)
		if result["created"] != nil {
			t.Errorf("%q: %v", url, result)
		}
	}
	var failed string
	for range 30 {
		if _, failed = w.create("/many", ""); failed != "" {
			break
		}
	}
	if failed != "rateLimit" && failed != "overQuota" {
		t.Errorf("many subscriptions: %q", failed)
	}
	if name, result := w.call("PushSubscription/set", `{"accountId":"a7"}`); name != "error" || result["type"] != "invalidArguments" {
		t.Errorf("an account: %s %v", name, result)
	}
}
