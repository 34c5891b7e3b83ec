package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// A service gets one callback for each notification whose status is final, and none for callbacks.
func TestNotifyServiceGetsCallbacks(t *testing.T) {
	s, h := startNotify(t, "")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("Bearer of-the-service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	document := func(channel string) string {
		return fmt.Sprintf(`
service: news
notify: {email: email, sms: texts, report_accepted_as_delivered: immediately, callbacks: {delivery: %s}}
channels:
  status: {driver: webhook, url: %q, allow_http: true, authorization_file: %q, send_timeout: 5s, retry: [1s, 1s]}
`, channel, h.URL+"/callback", token)
	}
	if code, answer := s.call("POST", "/v1/apply", "application/yaml", document("email")); code != 422 && code != 400 {
		t.Errorf("a channel without a receiver: %d %s", code, answer)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", document("status"))
	_, live := s.notifyKey("live")
	_, test := s.notifyKey("test")
	send := func(c *notifyClient, to, reference string) string {
		t.Helper()
		return c.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":%q,"template_id":%q,"reference":%q,"personalisation":{"name":"Bob","topics":[],"member":false}}`, to, notifyTemplate, reference))["id"].(string)
	}
	ids := map[string]string{
		send(live, "bob@example.org", "order 7"):                "delivered bob@example.org order 7",
		send(test, "perm-fail@simulator.notify", "order 8"):     "permanent-failure perm-fail@simulator.notify order 8",
		send(test, "temp-fail@simulator.notify", "order 9"):     "temporary-failure temp-fail@simulator.notify order 9",
		send(test, "delivered@simulator.notify", "order \"9\""): `delivered delivered@simulator.notify order "9"`,
	}
	s.eventually("four callbacks", func() bool { return len(h.all()) >= len(ids) })
	for _, one := range h.all() {
		var body map[string]any
		if err := json.Unmarshal([]byte(one.body), &body); err != nil {
			t.Fatalf("%v: %s", err, one.body)
		}
		id, _ := body["id"].(string)
		if got := fmt.Sprintf("%v %v %v", body["status"], body["to"], body["reference"]); got != ids[id] {
			t.Errorf("%s: %s, want %q", id, got, ids[id])
		}
		delete(ids, id)
		if one.path != "/callback" || one.head.Get("Authorization") != "Bearer of-the-service" || one.head.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %v", one.path, one.head)
		}
		if body["notification_type"] != "email" || body["template_id"] != notifyTemplate || body["template_version"] != 1.0 || len(body) != 10 {
			t.Errorf("the callback is %s", one.body)
		}
		for _, name := range []string{"created_at", "completed_at"} {
			text, _ := body[name].(string)
			if _, err := time.Parse("2006-01-02T15:04:05.000000Z", text); err != nil {
				t.Errorf("%s is %v", name, body[name])
			}
		}
	}
	if len(ids) > 0 {
		t.Errorf("no callbacks for %v", ids)
	}
}

