package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// hook is a receiver of webhooks that keeps its requests.
type hook struct {
	*httptest.Server
	mu   sync.Mutex
	got  []request
	next int // status of the next response; 0: 204
}

type request struct {
	path string
	head http.Header
	body string
}

func startHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, request{r.URL.Path, r.Header, string(body)})
		status := h.next
		h.next = 0
		w.WriteHeader(max(status, http.StatusNoContent))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) all() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]request(nil), h.got...)
}

const hooksDocument = `
service: news
channels:
  hook: {driver: webhook, allow_http: true, retry: [1s, 1s]}
topics:
  story:
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
`

func TestWebhookGetsASignedEvent(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", hooksDocument)
	s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"id":"ops/1","topic":"story","channel":"hook","to":"%s/a?b=c","rule":"level","params":{"from":3}}`, h.URL))
	h.next = http.StatusServiceUnavailable
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It \"works\"","level":4}`)
	s.eventually("a second attempt", func() bool { return len(h.all()) == 2 })
	first, second := h.all()[0], h.all()[1]
	if first.head.Get("Webhook-Id") == "" || first.head.Get("Webhook-Id") != second.head.Get("Webhook-Id") || first.body != second.body {
		t.Errorf("the attempts differ: %q %s and %q %s", first.head.Get("Webhook-Id"), first.body, second.head.Get("Webhook-Id"), second.body)
	}
	var document struct {
		Type string
		Data struct {
			Event         struct{ Data json.RawMessage }
			Service, Ref  string
			Subscriptions []struct {
				ID, Rule string
				Params   json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(first.body), &document); err != nil {
		t.Fatalf("%v: %s", err, first.body)
	}
	d := document.Data
	if document.Type != "story" || string(d.Event.Data) != `{"title":"It \"works\"","level":4}` || d.Service != "news" || !strings.HasPrefix(d.Ref, "evt-") ||
		len(d.Subscriptions) != 1 || d.Subscriptions[0].ID != "ops/1" || string(d.Subscriptions[0].Params) != `{"from":3}` {
		t.Errorf("got %s", first.body)
	}
	s.eventually("the broadcast to complete", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
}

func TestURLAddressIsNormalized(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", hooksDocument)
	spelled := strings.Replace(h.URL, "http://", "HTTP://", 1)
	s.must(201, "PUT", "/v1/subscribers/service", "application/json", fmt.Sprintf(`{"addresses":[{"kind":"url","address":%q}]}`, spelled))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"hook","subscriber":"service"}`)
	if answer := s.must(200, "GET", "/v1/subscribers?address="+h.URL+"/", "", ""); !strings.Contains(answer, `"service"`) {
		t.Errorf("not found by its address: %s", answer)
	}
	for _, wrong := range []string{"ada@example.org", "https://user:secret@example.org/", "https://example.org/#part", "ftp://example.org/", "https://0x7f.1/"} {
		code, answer := s.call("POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"story","channel":"hook","to":%q}`, wrong))
		if code != 422 && code != 400 || !strings.Contains(answer, "/to") {
			t.Errorf("%s: %d %s", wrong, code, answer)
		}
	}
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"level":1}`)
	s.eventually("the document", func() bool { return len(h.all()) == 1 })
}

func TestJSONTemplateMakesTheWebhookBody(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", hooksDocument+`
    template: story
templates:
  story: {json: '{"text": "{{ event.title }} for {{ subscriber.id }}"}'}
  note: {subject: "About {{ sub.what }}", text: "It is {{ sub.what }}."}
`)
	s.must(201, "PUT", "/v1/subscribers/service", "application/json", fmt.Sprintf(`{"addresses":[{"kind":"url","address":%q}]}`, h.URL))
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"hook","subscriber":"service"}`)
	shown := s.must(200, "POST", "/v1/templates/story/preview", "application/json", `{"channel":"hook","subscriber":"service","data":{"title":"A \"preview\""}}`)
	if !strings.Contains(shown, `{\"text\": \"A \\\"preview\\\" for service\"}`) {
		t.Errorf("the preview is %s", shown)
	}
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It \"works\""}`)
	s.eventually("the document", func() bool { return len(h.all()) == 1 })
	if got := h.all()[0].body; got != `{"text": "It \"works\" for service"}` {
		t.Errorf("got %s", got)
	}
	s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"hook","template":"note","recipients":[{"subscriber":"service","data":{"what":"a \"note\""}}]}`)
	s.eventually("the message", func() bool { return len(h.all()) == 2 })
	if got := h.all()[1].body; !strings.Contains(got, `"message":{"subject":"About a \"note\"","text":"It is a \"note\"."}`) || !strings.Contains(got, `"recipient":{"what":"a \"note\""}`) {
		t.Errorf("got %s", got)
	}
}

func TestReceiverSecretSurvivesRestart(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", hooksDocument)
	one := s.must(200, "GET", "/v1/channels/hook/secret?to="+h.URL+"/a", "", "")
	two := s.must(200, "GET", "/v1/channels/hook/secret?to="+h.URL+"/b", "", "")
	if !strings.Contains(one, `"whsec_`) || one == two {
		t.Errorf("%s and %s", one, two)
	}
	s.must(422, "GET", "/v1/channels/hook/secret?to=ada@example.org", "", "")
	s.must(404, "GET", "/v1/channels/none/secret?to="+h.URL, "", "")
	s.app.Stop()
	s.open()
	if again := s.must(200, "GET", "/v1/channels/hook/secret?to="+h.URL+"/a", "", ""); again != one {
		t.Errorf("after a restart it is %s, and was %s", again, one)
	}
}
