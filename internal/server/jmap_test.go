package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func TestPagesAndProgramsOpenMailboxesByJMAP(t *testing.T) {
	s := &testServer{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), sink: sink.New(sink.Config{})}
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\n")
	s.must(201, "PUT", "/v1/subscribers/joe", "application/json", `{"addresses":[{"kind":"mail","address":"joe@example.org"}]}`)

	const path = "/v1/mailboxes/joe@example.org/tokens"
	s.must(404, "POST", "/v1/mailboxes/nobody@example.org/tokens", "application/json", `{}`)
	s.must(422, "POST", path, "application/json", `{"lifetime":"2s"}`)
	s.must(422, "POST", path, "application/json", `{"lifetime":"soon"}`)
	s.must(422, "POST", path, "application/json", `{"origins":["*"]}`)
	var made struct{ Token, User string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", path, "application/json", `{"origins":["https://app.example.org"],"lifetime":"15m"}`)), &made); err != nil || made.User != "joe@example.org" {
		t.Fatalf("%+v, %v", made, err)
	}
	entries := s.must(200, "GET", "/v1/audit?kind=mailbox-token", "", "")
	for _, want := range []string{`"create"`, `"expires_at"`, `"https://app.example.org"`, `"news"`} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit log of tokens has no %s: %s", want, entries)
		}
	}
	if strings.Count(entries, `"mailbox-token"`) != 1 || strings.Contains(entries, made.Token) || strings.Contains(entries, "joe@") {
		t.Errorf("the audit log must have one entry for one token, without the token and the address: %s", entries)
	}
	var password struct{ Password string }
	if err := json.Unmarshal([]byte(s.must(201, "POST", "/v1/mailboxes/joe@example.org/app-passwords", "application/json", `{}`)), &password); err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string, edit func(*http.Request)) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.app.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		edit(r)
		response, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	logins := map[string]func(*http.Request){
		"token": func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+made.Token)
			r.Header.Set("Origin", "https://app.example.org")
		},
		"app password": func(r *http.Request) { r.SetBasicAuth("joe@example.org", password.Password) },
	}
	for name, login := range logins {
		status, text := ask("GET", "/jmap/session", "", login)
		var session struct {
			APIURL          string            `json:"apiUrl"`
			PrimaryAccounts map[string]string `json:"primaryAccounts"`
		}
		if err := json.Unmarshal([]byte(text), &session); err != nil || status != 200 || session.APIURL != s.app.URL()+"/jmap/api" {
			t.Fatalf("%s: the session is %d %s", name, status, text)
		}
		status, text = ask("POST", "/jmap/api", `{"using":["urn:ietf:params:jmap:mail"],"methodCalls":[["Mailbox/query",{"accountId":"`+session.PrimaryAccounts["urn:ietf:params:jmap:mail"]+`","filter":{"role":"inbox"}},"0"]]}`, login)
		if status != 200 || !strings.Contains(text, `"ids":["B1"]`) {
			t.Errorf("%s: the inbox is %d %s", name, status, text)
		}
	}
	if status, _ := ask("GET", "/jmap/session", "", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+made.Token)
		r.Header.Set("Origin", "https://evil.example.org")
	}); status != 403 {
		t.Errorf("another page: %d", status)
	}
	if status, text := ask("GET", "/v1/status", "", logins["token"]); status != 401 {
		t.Errorf("the token opens the API: %d %s", status, text)
	}
	metrics := s.must(200, "GET", "/metrics", "", "")
	for _, want := range []string{`fanfare_jmap_calls_total{method="Mailbox/query",result="ok"} 2`, `fanfare_jmap_logins_total{kind="token",result="ok"} 2`, `fanfare_jmap_running{kind="stream"} 0`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if status, _ := ask("GET", "/.well-known/jmap", "", func(*http.Request) {}); status != 307 {
		t.Errorf("discovery: %d", status)
	}
}
