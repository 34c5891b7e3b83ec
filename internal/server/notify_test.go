package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
)

// notifyClient signs requests as clients of GOV.UK Notify do, with the standard library only.
type notifyClient struct {
	t            *testing.T
	base, key    string
	service, hmc string // parts of the key
}

func newNotifyClient(t *testing.T, base, key string) *notifyClient {
	t.Helper()
	if len(key) < 74 {
		t.Fatalf("the key is %q", key)
	}
	return &notifyClient{t, base, key, key[len(key)-73 : len(key)-37], key[len(key)-36:]}
}

// jwt signs claims.
func jwt(header, claims, secret string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

func (c *notifyClient) token() string {
	return jwt(`{"typ":"JWT","alg":"HS256"}`, fmt.Sprintf(`{"iss":%q,"iat":%d}`, c.service, time.Now().Unix()), c.hmc)
}

// raw sends a request with an Authorization header.
func (c *notifyClient) raw(method, path, body, authorization string) (int, string, http.Header) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func (c *notifyClient) call(method, path, body string) (int, string) {
	c.t.Helper()
	status, answer, _ := c.raw(method, path, body, "Bearer "+c.token())
	return status, answer
}

// must is call, and reads the answer.
func (c *notifyClient) must(status int, method, path, body string) map[string]any {
	c.t.Helper()
	got, answer := c.call(method, path, body)
	if got != status {
		c.t.Fatalf("%s %s: got %d, want %d: %s", method, path, got, status, answer)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(answer), &object); err != nil {
		c.t.Fatalf("%v: %s", err, answer)
	}
	return object
}

// refused sends a request that must be refused with these entries.
func (c *notifyClient) refused(status int, method, path, body string, entries ...string) {
	c.t.Helper()
	got, answer := c.call(method, path, body)
	c.isError(status, got, answer, method+" "+path+" "+body, entries...)
}

func (c *notifyClient) isError(status, got int, answer, what string, entries ...string) {
	c.t.Helper()
	var e struct {
		StatusCode int `json:"status_code"`
		Errors     []struct{ Error, Message string }
	}
	if err := json.Unmarshal([]byte(answer), &e); err != nil {
		c.t.Errorf("%s: %v: %s", what, err, answer)
		return
	}
	var texts []string
	for _, one := range e.Errors {
		texts = append(texts, one.Error+": "+one.Message)
	}
	if got != status || e.StatusCode != status || strings.Join(texts, "\n") != strings.Join(entries, "\n") {
		c.t.Errorf("%s: got %d %s, want %d %q", what, got, answer, status, entries)
	}
}

const (
	notifyService  = "c5d4bd0c-8e5f-4d1f-a8d6-1b0f4f0d1a11"
	notifyTemplate = "0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01"
	notifyText     = "0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c02"
	unknownID      = "0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9cff"
	notifyReply    = "1b5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01"
	notifySender   = "1b5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c02"
)

// startNotify starts a server with a service that is open to clients of GOV.UK Notify.
func startNotify(t *testing.T, settings string) (*testServer, *hook) {
	t.Helper()
	s := &testServer{t: t, dir: t.TempDir(), change: func(c *config.Config) { c.NotifyListen = "127.0.0.1:0" }}
	s.sink = sink.New(sink.Config{KeepFirst: 50})
	addr, err := s.sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = addr.String()
	go func() {
		if err := s.sink.Serve(); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.sink.Close() })
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	h := startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
title: News of York
notify:
  id: %s
  email: email
  sms: texts
  team: [ada@example.org, 07700 900 100]
  guest_list: [guest@example.org]
  reply_to: [{id: %s, address: replies@example.org}, {id: 1b5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c03, address: default@example.org, default: true}]
  sms_senders: [{id: %s, address: YORK}]
%s
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, retry: [1s]}
  texts: {driver: webhook, addresses: phone, url: %q, allow_http: true, retry: [1s]}
templates:
  welcome: {id: %s, title: Welcome mail, syntax: notify, subject: "Hello ((name))", markdown: "# Welcome ((name))\n\n((topics))\n\n((member??You are a member.))"}
  code: {id: %s, type: sms, syntax: notify, text: "Your code is ((code))"}
  derived: {syntax: notify, subject: "No id", markdown: "Plain"}
  liquid: {subject: "Liquid", text: "{{ event.x }}"}
