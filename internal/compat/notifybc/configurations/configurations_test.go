package configurations_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/configurations"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource/resourcetest"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

const texts = `{"name":"subscription","serviceName":"news","value":{"confirmationAcknowledgements":{"successMessage":"Welcome!"}},"note":"kept"}`

func TestConfigurationsOverrideTheTextsOfAServiceName(t *testing.T) {
	store := control.New(storetest.Open(t))
	clock := &testClock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	base := &settings.Defaults().Subscription
	open := func() *configurations.Configurations {
		return configurations.New(store, "press", base, clock, slog.New(slog.DiscardHandler))
	}
	c, other := open(), open()
	w := resourcetest.Router{T: t, Routes: c.Routes(), From: "127.0.0.1"}
	admin := resourcetest.SuperAdmin
	if c.Subscription("news") != base || other.Subscription("news") != base {
		t.Fatal("the settings of the file do not apply")
	}
	created := w.Want(200, admin, "POST", "/configurations", texts)
	id := created["id"].(string)
	if created["note"] != "kept" || created["createdBy"].(map[string]any)["role"] != "SuperAdmin" {
		t.Errorf("created %v", created)
	}
	if s := c.Subscription("news"); s.ConfirmationAcknowledgements.SuccessMessage != "Welcome!" || s.ConfirmationAcknowledgements.FailureMessage != base.ConfirmationAcknowledgements.FailureMessage ||
		s.ConfirmationRequest.Email.Subject != base.ConfirmationRequest.Email.Subject {
		t.Errorf("merged %+v", s)
	}
	if c.Subscription("other") != base {
		t.Error("another service name is affected")
	}
	if other.Subscription("news") != base {
		t.Error("another server reads without need")
	}
	clock.mu.Lock()
	clock.now = clock.now.Add(31 * time.Second)
	clock.mu.Unlock()
	if other.Subscription("news").ConfirmationAcknowledgements.SuccessMessage != "Welcome!" {
		t.Error("another server does not see the change")
	}
	w.Want(400, admin, "POST", "/configurations", texts)
	w.Want(204, admin, "PATCH", "/configurations/"+id, `{"value":{"confirmationAcknowledgements":{"successMessage":"Hello"}},"id":"x"}`)
	if got := c.Subscription("news").ConfirmationAcknowledgements.SuccessMessage; got != "Hello" {
		t.Errorf("changed to %q", got)
	}
	if n := w.Want(200, admin, "PATCH", "/configurations?where="+url.QueryEscape(`{"serviceName":"news"}`), `{"note":"new"}`)["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	if got := w.Want(200, admin, "GET", "/configurations/"+id, ""); got["note"] != "new" || got["id"] != id || got["created"] == nil {
		t.Errorf("stored %v", got)
	}
	if n := w.Want(200, admin, "GET", "/configurations/count", "")["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	w.Want(204, admin, "PUT", "/configurations/"+id, strings.Replace(texts, "Welcome!", "Again", 1))
	if got := w.Want(200, admin, "GET", "/configurations/"+id, ""); got["note"] != "kept" {
		t.Errorf("replaced %v", got)
	}
	w.Want(204, admin, "DELETE", "/configurations/"+id, "")
	w.Want(404, admin, "GET", "/configurations/"+id, "")
	w.Want(404, admin, "DELETE", "/configurations/"+id, "")
	if c.Subscription("news") != base {
		t.Error("a deleted configuration applies")
	}
}

func TestConfigurationsWithoutMeaningAreRefused(t *testing.T) {
	c := configurations.New(control.New(storetest.Open(t)), "press", &settings.Defaults().Subscription, &testClock{}, slog.New(slog.DiscardHandler))
	w := resourcetest.Router{T: t, Routes: c.Routes(), From: "127.0.0.1"}
	for body, part := range map[string]string{
		`{"value":{}}`:              "name is required",
		`{"name":"x"}`:              "value is required",
		`{"name":"rsa","value":{}}`: "rsa are not supported",
		`{"name":"notification","serviceName":"n","value":{"rss":{"url":"https://x"}}}`:                        "value.rss is not supported",
		`{"name":"subscription","serviceName":"n","value":5}`:                                                  "value",
		`{"name":"subscription","serviceName":"n","value":{"anonymousUnsubscription":{"code":{"regex":"("}}}}`: "regex",
	} {
		if message := fmt.Sprint(w.Want(400, resourcetest.SuperAdmin, "POST", "/configurations", body)["message"]); !strings.Contains(message, part) {
			t.Errorf("%s: %s", body, message)
		}
	}
	w.Want(200, resourcetest.SuperAdmin, "POST", "/configurations", `{"name":"own","value":[1]}`)
	for _, route := range c.Routes() {
		path := strings.Replace(route.Path, "{id}", "x", 1)
		w.Want(403, resourcetest.Admin, route.Method, path, "{}")
		w.Want(403, resourcetest.Anonymous, route.Method, path, "{}")
	}
}
