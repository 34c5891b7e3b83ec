package e2e

import (
	"encoding/json"
	"io"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

type preview struct {
	Template, Topic, To, Subject, Text, HTML, Raw string
	Data                                          json.RawMessage
	Sample                                        bool
}

// A preview is what would be sent, for a real person and event or made up ones.
func TestPreviewShowsWhatATemplateSays(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.subscribe(`{"id":"n1","topic":"story","channel":"email","to":"ada@example.org","rule":"near","params":{"place":"vienna"},"locale":"de-AT"}`)
	event := s.http.publish(`{"title":"Grüße","place":"Vienna"}`)
	s.http.completed(event)

	show := func(args ...string) preview {
		t.Helper()
		return into[preview](t, s.mustRun("", append([]string{"preview", "--json"}, args...)...))
	}
	if p := show("story"); !p.Sample || p.Topic != "story" || p.Template != "story@1" || p.Subject != "sample" || p.To != "sample@example.org" ||
		!strings.Contains(p.Text, "Hello sample@example.org, this is sample.") || p.HTML != "" || !json.Valid(p.Data) || !strings.Contains(p.Text, "https://news.example.org/u/preview") {
		t.Errorf("made up: %+v", p)
	}
	p := show("near", "--event", event, "--subscriber", "ada@example.org")
	if p.Sample || p.Subject != "Near you: Grüße" || p.To != "ada@example.org" || !strings.Contains(p.Text, "because of n1") {
		t.Errorf("of an event: %+v", p)
	}
	m, err := mail.ReadMessage(strings.NewReader(p.Raw))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := mail.ReadMessage(strings.NewReader(r.one("ada@example.org")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"From", "To", "Subject", "Date", "Content-Type", "X-Fanfare-Event", "List-Unsubscribe-Post"} {
		if m.Header.Get(name) != sent.Header.Get(name) {
			t.Errorf("%s is %q, in the mail %q", name, m.Header.Get(name), sent.Header.Get(name))
		}
	}
	shown, err := io.ReadAll(m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := io.ReadAll(sent.Body); err != nil || string(shown) != string(was) {
		t.Errorf("the body is %q, in the mail %q", shown, was)
	}
	if p := show("near", "--subscription", "n1", "--data", write(t, "d.json", `{"title":"own","place":"x"}`), "--to", "boss@example.org"); p.Subject != "Near you: own" || p.To != "boss@example.org" || !strings.Contains(p.Text, "n1") {
		t.Errorf("of a subscription: %+v", p)
	}
	if text := s.mustRun("", "preview", "near"); !strings.Contains(text, "Subject: Near you: sample") || !strings.Contains(text, "--- text") {
		t.Errorf("printed as %s", text)
	}
	if raw := s.mustRun("", "preview", "near", "--raw"); !strings.Contains(raw, "\r\nSubject: Near you: sample\r\n") {
		t.Errorf("the message is %s", raw)
	}

	draft := write(t, "draft.yaml", "service: news\ntemplates:\n  fresh:\n    subject: 'New: {{ event.title }}'\n    text: 'as text'\n    html: '<b>{{ event.title }}</b> & {{ subscription.params.place }}'\n")
	page := filepath.Join(t.TempDir(), "page.html")
	if p := show("fresh", "-f", draft, "--topic", "story", "--html", page, "--data", write(t, "d.json", `{"title":"<i>"}`)); p.Template != "fresh (draft)" || !strings.Contains(p.HTML, "<b>&lt;i&gt;</b>") {
		t.Errorf("of a draft: %+v", p)
	} else if text, err := os.ReadFile(page); err != nil || string(text) != p.HTML {
		t.Errorf("the file has %q, %v", text, err)
	}

	if out := s.mustRun("", "preview", "fresh", "-f", draft, "--topic", "story", "--data", write(t, "d.json", `{"title":"{{ <i>"}`), "--send-to", "tester@example.org", "--channel", "email"); !strings.Contains(out, "accepted") {
		t.Errorf("a test send printed %s", out)
	}
	test, err := mail.ReadMessage(strings.NewReader(r.one("tester@example.org")))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(test.Body); err != nil || test.Header.Get("Subject") != "New: {{ <i>" || !strings.Contains(string(text), "<b>{{ &lt;i&gt;</b>") || !strings.Contains(string(text), "as text") {
		t.Errorf("it was sent as %v %s", test.Header, text)
	}

	if text := s.mustRun("", "preview", "story", "--data", write(t, "d.json", `{"place":"x"}`)); !strings.Contains(text, "this is .") {
		t.Errorf("data that lack the title are shown as\n%s", text)
	}
	for _, wrong := range []struct {
		args []string
		want []string
	}{
		{[]string{"none"}, []string{`no template "none"`}},
		{[]string{"story", "--event", "evt-20200101-1001"}, []string{"/event"}},
		{[]string{"story", "--subscriber", "nobody@example.org"}, []string{"/subscriber"}},
		{[]string{"story", "--topic", "storry"}, []string{"/topic"}},
		{[]string{"story", "--channel", "fax"}, []string{"/channel"}},
		{[]string{"story", "--to", "nobody"}, []string{"/to"}},
		{[]string{"story", "-f", draft}, []string{"no template story", "fresh"}},
		{[]string{"story", "--html", page}, []string{"no HTML"}},
		{[]string{"story", "--send-to", "a@example.org"}, []string{"--channel"}},
	} {
		ran := s.run("", append([]string{"preview"}, wrong.args...)...)
		for _, want := range wrong.want {
			if ran.code != 1 || !strings.Contains(ran.err, want) {
				t.Errorf("%v ended with %d and lacks %q: %s", wrong.args, ran.code, want, ran.err)
			}
		}
	}
	wrong := s.http.refused(422, "POST", "/v1/templates/x/preview", plain, `{"template":{"subject":"s","text":"one\ntwo {{ event.titel }}"},"topic":"story"}`)
	if wrong.Pointer != "/template/text" || wrong.Line != 2 || !strings.Contains(wrong.Hint, "title") {
		t.Errorf("a draft with a wrong field: %+v", wrong)
	}
	wrong = s.http.refused(422, "POST", "/v1/templates/x/preview", plain, `{"template":{"subject":"s","text":"{% if %}"}}`)
	if wrong.Pointer != "/template/text" || wrong.Line != 1 {
		t.Errorf("a draft that is none: %+v", wrong)
	}
}
