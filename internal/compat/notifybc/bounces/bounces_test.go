package bounces_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/bounces"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource/resourcetest"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestBouncesAreCountedByAddress(t *testing.T) {
	b := bounces.New(control.New(storetest.Open(t)), "press", clock.System{})
	w := resourcetest.Router{T: t, Routes: b.Routes(), From: "127.0.0.1"}
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	count := func(address, message string, at time.Time) (count int) {
		t.Helper()
		count, err := b.Count(t.Context(), "email", address, message, message+at.String(), at)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	list := func(where string) []any {
		t.Helper()
		_, all := w.Do(resourcetest.SuperAdmin, "GET", "/bounces?filter="+url.QueryEscape(`{"where":`+where+`}`), "")
		return all.([]any)
	}
	count("Ann@example.org", "550 no such user", at)
	for range 2 { // the report is repeated
		if n := count("ann@example.org", "550 again", at.Add(time.Hour)); n != 2 {
			t.Errorf("count %d", n)
		}
	}
	count("bob@example.org", strings.Repeat("x", 5000), at)
	found := list(`{"userChannelId":"Ann@example.org"}`)
	if len(found) != 1 {
		t.Fatalf("bounces %v", found)
	}
	one := found[0].(map[string]any)
	messages := one["bounceMessages"].([]any)
	if one["hardBounceCount"] != 2.0 || one["state"] != "active" || one["channel"] != "email" || len(messages) != 2 || messages[0].(map[string]any)["message"] != "550 again" ||
		messages[0].(map[string]any)["date"] != "2026-11-29T13:00:00.000Z" {
		t.Errorf("bounce %v", one)
	}
	if v, ok := one["latestNotificationStarted"]; v != nil || !ok {
		t.Errorf("latestNotificationStarted is %v, %v", v, ok)
	}
	for i := range 30 {
		count("ann@example.org", fmt.Sprint(i), at.Add(time.Duration(i+2)*time.Hour))
	}
	if one = list(`{"hardBounceCount":{"$gt":30}}`)[0].(map[string]any); one["hardBounceCount"] != 32.0 || len(one["bounceMessages"].([]any)) != 20 {
		t.Errorf("count %v, %d messages", one["hardBounceCount"], len(one["bounceMessages"].([]any)))
	}
	path := "/bounces/" + one["id"].(string)
	for range 2 {
		if err := b.Close(t.Context(), "email", "ANN@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if n := count("ann@example.org", "29", at.Add(31*time.Hour)); n != 0 {
		t.Errorf("the last report is repeated after the end, and counts as %d", n)
	}
	if n := count("ann@example.org", "new", at); n != 1 {
		t.Errorf("the first bounce after the end counts as %d", n)
	}
	if len(list(`{"state":"deleted"}`)) != 1 || len(list(`{"state":"active"}`)) != 2 {
		t.Error("a deleted bounce is counted on")
	}
	w.Want(204, resourcetest.SuperAdmin, "DELETE", path, "")
	w.Want(404, resourcetest.SuperAdmin, "GET", path, "")
}

func TestBouncesHaveTheirRoutes(t *testing.T) {
	b := bounces.New(control.New(storetest.Open(t)), "press", clock.System{})
	w := resourcetest.Router{T: t, Routes: b.Routes(), From: "127.0.0.1"}
	admin := resourcetest.SuperAdmin
	created := w.Want(200, admin, "POST", "/bounces", `{"channel":"email","userChannelId":"a@example.org","own":1,"latestNotificationStarted":"2026-01-01T00:00:00.000Z"}`)
	if created["hardBounceCount"] != 0.0 || created["state"] != "active" || created["own"] != 1.0 {
		t.Errorf("created %v", created)
	}
	for _, body := range []string{`{"channel":"email"}`, `{"channel":"email","userChannelId":"a","state":"new"}`, `{"channel":"email","userChannelId":"a","hardBounceCount":-1}`, `{"channel":"email","userChannelId":"a","bounceMessages":1}`} {
		w.Want(400, admin, "POST", "/bounces", body)
	}
	path := "/bounces/" + created["id"].(string)
	w.Want(204, admin, "PUT", path, `{"channel":"email","userChannelId":"b@example.org","hardBounceCount":3}`)
	if got := w.Want(200, admin, "GET", path, ""); got["own"] != nil || got["hardBounceCount"] != 3.0 {
		t.Errorf("replaced %v", got)
	}
	if n := w.Want(200, admin, "PATCH", "/bounces?where="+url.QueryEscape(`{"hardBounceCount":3}`), `{"state":"deleted"}`)["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	if n := w.Want(200, admin, "GET", "/bounces/count?where="+url.QueryEscape(`{"state":"deleted"}`), "")["count"]; n != 1.0 {
		t.Errorf("count %v", n)
	}
	for _, route := range b.Routes() {
		w.Want(403, resourcetest.Admin, route.Method, strings.Replace(route.Path, "{id}", "x", 1), "{}")
	}
}
