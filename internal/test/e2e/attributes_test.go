package e2e

import (
	"encoding/base64"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// The extension attributes of an event are kept: traces show them while the event waits and
// afterwards, and templates can use them.
func TestAttributesOfAnEventAreKept(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, `service: news
channels: {email: {driver: smtp, relay: "`+r.addr+`", from: "news@example.org", rate: unlimited}}
topics: {note: {template: note}}
templates: {note: {subject: "{{ meta.extensions.team }}: {{ event }}", text: "weight {{ meta.extensions.weight }}."}}
`)
	s.http.must(201, "POST", "/v1/subscriptions", plain, `{"topic":"note","channel":"email","to":"ada@example.org"}`)
	s.http.must(204, "POST", "/v1/pause", plain, `{"scope":{"kind":"service","name":"news"}}`)
	event := into[accepted](t, s.http.must(202, "POST", "/v1/topics/note/events", cloudevent,
		`{"specversion":"1.0","id":"n1","source":"/editor","type":"note","subject":"lunch","time":"2026-11-20T12:00:00Z",
		"datacontenttype":"text/plain","dataschema":"https://example.org/note","data":"soup & bread","team":"kitchen","weight":7,"hot":true}`)).Events[0].ID
	whole := func(b fanfare.Broadcast) bool {
		return b.Source == "/editor" && b.SourceID == "n1" && b.Type == "note" && b.Subject == "lunch" && b.Time.Hour() == 12 &&
			into[string](t, string(b.Data)) == "soup & bread" && b.ContentType == "text/plain" && b.DataSchema == "https://example.org/note" &&
			len(b.Extensions) == 3 && string(b.Extensions["team"]) == `"kitchen"` && string(b.Extensions["weight"]) == "7" && string(b.Extensions["hot"]) == "true"
	}
	if b := s.http.broadcast(event); !whole(b) {
		t.Errorf("before it is sent: %+v", b)
	}
	s.http.must(204, "POST", "/v1/resume", plain, `{"scope":{"kind":"service","name":"news"}}`)
	if b := s.http.completed(event); !whole(b) {
		t.Errorf("after it was sent: %+v", b)
	}
	mail := r.one("ada@example.org")
	if _, body := headerOf(mail); field(mail, "Subject") != "kitchen: soup & bread" || !strings.Contains(body, "weight 7.") {
		t.Errorf("the mail is %s", mail)
	}
	if shown := s.mustRun("", "trace", event); !strings.Contains(shown, `team`) || !strings.Contains(shown, `"kitchen"`) {
		t.Errorf("trace shows %s", shown)
	}

	picture := "\x89PNG\r\n\xff"
	event = into[accepted](t, s.http.must(202, "POST", "/v1/events", "image/png", picture,
		"ce-specversion", "1.0", "ce-id", "p1", "ce-source", "/editor", "ce-type", "note", "ce-team", "art%20hall", "ce-weight", "7")).Events[0].ID
	if b := s.http.completed(event); string(b.Binary) != picture || b.Data != nil || b.ContentType != "image/png" || string(b.Extensions["team"]) != `"art hall"` {
		t.Errorf("%s is not %s in %+v", b.Binary, base64.StdEncoding.EncodeToString([]byte(picture)), b)
	}
	eventually(t, "the second mail arrives", func() bool { return len(r.of("ada@example.org")) == 2 })
}
