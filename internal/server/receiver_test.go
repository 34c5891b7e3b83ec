package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A channel with one receiver sends its authorization to nobody else, and a message can be any JSON document.
func TestChannelWithOneReceiverSendsToNobodyElse(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("Bearer of-the-receiver\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  status: {driver: webhook, url: %q, allow_http: true, authorization_file: %q, retry: [1s]}
`, h.URL+"/status", token))
	message := func(to string) string {
		return fmt.Sprintf(`{"channel":"status","to":%q,"content":{"json":"{\"id\":{{ event.id | json }},\"all\":{{ event | json }}}"},"data":{"id":"a \"b\""}}`, to)
	}
	if code, answer := s.call("POST", "/v1/messages", "application/json", message(h.URL+"/other")); code != 422 && code != 400 || !strings.Contains(answer, "one receiver") {
		t.Errorf("another receiver: %d %s", code, answer)
	}
	s.must(201, "POST", "/v1/messages", "application/json", message(h.URL+"/status"))
	s.eventually("the document", func() bool { return len(h.all()) == 1 })
	one := h.all()[0]
	if want := `{"id":"a \"b\"","all":{"id":"a \"b\""}}`; one.body != want || one.path != "/status" || one.head.Get("Authorization") != "Bearer of-the-receiver" {
		t.Errorf("got %s %v %s, want %s", one.path, one.head, one.body, want)
	}
	if code, answer := s.call("POST", "/v1/apply", "application/yaml", `{service: news, channels: {status: {driver: webhook, authorization_env: X}}}`); code != 422 && code != 400 || !strings.Contains(answer, "only valid with url") {
		t.Errorf("an authorization for everybody: %d %s", code, answer)
	}
}