`, notifyService, notifyReply, notifySender, settings, s.addr, h.URL+"/sms", notifyTemplate, notifyText))
	return s, h
}

// notifyKey creates a key.
func (s *testServer) notifyKey(kind string) (id string, c *notifyClient) {
	s.t.Helper()
	var made struct{ ID, Key string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/keys", "application/json", fmt.Sprintf(`{"service":"news","notify":%q,"name":"my %s key"}`, kind, kind))), &made); err != nil {
		s.t.Fatal(err)
	}
	return made.ID, newNotifyClient(s.t, s.app.NotifyURL(), made.Key)
}

func TestNotifyClientSendsAMail(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("live")
	answer := c.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":"Bob@Example.org","template_id":%q,"reference":"order 7",
		"personalisation":{"Name":"Bob & \"Co\"","topics":["floods","fires"],"member":true},"email_reply_to_id":%q,"one_click_unsubscribe_url":"https://example.org/u?t=1"}`, notifyTemplate, notifyReply))
	id := answer["id"].(string)
	content := answer["content"].(map[string]any)
	if content["subject"] != "Hello Bob & “Co”" || content["body"] != "# Welcome Bob & \"Co\"\n\n\n\n* floods\n* fires\n\nYou are a member." || content["from_email"] != "news@example.org" || content["one_click_unsubscribe_url"] != "https://example.org/u?t=1" {
		t.Errorf("the content is %q", content)
	}
	if answer["reference"] != "order 7" || answer["uri"] != s.app.NotifyURL()+"/v2/notifications/"+id || answer["scheduled_for"] != nil || fmt.Sprint(answer["sanitised_content"]) != "map[]" ||
		fmt.Sprint(answer["template"]) != fmt.Sprintf("map[id:%s uri:%s/v2/template/%[1]s version:1]", notifyTemplate, s.app.NotifyURL()) {
		t.Errorf("got %v", answer)
	}
	s.eventually("the mail", func() bool { return s.sink.Stats().Unique == 1 })
	mail := string(s.sink.Messages()[0].Body)
	for _, part := range []string{"To: Bob@example.org", "Reply-To: replies@example.org", "List-Unsubscribe: <https://example.org/u?t=1>", "List-Unsubscribe-Post: List-Unsubscribe=One-Click", "Bob &amp; ", "floods"} {
		if !strings.Contains(mail, part) {
			t.Errorf("the mail lacks %q:\n%s", part, mail)
		}
	}
	var got map[string]any
	s.eventually("the status sending", func() bool {
		got = c.must(200, "GET", "/v2/notifications/"+strings.ToUpper(id), "")
		return got["status"] == "sending"
	})
	if got["id"] != id || got["email_address"] != "Bob@example.org" || got["phone_number"] != nil || got["type"] != "email" || got["reference"] != "order 7" || got["body"] != content["body"] ||
		got["subject"] != content["subject"] || got["sent_at"] == nil || got["completed_at"] != nil || got["one_click_unsubscribe"] != "https://example.org/u?t=1" || got["is_cost_data_ready"] != true || got["cost_in_pounds"] != 0.0 {
		t.Errorf("got %v", got)
	}
	if stamp, err := time.Parse("2006-01-02T15:04:05.000000Z", got["created_at"].(string)); err != nil || time.Since(stamp) > time.Minute {
		t.Errorf("created_at is %v", got["created_at"])
	}
	c.refused(400, "GET", "/v2/notifications/"+id+"/pdf", "", "BadRequestError: Notification is not a letter")
}

// Clients look up what they have just sent by its reference, and in the list.
func TestNotifyListContainsTheMessageThatWasJustSent(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("live")
	for i := range 50 {
		reference := fmt.Sprintf("order-%d", i)
		id := c.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":"bob@example.org","template_id":%q,"reference":%q,"personalisation":{"name":"Bob","topics":[],"member":false}}`, notifyTemplate, reference))["id"]
		for _, query := range []string{"reference=" + reference, "template_type=email"} {
			list := c.must(200, "GET", "/v2/notifications?"+query, "")["notifications"].([]any)
			if len(list) == 0 || list[0].(map[string]any)["id"] != id {
				t.Fatalf("message %d is not the first of %d with %s", i, len(list), query)
			}
		}
	}
}

