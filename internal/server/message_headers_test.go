package server_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestMessageHasItsOwnReplyAddressAndUnsubscribeURL(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"email","to":"ada@example.org","content":{"subject":"Hi","text":"Hello"},
		"reply_to":"Grüße <help@example.org>","unsubscribe_url":"HTTPS://Example.org/u?t=1"}`)
	s.eventually("the mail", func() bool { return s.sink.Stats().Unique == 1 })
	mail := string(s.sink.Messages()[0].Body)
	for _, part := range []string{"Reply-To: =?utf-8?", "<help@example.org>", "List-Unsubscribe: <https://example.org/u?t=1>", "List-Unsubscribe-Post: List-Unsubscribe=One-Click"} {
		if !strings.Contains(mail, part) {
			t.Errorf("the mail lacks %q:\n%s", part, mail)
		}
	}
	for field, wrong := range map[string][]string{
		"reply_to":        {"nobody", "a@example.org, b@example.org", "a@example.org\\r\\nBcc: b@example.org", "a@b@c"},
		"unsubscribe_url": {"http://example.org/", "mailto:a@example.org", "https://example.org/\\r\\nX: y", "https://example.org/ x", "x"},
	} {
		for _, value := range wrong {
			code, answer := s.call("POST", "/v1/messages", "application/json", `{"channel":"email","to":"ada@example.org","content":{"subject":"Hi","text":"Hello"},"`+field+`":"`+value+`"}`)
			if code != 422 && code != 400 || !strings.Contains(answer, "/"+field) {
				t.Errorf("%s %s: %d %s", field, value, code, answer)
			}
		}
	}
	if got := s.sink.Stats().Unique; got != 1 {
		t.Errorf("%d mails were sent", got)
	}
}