// A notification that would be reported as delivered later is reported as failed when it comes back before that, and as nothing else.
func TestNotifyCallbackIsWithdrawnWhenMailComesBack(t *testing.T) {
	s, h := startNotify(t, "")
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
notify: {email: email, sms: texts, report_accepted_as_delivered: after 1h, callbacks: {delivery: status}}
channels:
  status: {driver: webhook, url: %q, allow_http: true, retry: [1s, 1s]}
`, h.URL+"/callback"))
	_, live := s.notifyKey("live")
	back := live.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":"gone@example.org","template_id":%q,"personalisation":{"name":"Bob","topics":[],"member":false}}`, notifyTemplate))["id"].(string)
	kept := live.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":"bob@example.org","template_id":%q,"personalisation":{"name":"Bob","topics":[],"member":false}}`, notifyTemplate))["id"].(string)
	waiting := func(id string) (state string) {
		t.Helper()
		var found struct{ Messages []struct{ State string } }
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/messages?reference=notify-callback-"+id, "", "")), &found); err != nil || len(found.Messages) > 1 {
			t.Fatalf("%v: %+v", err, found)
		}
		if len(found.Messages) == 1 {
			state = found.Messages[0].State
		}
		return state
	}
	s.eventually("the callbacks wait", func() bool { return waiting(back) == "pending" && waiting(kept) == "pending" })
	var deliveries struct{ Deliveries []fanfare.Delivery }
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/subscribers/"+notifyBC{s}.subscriber("gone@example.org")+"/deliveries", "", "")), &deliveries); err != nil || len(deliveries.Deliveries) != 1 {
		t.Fatalf("%v: %+v", err, deliveries)
	}
	ref, _ := fanfare.ParseDeliveryRef(deliveries.Deliveries[0].ID)
	s.takeBack(ref, report("gone@example.org", "5.1.1", "550 5.1.1 User unknown"))
	s.eventually("a callback", func() bool { return len(h.all()) == 1 })
	if body := h.all()[0].body; !strings.Contains(body, back) || !strings.Contains(body, "permanent-failure") {
		t.Errorf("the callback is %s", body)
	}
	s.eventually("the other callback is withdrawn", func() bool { return waiting(back) == "cancelled" })
	if state := waiting(kept); state != "pending" {
		t.Errorf("the callback of another notification is %s", state)
	}
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/subscribers/"+notifyBC{s}.subscriber("bob@example.org")+"/deliveries", "", "")), &deliveries); err != nil || len(deliveries.Deliveries) != 1 {
		t.Fatalf("%v: %+v", err, deliveries)
	}
	ref, _ = fanfare.ParseDeliveryRef(deliveries.Deliveries[0].ID)
	s.takeBack(ref, bytes.ReplaceAll(report("bob@example.org", "2.0.0", "250 2.0.0 In the mailbox"), []byte("Action: failed"), []byte("Action: delivered")))
	s.eventually("a callback", func() bool { return len(h.all()) == 2 })
	if body := h.all()[1].body; !strings.Contains(body, kept) || !strings.Contains(body, `"status":"delivered"`) {
		t.Errorf("the callback is %s", body)
	}
	s.eventually("the callback that waits is withdrawn", func() bool { return waiting(kept) == "cancelled" })
}

// A file that was sent by link is part of the export of its recipient, and an erasure removes it.
func TestNotifyFilesAreExportedAndErased(t *testing.T) {
	s, _ := startNotify(t, "  contact: help@example.org")
	_, c := s.notifyKey("live")
	content := base64.StdEncoding.EncodeToString([]byte("the plan"))
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntemplates:\n  letter: {id: 2c5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01, syntax: notify, subject: A file, markdown: \"((file))\"}\n")
	sent := c.must(201, "POST", "/v2/notifications/email", `{"email_address":"ada@example.org","template_id":"2c5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01","personalisation":{"file":{"file":"`+content+`","filename":"plan.txt","confirm_email_before_download":false}}}`)
	body, _ := sent["content"].(map[string]any)["body"].(string)
	link, err := url.Parse(strings.TrimSpace(body))
	if err != nil || !strings.HasPrefix(link.Path, "/d/") {
		t.Fatalf("the body is %q: %v", body, err)
	}
	if status, _, _ := c.raw("GET", link.Path, "", ""); status != 200 {
		t.Fatalf("the download page answers with %d", status)
	}
	s.eventually("the mail, which is stored before", func() bool { return s.sink.Stats().Unique == 1 })
	id := notifyBC{s}.subscriber("ada@example.org")
	exported := s.must(200, "GET", "/v1/subscribers/"+id+"/export", "", "")
	if want := `"name":"plan.txt"`; !strings.Contains(exported, want) || !strings.Contains(exported, `"content":"`+content+`"`) || strings.Count(exported, `"type":"file"`) != 1 {
		t.Errorf("the export is\n%s", exported)
	}
	s.must(200, "POST", "/v1/subscribers/"+id+"/erase", "application/json", `{}`)
	if status, _, _ := c.raw("GET", link.Path, "", ""); status != 404 {
		t.Errorf("after the erasure, the download page answers with %d", status)
	}
}
