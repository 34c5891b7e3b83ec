package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestAMessageThatCannotBeSentSaysWhyAtOnce(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	for name, c := range map[string]struct{ body, pointer, detail, hint string }{
		"unknown template":   {`{"channel":"email","to":"a@example.org","template":"receit"}`, "/template", `unknown template "receit"`, "did you mean receipt?"},
		"unknown version":    {`{"channel":"email","to":"a@example.org","template":"receipt@2"}`, "/template", `no version 2`, "its versions are 1"},
		"unknown channel":    {`{"channel":"emial","to":"a@example.org","template":"receipt"}`, "/channel", `unknown channel "emial"`, "did you mean email?"},
		"missing variable":   {`{"channel":"email","to":"a@example.org","template":"receipt","data":{"total":1}}`, "/data", "template receipt@1, subject: undefined variable event.order", "default"},
		"endless content":    {`{"channel":"email","to":"a@example.org","content":{"subject":"S","text":"{% assign a = 'aaaaaaaa' %}` + strings.Repeat("{% assign a = a | append: a %}", 45) + `"}}`, "/data", "larger than 4 MB; make it smaller", ""},
		"nobody":             {`{"channel":"email","template":"receipt"}`, "/to", "exactly one of to", "recipients"},
		"two ways":           {`{"channel":"email","to":"a@example.org","recipients":[{"to":"b@example.org"}],"template":"receipt"}`, "/to", "exactly one of to", ""},
		"no address":         {`{"channel":"email","to":"a","template":"receipt","data":{"order":1,"total":1}}`, "/to", "\"a\" is not an email address: it has no @", ""},
		"line break":         {`{"channel":"email","to":"a@example.org\r\nBcc: b@example.org","template":"receipt","data":{"order":1,"total":1}}`, "/to", "line break", ""},
		"unknown subscriber": {`{"channel":"email","subscriber":"per-77","template":"receipt","data":{"order":1,"total":1}}`, "/subscriber", "no subscriber", ""},
		"unknown field":      {`{"channel":"email","too":"a@example.org","template":"receipt"}`, "", "too", ""},
		"unknown lane":       {`{"channel":"email","to":"a@example.org","template":"receipt","data":{"order":1,"total":1},"lane":"fast"}`, "", "fast", "urgent, normal or bulk"},
		"data":               {`{"channel":"email","to":"a@example.org","template":"receipt","data":[1]}`, "/data", "object", ""},
		"reference":          {`{"channel":"email","to":"a@example.org","template":"receipt","data":{"order":1,"total":1},"reference":"` + strings.Repeat("x", 201) + `"}`, "/reference", "reference", "200"},
		"both":               {`{"channel":"email","to":"a@example.org","template":"receipt","content":{"subject":"S","text":"T"}}`, "/template", "either template or content", ""},
	} {
		got := s.http.refused(422, "POST", "/v1/messages", plain, c.body)
		if got.Code != "invalid" || got.Pointer != c.pointer || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Hint, c.hint) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	good := `{"channel":"email","to":"a@example.org","template":"receipt","data":{"order":1,"total":1}}`
	for _, wait := range []string{"x", "-1s", "31s"} {
		if got := s.http.refused(422, "POST", "/v1/messages?wait="+wait, plain, good); !strings.Contains(got.Hint, "30s") {
			t.Errorf("wait=%s: %+v", wait, got)
		}
	}
	for _, key := range []string{`""`, "a b", strings.Repeat("k", 256), `a"b`} {
		if got := s.http.refused(422, "POST", "/v1/messages", plain, good, "Idempotency-Key", key); !strings.Contains(got.Hint, "UUID") {
			t.Errorf("key %s: %+v", key, got)
		}
	}
	if r.total() != 0 {
		t.Errorf("%d mails left", r.total())
	}
}

func TestMessagesOfAnotherServiceDoNotExist(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	m := s.http.message("?wait=30s", `{"channel":"email","to":"ada@example.org","template":"receipt","data":{"order":1,"total":1}}`, "Idempotency-Key", "k1")
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	foreign := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "games", "--name", "test")))
	for _, path := range []string{"/v1/messages/" + m.ID, "/v1/messages/" + m.Event, "/v1/events/" + m.ID, "/v1/messages/" + m.ID + "?wait=1s"} {
		if got := foreign.refused(404, "GET", path, "", ""); got.Code != "not_found" || strings.Contains(got.Detail+got.Hint, "news") {
			t.Errorf("%s: %+v", path, got)
		}
	}
	foreign.refused(422, "POST", "/v1/messages", plain, `{"channel":"email","to":"ada@example.org","template":"receipt"}`) // not its template
	id := s.http.deliveries(m.Event, "")[0].Subscriber
	foreign.refused(422, "POST", "/v1/messages", plain, `{"channel":"email","subscriber":"`+id+`","content":{"subject":"S","text":"T"}}`)
	// Its keys are apart, too.
	if got := foreign.message("?wait=30s", `{"channel":"email","to":"ada@example.org","content":{"subject":"S","text":"T"}}`, "Idempotency-Key", "k1"); got.ID == m.ID || got.Service != "games" {
		t.Errorf("got %+v", got)
	}
	nobody := s.http.with("")
	nobody.refused(401, "GET", "/v1/messages/"+m.ID, "", "")
	nobody.refused(401, "POST", "/v1/messages", plain, `{}`)
	s.subscribe("reader@example.org")
	event := s.http.publish(`{"title":"t"}`)
	s.http.completed(event)
	s.http.refused(404, "GET", "/v1/messages/"+event, "", "") // an event of a topic is no message
}

// Below the disk floor no message is taken; one that was taken before is still
// answered.
func TestADiskThatIsTooFullTakesNoMessage(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	body := `{"channel":"email","to":"ada@example.org","template":"receipt","data":{"order":1,"total":1}}`
	m := s.http.message("?wait=30s", body, "Idempotency-Key", "k1")
	s.mustStop()
	s.args = append(s.args, "--disk-floor", "900000GB")
	s.start()
	if got := s.http.refused(507, "POST", "/v1/messages", plain, strings.Replace(body, "ada@", "new@", 1)); got.Code != "disk_full" {
		t.Errorf("%+v", got)
	}
	if again := s.http.message("", body, "Idempotency-Key", "k1"); again.ID != m.ID {
		t.Errorf("the same key made %s, was %s", again.ID, m.ID)
	}
	if status, _, _ := s.http.send("GET", "/v1/subscribers/new@example.org/deliveries", "", ""); status != 404 || r.total() != 1 {
		t.Errorf("of the refused message: %d, %d mails", status, r.total())
	}
}
