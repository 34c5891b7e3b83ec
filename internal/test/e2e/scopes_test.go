package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Keys are made, listed, rotated and revoked with the command line, and open
// what their scopes say. No secret is in the log.
func TestKeysDoWhatTheirScopesSay(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "", "--log-level", "debug")
	create := func(args ...string) string {
		return strings.TrimSpace(s.mustRun("", append([]string{"key", "create"}, args...)...))
	}
	publisher := create("--service", "news", "--scope", "publish", "--name", "newsdesk")
	website := create("--service", "news", "--scope", "subscribe,read", "--name", "website", "--expires-in", "1h")
	chief := create("--service", "news")
	watcher := create("--all-services", "--scope", "read")

	story, one := `{"title":"x"}`, `{"topic":"story","channel":"email","to":"a@example.org"}`
	for _, step := range []struct {
		key                             string
		status                          int
		method, path, contentType, body string
	}{
		{publisher, 202, "POST", "/v1/topics/story/events", plain, story},
		{publisher, 403, "POST", "/v1/subscriptions", plain, one},
		{publisher, 403, "GET", "/v1/status", "", ""},
		{website, 403, "POST", "/v1/topics/story/events", plain, story},
		{website, 201, "POST", "/v1/subscriptions", plain, one},
		{website, 200, "GET", "/v1/status", "", ""},
		{website, 403, "POST", "/v1/apply", yaml, "service: news\n"},
		{website, 403, "GET", "/v1/keys", "", ""},
		{chief, 200, "POST", "/v1/apply", yaml, "service: news\n"},
		{chief, 403, "POST", "/v1/apply", yaml, "service: games\n"},
		{chief, 204, "POST", "/v1/pause", plain, `{"scope":{"kind":"channel","name":"email"}}`},
		{chief, 204, "POST", "/v1/resume", plain, `{"scope":{"kind":"channel","name":"news/email"}}`},
		{chief, 403, "POST", "/v1/pause", plain, `{"scope":{"kind":"all"}}`},
		{chief, 200, "GET", "/v1/parked", "", ""},
		{watcher, 200, "GET", "/v1/status", "", ""},
		{watcher, 403, "POST", "/v1/keys", plain, `{"service":"news"}`},
	} {
		s.http.with(step.key).must(step.status, step.method, step.path, step.contentType, step.body)
	}

	list := s.mustRun("", "key", "list")
	for _, want := range []string{"newsdesk", "subscribe,read", "(all)", "never"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	id := strings.Fields(list[strings.Index(list, "\nkey-2")+1:])[0]
	rotated := strings.TrimSpace(s.mustRun("", "key", "rotate", id, "--grace", "1h"))
	for _, key := range []string{publisher, rotated} {
		s.http.with(key).must(202, "POST", "/v1/topics/story/events", plain, story)
	}
	again := strings.TrimSpace(s.mustRun("", "key", "rotate", id))
	for key, status := range map[string]int{publisher: 401, rotated: 401, again: 202} {
		s.http.with(key).must(status, "POST", "/v1/topics/story/events", plain, story)
	}
	s.mustRun("", "key", "revoke", id)
	s.mustStop()
	s.start()
	s.http.with(again).must(401, "POST", "/v1/topics/story/events", plain, story)
	s.http.with(website).must(200, "GET", "/v1/status", "", "")
	if ran := s.run("", "key", "revoke", "key-1"); ran.code != 1 || !strings.Contains(ran.err, "last valid operator key") {
		t.Errorf("the last key of the operator: %d %s", ran.code, ran.err)
	}
	for _, secret := range []string{publisher, website, chief, watcher, rotated, again, s.key} {
		if strings.Contains(s.logged(), secret) {
			t.Error("a secret is in the log")
		}
	}
}
