package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// textsDocument is a service that sends text messages through a provider.
func textsDocument(t *testing.T, url string) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("Bearer of-the-provider\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
service: news
channels:
  texts: {driver: webhook, addresses: phone, url: %q, allow_http: true, authorization_file: %q, retry: [1s]}
topics:
  story: {template: story}
templates:
  story: {type: sms, text: "News: {{ event.title }}"}
`, url, token)
}

func TestTextMessageGoesToTheProvider(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", textsDocument(t, h.URL+"/send"))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"texts","to":"07700 900 123"}`)
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It \"works\""}`)
	s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"texts","to":"+1 (250) 555-0123","content":{"text":"Your code is {{ event.code }}"},"data":{"code":1234},"reference":"login-7"}`)
	s.eventually("two text messages", func() bool { return len(h.all()) == 2 })
	got := map[string]map[string]string{}
	for _, one := range h.all() {
		var document map[string]string
		if err := json.Unmarshal([]byte(one.body), &document); err != nil {
			t.Fatalf("%v: %s", err, one.body)
		}
		if one.path != "/send" || one.head.Get("Authorization") != "Bearer of-the-provider" || one.head.Get("Webhook-Id") != document["id"] || !strings.HasPrefix(document["id"], "dlv-") {
			t.Errorf("got %s %v %s", one.path, one.head, one.body)
		}
		delete(document, "id")
		got[document["to"]] = document
	}
	if want := `map[+12505550123:map[reference:login-7 text:Your code is 1234 to:+12505550123] +447700900123:map[text:News: It "works" to:+447700900123]]`; fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if preview := s.must(200, "POST", "/v1/templates/story/preview", "application/json", `{"data":{"title":"X"}}`); !strings.Contains(preview, `\"text\":\"News: X\"`) {
		t.Errorf("the preview is %s", preview)
	}
	if shown := s.must(200, "GET", "/v1/channels/texts", "", ""); strings.Contains(shown, "of-the-provider") || !strings.Contains(shown, `"addresses":"phone"`) {
		t.Errorf("the channel is shown as %s", shown)
	}
	if found := s.must(200, "GET", "/v1/subscribers?address=%2B447700900123", "", ""); !strings.Contains(found, `"kind":"phone"`) {
		t.Errorf("not found by its number: %s", found)
	}
	s.must(200, "POST", "/v1/suppressions", "application/json", `{"address":"+447700900123"}`)
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Nothing"}`)
	s.eventually("the suppressed message", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/subscribers/+447700900123/deliveries", "", ""), `"suppressed"`)
	})
}

func TestWrongTextChannelIsRefused(t *testing.T) {
	s := start(t, sink.Inject{})
	for settings, want := range map[string]string{
		`driver: webhook, addresses: phone`:                                                                         "url is missing",
		`driver: webhook, authorization_env: X`:                                                                     "only valid with url",
		`driver: webhook, addresses: phone, url: "http://sms.example.org/"`:                                         "does not use https",
		`driver: webhook, addresses: phone, url: "https://a:b@sms.example.org/"`:                                    "user name",
		`driver: webhook, addresses: phone, url: "https://s.example/", authorization_env: A, authorization_file: b`: "authorization",
	} {
		if code, answer := s.call("POST", "/v1/apply", "application/yaml", "service: news\nchannels: {texts: {"+settings+"}}\n"); code != 422 && code != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", settings, code, answer)
		}
	}
	for template, want := range map[string]string{
		`{type: sms, subject: a, text: b}`: "has no subject", `{type: sms, html: b}`: "has no html", `{type: sms}`: "has no text",
	} {
		if code, answer := s.call("POST", "/v1/apply", "application/yaml", "service: news\ntemplates: {one: "+template+"}\n"); code != 422 && code != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", template, code, answer)
		}
	}
}