func TestNotifyClientSendsATextMessage(t *testing.T) {
	s, h := startNotify(t, "  sms_prefix: true\n  report_accepted_as_delivered: immediately")
	_, c := s.notifyKey("live")
	answer := c.must(201, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":"07700 900 123","template_id":%q,"reference":"r","personalisation":{"code":"é “1” ’"},"sms_sender_id":%q}`, notifyText, notifySender))
	if content := fmt.Sprint(answer["content"]); content != `map[body:Your code is é "1" ' from_number:YORK]` {
		t.Errorf("the content is %s", content)
	}
	if _, has := answer["sanitised_content"]; has {
		t.Error("a text message has no sanitised_content")
	}
	s.eventually("the text message", func() bool { return len(h.all()) == 1 })
	var sent map[string]string
	if err := json.Unmarshal([]byte(h.all()[0].body), &sent); err != nil {
		t.Fatal(err)
	}
	delete(sent, "id")
	if fmt.Sprint(sent) != `map[from:YORK reference:r text:News of York: Your code is é "1" ' to:+447700900123]` {
		t.Errorf("the provider got %v", sent)
	}
	s.eventually("the status delivered", func() bool {
		got := c.must(200, "GET", "/v2/notifications/"+answer["id"].(string), "")
		return got["status"] == "delivered" && got["completed_at"] != nil && got["phone_number"] == "07700 900 123" && got["subject"] == nil &&
			fmt.Sprint(got["cost_details"]) == "map[billable_sms_fragments:1 international_rate_multiplier:1 sms_rate:0]"
	})
}

func TestNotifyAuthErrors(t *testing.T) {
	s, _ := startNotify(t, "")
	id, c := s.notifyKey("live")
	_, other := s.notifyKey("live") // so that several keys are tried
	const header = `{"typ":"JWT","alg":"HS256"}`
	claims := func(iss string, at time.Time) string { return fmt.Sprintf(`{"iss":%q,"iat":%d}`, iss, at.Unix()) }
	now := time.Now()
	for name, one := range map[string]struct {
		authorization string
		status        int
		message       string
	}{
		"no header":       {"", 401, "Unauthorized: authentication token must be provided"},
		"another scheme":  {"Basic eDp5", 401, "Unauthorized: authentication bearer scheme must be used"},
		"no JWT":          {"Bearer something", 403, "Invalid token: token is not valid"},
		"a key of /v1":    {"Bearer " + s.key, 403, "Invalid token: token is not valid"},
		"no iss":          {"Bearer " + jwt(header, `{"iat":1}`, c.hmc), 403, "Invalid token: iss field not provided"},
		"iss no UUID":     {"Bearer " + jwt(header, claims("news", now), c.hmc), 403, "Invalid token: service id is not the right data type"},
		"unknown service": {"Bearer " + jwt(header, claims(unknownID, now), c.hmc), 403, "Invalid token: service not found"},
		"old":             {"Bearer " + jwt(header, claims(c.service, now.Add(-32*time.Second)), c.hmc), 403, "Error: Your system clock must be accurate to within 30 seconds"},
		"ahead":           {"Bearer " + jwt(header, claims(c.service, now.Add(34*time.Second)), c.hmc), 403, "Error: Your system clock must be accurate to within 30 seconds"},
		"none":            {"Bearer " + jwt(`{"alg":"none"}`, claims(c.service, now), c.hmc), 403, "Invalid token: algorithm used is not HS256"},
		"RS256":           {"Bearer " + jwt(`{"alg":"RS256"}`, claims(c.service, now), c.hmc), 403, "Invalid token: algorithm used is not HS256"},
		"another secret":  {"Bearer " + jwt(header, claims(c.service, now), unknownID), 403, "Invalid token: API key not found"},
	} {
		for _, route := range []string{"GET /v2/notifications", "POST /v2/notifications/email", "GET /v2/templates", "GET /v2/received-text-messages"} {
			method, path, _ := strings.Cut(route, " ")
			status, answer, head := c.raw(method, path, "", one.authorization)
			c.isError(one.status, status, answer, name+" "+route, "AuthError: "+one.message)
			if head.Get("Content-Type") != "application/json" {
				t.Errorf("%s: the type is %s", name, head.Get("Content-Type"))
			}
		}
	}
	if status, _, _ := c.raw("GET", "/v2/templates", "", "bEaReR "+c.token()); status != 200 {
		t.Errorf("the scheme in another case: %d", status)
	}
	s.must(204, "DELETE", "/v1/keys/"+id, "", "")
	c.refused(403, "GET", "/v2/templates", "", "AuthError: Invalid token: API key revoked")
	if status, answer := other.call("GET", "/v2/templates", ""); status != 200 {
		t.Errorf("the other key: %d %s", status, answer)
	}
	if listed := s.must(200, "GET", "/v1/keys", "", ""); strings.Contains(listed, `"`+id+`"`) || strings.Count(listed, `"notify":"live"`) != 1 {
		t.Errorf("the keys are %s", listed)
	}
	for _, secret := range []string{c.key, c.hmc, other.key, other.hmc, other.token()} { // never a key of /v1
		mine := s.key
		s.key = secret
		if code, answer := s.call("GET", "/v1/services", "", ""); code != 401 {
			t.Errorf("a Notify key opens /v1: %d %s", code, answer)
		}
		s.key = mine
	}
}

func TestNotifyKeysSurviveARestartAndANewSeal(t *testing.T) {
	s, _ := startNotify(t, "")
	existing := "old_key-" + notifyService + "-7fd9bb1c-2b0a-4a8d-9d8a-1c5c9a0a7a01"
	registered := s.must(201, "POST", "/v1/keys", "application/json", fmt.Sprintf(`{"service":"news","notify":"team","secret":%q}`, existing))
	if !strings.Contains(registered, `"name":"old_key"`) || !strings.Contains(registered, existing) {
		t.Errorf("got %s", registered)
	}
	if code, answer := s.call("POST", "/v1/keys", "application/json", fmt.Sprintf(`{"service":"news","notify":"team","secret":%q}`, existing)); code != 409 {
		t.Errorf("the same key again: %d %s", code, answer)
	}
	wrong := strings.Replace(existing, notifyService, unknownID, 1)
	if code, answer := s.call("POST", "/v1/keys", "application/json", fmt.Sprintf(`{"service":"news","notify":"team","secret":%q}`, wrong)); code != 422 && code != 400 || !strings.Contains(answer, "notify.id") {
		t.Errorf("the key of another service: %d %s", code, answer)
	}
	s.operator = true
	if answer := s.must(200, "POST", "/v1/reseal", "", ""); !strings.Contains(answer, `"keys":1`) {
		t.Errorf("got %s", answer)
	}
	s.operator = false
	for range 2 {
		c := newNotifyClient(t, s.app.NotifyURL(), existing)
		c.must(200, "GET", "/v2/templates", "")
		if err := s.app.Stop(); err != nil {
			t.Fatal(err)
		}
		s.open()
	}
}

func TestNotifyKeyReachesNothingOutsideItsService(t *testing.T) {
	s, _ := startNotify(t, "")
	s.operator = true
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: taxes
notify: {email: email}
channels:
  email: {driver: smtp, relay: %q, from: "Taxes <taxes@example.org>"}
templates:
  mine: {id: 0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa, syntax: notify, subject: Taxes, markdown: Pay}
`, s.addr))
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/keys", "application/json", `{"service":"taxes","notify":"live"}`)), &made); err != nil {
		t.Fatal(err)
	}
	s.operator = false
	_, news := s.notifyKey("live")
	taxes := newNotifyClient(t, s.app.NotifyURL(), made.Key)
	sent := taxes.must(201, "POST", "/v2/notifications/email", `{"email_address":"b@example.org","template_id":"0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa"}`)
	id := sent["id"].(string)
	taxes.must(200, "GET", "/v2/notifications/"+id, "")
	news.refused(404, "GET", "/v2/notifications/"+id, "", "NoResultFound: No result found")
	news.refused(404, "GET", "/v2/notifications/"+id+"/pdf", "", "NoResultFound: No result found")
	news.refused(404, "GET", "/v2/template/0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa", "", "NoResultFound: No result found")
	news.refused(404, "GET", "/v2/template/0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa/version/1", "", "NoResultFound: No result found")
	news.refused(404, "POST", "/v2/template/0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa/preview", "{}", "NoResultFound: No result found")
	news.refused(400, "POST", "/v2/notifications/email", `{"email_address":"b@example.org","template_id":"0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9caa"}`, "BadRequestError: Template not found")
	taxes.refused(400, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":"07700900123","template_id":%q}`, notifyText), "BadRequestError: Service is not allowed to send text messages")
	if list := news.must(200, "GET", "/v2/notifications?older_than="+id, ""); len(list["notifications"].([]any)) != 0 {
		t.Errorf("got %v", list)
	}
	if list := fmt.Sprint(news.must(200, "GET", "/v2/templates", "")); strings.Contains(list, "Taxes") {
		t.Errorf("got %v", list)
	}
	forged := jwt(`{"typ":"JWT","alg":"HS256"}`, fmt.Sprintf(`{"iss":%q,"iat":%d}`, taxes.service, time.Now().Unix()), news.hmc)
	status, answer, _ := news.raw("GET", "/v2/templates", "", "Bearer "+forged)
	news.isError(403, status, answer, "the key of another service", "AuthError: Invalid token: API key not found")
}
