package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// An error names the invalid member of a request, and nothing of the request is stored.
func TestBadInputIsNamedAndNothingOfItIsKept(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("reader@example.org")
	subscription := func(more string) string {
		return `{"topic":"story","channel":"email","to":"other@example.org",` + more + `}`
	}
	for _, test := range []struct {
		name, method, path, contentType, body string
		status                                int
		want                                  member // empty fields are not compared; texts must be contained
	}{
		{"unknown topic of an event", "POST", "/v1/topics/storry/events", plain, `{"title":"x"}`, 404, member{Code: "not_found", Detail: "storry"}},
		{"unknown topic of a subscription", "POST", "/v1/subscriptions", plain, `{"topic":"storry","channel":"email","to":"a@example.org"}`, 422, member{Pointer: "/topic", Detail: "storry", Hint: "story"}},
		{"unknown channel", "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"emial","to":"a@example.org"}`, 422, member{Pointer: "/channel", Detail: "emial", Hint: "email"}},
		{"schema violation", "POST", "/v1/topics/story/events", plain, `{"title":"x","level":"high"}`, 422, member{Code: "invalid", Pointer: "/level"}},
		{"missing field of the schema", "POST", "/v1/topics/story/events", plain, `{"level":1}`, 422, member{Pointer: "/data/title", Detail: "missing"}},
		{"data that is not JSON", "POST", "/v1/topics/story/events", plain, "{\"title\":\n \"x\",}", 422, member{Line: 2, Column: 6}},
		{"syntax error in a filter", "POST", "/v1/subscriptions", plain, subscription(`"filter":"event.level >\n== 3"`), 422, member{Pointer: "/filter", Line: 2, Column: 1}},
		{"field that the schema lacks", "POST", "/v1/subscriptions", plain, subscription(`"filter":"event.lvel > 3"`), 422, member{Pointer: "/filter", Line: 1, Detail: "lvel", Hint: "level"}},
		{"filter that compares unlike things", "POST", "/v1/subscriptions", plain, subscription(`"filter":"event.title > 3"`), 422, member{Pointer: "/filter"}},
		{"unknown rule", "POST", "/v1/subscriptions", plain, subscription(`"rule":"lvel"`), 422, member{Pointer: "/rule", Detail: "lvel"}},
		{"missing param of a rule", "POST", "/v1/subscriptions", plain, subscription(`"rule":"level"`), 422, member{Detail: "from"}},
		{"param of a wrong type", "POST", "/v1/subscriptions", plain, subscription(`"rule":"level","params":{"from":"high"}`), 422, member{Pointer: "/params/from"}},
		{"invalid address", "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"nobody"}`, 422, member{Pointer: "/to"}},
		{"line end in an address", "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"a@example.org\r\nBcc: b@example.org"}`, 422, member{Pointer: "/to"}},
		{"unknown field", "POST", "/v1/subscriptions", plain, subscription(`"fitler":"true"`), 422, member{Pointer: "/fitler"}},
		{"id like one of ours", "PUT", "/v1/subscriptions/sub-1", plain, subscription(`"locale":"en"`), 422, member{Pointer: "/id"}},
		{"body over the limit", "POST", "/v1/topics/story/events", plain, `{"title":"` + strings.Repeat("x", 2<<20) + `"}`, 413, member{Code: "too_large"}},
		{"data over the limit", "POST", "/v1/topics/story/events", plain, `{"title":"` + strings.Repeat("x", 300<<10) + `"}`, 413, member{Code: "too_large", Hint: "262144"}},
		{"body of an unknown type", "POST", "/v1/topics/story/events", "text/csv", "a,b", 422, member{Detail: "text/csv"}},
		{"unknown query parameter", "POST", "/v1/topics/story/events?lain=urgent", plain, `{"title":"x"}`, 422, member{Detail: "lain"}},
		{"unknown lane", "POST", "/v1/topics/story/events?lane=fast", plain, `{"title":"x"}`, 422, member{Detail: "fast", Hint: "urgent"}},
		{"CloudEvent without a source", "POST", "/v1/events", cloudevent, `{"specversion":"1.0","id":"1","type":"story","data":{"title":"x"}}`, 422, member{Pointer: "/source"}},
		{"one bad event of a batch", "POST", "/v1/events", cloudbatch,
			`[{"specversion":"1.0","id":"1","source":"/a","type":"story","data":{"title":"x"}},{"specversion":"1.0","id":"2","source":"/a","type":"story","data":{"title":7}}]`,
			422, member{Pointer: "/1/data/title"}},
		{"line end in the sender of a channel", "POST", "/v1/apply", yaml, "service: news\nchannels:\n  email: {driver: smtp, relay: \"127.0.0.1:25\", from: \"News\\r\\nBcc: b@example.org <news@example.org>\"}\n", 422, member{Line: 3, Pointer: "/channels/email/from"}},
		{"line end in a list id", "POST", "/v1/apply", yaml, "service: news\nchannels:\n  email: {driver: smtp, relay: \"127.0.0.1:25\", from: \"news@example.org\", list_id: \"a\\nb\"}\n", 422, member{Line: 3, Pointer: "/channels/email/list_id"}},
		{"unknown key of a document", "POST", "/v1/apply", yaml, "service: news\ntopics:\n  story:\n    templat: story\n", 422, member{Line: 4, Hint: "template"}},
		{"document that is not YAML", "POST", "/v1/apply", yaml, "service: news\ntopics: [\n", 422, member{Code: "invalid"}},
		{"unknown event", "GET", "/v1/events/evt-20200101-1001", "", "", 404, member{Code: "not_found"}},
		{"delivery for an event", "GET", "/v1/events/dlv-20200101-40016-0", "", "", 404, member{Hint: "use the id of its event"}},
		{"address for an event", "GET", "/v1/events/ada@example.org", "", "", 404, member{Hint: "trace --subscriber"}},
		{"address for a subscriber", "GET", "/v1/subscribers/ada@example.org", "", "", 404, member{Hint: "subscriber list --address"}},
		{"address for a subscription", "GET", "/v1/subscriptions/ada@example.org", "", "", 404, member{Hint: "subscription list --subscriber"}},
		{"unknown parameter of a list", "GET", "/v1/events?limt=3", "", "", 422, member{Detail: "limt", Hint: "limit"}},
		{"unknown subscription", "DELETE", "/v1/subscriptions/none", "", "", 404, member{Code: "not_found"}},
		{"unknown path", "GET", "/v1/storries", "", "", 404, member{Code: "not_found"}},
		{"unknown method", "PATCH", "/v1/status", "", "", 405, member{}},
		{"pause of nothing", "POST", "/v1/pause", plain, `{"scope":{"kind":"world","name":"x"}}`, 422, member{Pointer: "/scope/kind"}},
		{"pause of another service", "POST", "/v1/pause", plain, `{"scope":{"kind":"service","name":"nwes"}}`, 422, member{Pointer: "/scope"}},
		{"pause of an unknown channel", "POST", "/v1/pause", plain, `{"scope":{"kind":"channel","name":"news/emial"}}`, 404, member{Detail: "emial"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := *s.http
			c.t = t
			got := c.refused(test.status, test.method, test.path, test.contentType, test.body)
			if test.status != 405 && got.Code == "" {
				t.Errorf("no code in %+v", got)
			}
			if len(got.Errors) == 1 && got.Pointer == "" && got.Line == 0 {
				got = got.Errors[0] // a list of one
			}
			for _, text := range [...]struct{ what, got, want string }{
				{"code", got.Code, test.want.Code}, {"detail", got.Detail, test.want.Detail}, {"pointer", got.Pointer, test.want.Pointer}, {"hint", got.Hint + " " + got.Detail, test.want.Hint},
			} {
				if !strings.Contains(text.got, text.want) {
					t.Errorf("%s: got %q, want %q in it: %+v", text.what, text.got, text.want, got)
				}
			}
			if test.want.Line != 0 && got.Line != test.want.Line || test.want.Column != 0 && got.Column != test.want.Column {
				t.Errorf("got line %d, column %d, want %d, %d: %+v", got.Line, got.Column, test.want.Line, test.want.Column, got)
			}
		})
	}
	// A valid event is still delivered, and nothing else.
	s.http.completed(s.http.publish(`{"title":"good"}`))
	r.only("reader@example.org")
	if r.total() != 1 {
		t.Errorf("%d mails left", r.total())
	}
	if changes := s.mustRun(news(r.addr, ""), "apply", "-f", "-"); !strings.Contains(changes, "no changes") {
		t.Errorf("a refused document changed something: %s", changes)
	}
}

// Line ends in what becomes a header field cannot add a field.
func TestLineEndsInAnEventDoNotReachTheHeader(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("reader@example.org")
	s.http.completed(s.http.publish(`{"title":"plain"}`))
	want, _ := headerOf(r.one("reader@example.org"))
	for _, title := range []string{`a\r\nBcc: b@example.org`, `a\nX-Added: yes`, `a\r\n\r\nbody`, `a\u0000b`, `a\u2028X-Added: yes`, `ä\r\n X: 1`} {
		before := r.total()
		s.http.completed(s.http.publish(`{"title":"` + title + `"}`))
		mails := r.of("reader@example.org")
		if len(mails) != before+1 {
			t.Fatalf("title %s: %d mails, want %d", title, len(mails), before+1)
		}
		header, _ := headerOf(mails[before])
		if len(header) != len(want) {
			t.Errorf("title %s: the header has %d fields, want %d: %q", title, len(header), len(want), header)
		}
		for _, line := range header {
			if strings.HasPrefix(line, "Bcc:") || strings.HasPrefix(line, "X-Added:") {
				t.Errorf("title %s made the field %q", title, line)
			}
		}
		if field(mails[before], "To") != field(mails[0], "To") {
			t.Errorf("title %s: To is %q", title, field(mails[before], "To"))
		}
	}
}

// A template that cannot be written, or that reads what no event has, is found
// when it is applied, and the whole document is refused.
func TestTemplateErrorsAreFoundAtApply(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	before := s.mustRun("", "status", "--json")
	for _, test := range []struct {
		name, text string
		line       int
		detail     string
	}{
		{"syntax", "Hello\n{% if event.title %}\nno end\n", 2, "if"},
		{"unknown tag", "Hello\n\n{% iff event.title %}\n", 3, "iff"},
		{"unknown filter", "Hello\n{{ event.title | upcaze }}\n", 2, "upcaze"},
		{"variable that the schema lacks", "Hello\n{{ event.titel }}\n", 2, "titel"},
		{"unknown root", "{{ evnt.title }}\n", 1, "evnt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			document := strings.Replace(news(r.addr, "rate: 7/s"), "templates:\n", "templates:\n  broken:\n    subject: x\n    text: \""+
				strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(test.text)+"\"\n", 1)
			document = strings.Replace(document, "template: story", "template: broken", 1)
			c := *s.http
			c.t = t
			got := c.refused(422, "POST", "/v1/apply", yaml, document)
			if len(got.Errors) > 0 {
				got = got.Errors[0]
			}
			if got.Line != test.line || !strings.Contains(got.Detail+got.Pointer, test.detail) {
				t.Errorf("got %+v, want line %d and %q", got, test.line, test.detail)
			}
			ran := s.run(document, "apply", "-f", "-")
			if ran.code != 1 || !strings.Contains(ran.err, test.detail) || ran.out != "" {
				t.Errorf("the command line ended with %d: %s%s", ran.code, ran.out, ran.err)
			}
		})
	}
	if after := s.mustRun("", "status", "--json"); channelsOf(t, after) != channelsOf(t, before) {
		t.Errorf("the status changed from %s to %s", before, after)
	}
	if changes := s.mustRun(news(r.addr, ""), "apply", "-f", "-"); !strings.Contains(changes, "no changes") {
		t.Errorf("a refused document changed something: %s", changes)
	}
	s.subscribe("reader@example.org")
	s.http.completed(s.http.publish(`{"title":"still the old one"}`))
	if mail := r.one("reader@example.org"); !strings.Contains(mail, "this is still the old one") {
		t.Errorf("got %s", mail)
	}
}

func channelsOf(t *testing.T, status string) string {
	t.Helper()
	return string(into[struct{ Channels jsonText }](t, status).Channels)
}

type jsonText []byte

func (j *jsonText) UnmarshalJSON(b []byte) error { *j = append(*j, b...); return nil }
