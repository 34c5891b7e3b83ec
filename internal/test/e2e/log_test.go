package e2e

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Logs contain no message bodies, addresses or secrets, even when something fails.
func TestLogHoldsNoSecretsNoBodiesAndNoAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		level     string
		addresses bool // may appear
	}{{"info", false}, {"debug", true}} {
		t.Run(test.level, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, sink.Config{Inject: sink.Inject{PermFail: 0.2, TempFail: 0.3, DropInData: 0.1, DropBeforeReply: 0.1}})
			s := prepare(t, "--log-level", test.level)
			s.env = []string{"RELAY_PASSWORD=pass-marker"}
			s.start()
			s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, retry: [1s, 1s]"))
			s.subscribe(crowd(50)...)
			s.http.subscribe(`{"topic":"story","channel":"email","to":"leaving@example.org","data":{"why":"data-marker"}}`)
			s.http.must(422, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"wrong@example.org","filter":"event.body-marker >"}`)
			s.http.must(422, "POST", "/v1/topics/story/events", plain, `{"title":"body-marker","level":"x"}`)
			s.http.with("key-marker").must(401, "GET", "/v1/status", "", "")
			key := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--name", "test"))
			s.http.with(key).must(200, "GET", "/v1/status", "", "")
			s.http.completed(s.http.publish(`{"title":"body-marker","place":"body-marker"}`))
			for _, mails := range [][]string{r.of("leaving@example.org")} {
				for _, mail := range mails {
					s.http.with("").must(200, "POST", strings.TrimPrefix(strings.Trim(field(mail, "List-Unsubscribe"), "<>"), "https://news.example.org"), "", "")
				}
			}
			s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, tls: \"off\", username: news, password_env: RELAY_PASSWORD"))
			s.http.publish(`{"title":"body-marker"}`)
			eventually(t, "the relay does not know how to log in", func() bool {
				return into[fanfareStatus](t, s.http.must(200, "GET", "/v1/status", "", "")).Channels[0].LastError != ""
			})
			status := s.http.must(200, "GET", "/v1/status", "", "")
			s.mustStop()
			log := s.logged() + status
			if !strings.Contains(log, "ready") {
				t.Errorf("the log is empty: %s", log)
			}
			secrets := map[string]string{"admin key": s.key, "key": key, "wrong key": "key-marker", "text": "body-marker", "data": "data-marker", "password": "pass-marker", "base64 of the password": "cGFzcy1tYXJrZXI"}
			if at, err := url.Parse(s.database); err == nil && at.User != nil {
				secrets["password of the database"], _ = at.User.Password()
			}
			for what, secret := range secrets {
				if strings.Contains(log, secret) {
					t.Errorf("the %s is in the log: %s", what, lineWith(log, secret))
				}
			}
			if !test.addresses && strings.Contains(strings.ReplaceAll(log, "news@example.org", ""), "@example.org") {
				t.Errorf("an address is in the log: %s", lineWith(log, "@example.org"))
			}
			if matches, err := filepath.Glob(s.path("*.key")); err != nil || len(matches) == 0 {
				t.Errorf("no keys in the data directory: %v", err)
			}
		})
	}
}

func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
