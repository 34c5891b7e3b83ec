package render

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/render/liquid"
)

// FuzzMessage puts arbitrary values everywhere. The result is a valid message with the same
// header fields, or an error.
func FuzzMessage(f *testing.F) {
	f.Add("title", "Ada", "ada@example.net", "id", "en", "link", "Watch", "a@example.org", "list", []byte(`{"a":1}`), int64(1700000000))
	f.Add("a\r\nBcc: x", "\x00", "дмитрий@почта.example", "\r", "--=_", "<&>", "Ärger", "a@bücher.example", "x.y", []byte(`{"a":"\u0000\r\n"}`), int64(0))
	f.Add("a\n", ".", "ada@example.net", ".\n.", "\n", ".\r\n.\r\n", "Watch", "a@example.org", "list", []byte(`{}`), int64(1700000000))
	f.Add(strings.Repeat("x", 1000), "\xff", `"a b"@c.d`, "{{", "\n--=_evt-20261120-1001--\n", "=", "a\"b\\", "a@b.c", "", []byte(`[`), int64(1<<60))
	source := Source{
		Subject: "{{ event.title }} {{ subscriber.attributes.name }}",
		Text:    "{{ event.title }}{{ subscriber.id }}\n{{ subscription.data.a }}{{ subscriber.locale }}\n{{ subscription.data.link }}",
		HTML:    "<p>{{ event.title }}{{ subscriber.locale | raw }}{% for s in subscriptions %}{{ s.data.link }}{% endfor %}</p>",
	}
	template := newMailing(f, source, `{}`).Template
	f.Fuzz(func(t *testing.T, title, name, to, id, locale, link, display, from, list string, data []byte, at int64) {
		m, r := newMailing(t, Source{Text: "x"}, `{}`), newRecipient()
		m.Template = template
		m.Event.Data, _ = json.Marshal(map[string]string{"title": title})
		m.From = mail.Address{Name: display, Address: from}
		m.ListID, m.Event.ID, m.Topic = list, id, locale
		r.Address, r.ID, r.Locale, r.Date = to, id, locale, time.Unix(at, 0)
		r.Attributes, _ = json.Marshal(map[string]string{"name": name})
		r.Subscriptions[0].ID = link
		r.Subscriptions[0].Data, _ = json.Marshal(map[string]string{"a": name, "link": link})
		r.Subscriptions[1].Data = data
		w, err := m.Writer()
		if err != nil {
			problem(t, err)
			return
		}
		message, _, err := w.Write(nil, r)
		if err != nil {
			problem(t, err)
			return
		}
		p := parse(t, message.Body)
		want := 13
		if list == "" {
			want--
		}
		if p.count != want || len(p.parts) != 2 || len(p.header) != want {
			t.Fatalf("%d header fields, %d parts, want %d and 2:\n%s", p.count, len(p.parts), want, message.Body)
		}
		if !message.UTF8 && !isPlainASCII(message.Body) {
			t.Fatal("the body is not ASCII, but UTF8 is not set")
		}
		if message.NoDotStuffing && bytes.Contains(message.Body, []byte("\n.")) {
			t.Fatalf("NoDotStuffing is set, but a line begins with a dot: %q", message.Body)
		}
		signedMessage(t, m, r)
		m.Template = undivided(template)
		if w, err = m.Writer(); err != nil {
			t.Fatal(err)
		}
		whole, _, err := w.Write(nil, r)
		if err != nil || !bytes.Equal(whole.Body, message.Body) {
			t.Fatalf("whole, %v:\n%s\nsplit:\n%s", err, whole.Body, message.Body)
		}
	})
}

// FuzzField compares the value read in place with the decoded one.
func FuzzField(f *testing.F) {
	for _, s := range []string{`{"a":{"b":"x"}}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a":[1,2]}`, `{"a":"\ud83c\udf0b"}`, ` { "a" : -0.0 } `,
		`{"a":1e400}`, `{"a":{"b":{"size":1}}}`, `{"a":"b\"}`, `{"x":"}","a":true}`, "{\"a\":\"\xff\"}", `{"a":007}`, `{"a":nul}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, path := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "size"}, {}} {
			fd := liquid.Field{Source: liquid.SubscriptionData, Path: path}
			for _, p := range path {
				fd.Steps = append(fd.Steps, p)
			}
			r := &Recipient{Subscriptions: []Subscription{{Data: raw}}}
			got, ok := appendField(nil, &fd, r, nil, liquid.HTML)
			if bytes.ContainsAny(got, "\x00\r<>") {
				t.Fatalf("%q", got)
			}
			if !json.Valid(raw) {
				continue // promised to be valid; only that nothing bad comes out matters
			}
			value, err := liquid.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			value, found := liquid.Lookup(value, fd.Steps)
			if want := liquid.AppendValue(nil, value, liquid.HTML); ok != found || ok && !bytes.Equal(got, want) {
				t.Fatalf("%q: %q, %v; decoded %q, %v", raw, got, ok, want, found)
			}
		}
	})
}

// FuzzCompile compiles arbitrary sources. It must not panic, and a dry run of every compiled
// template must return.
func FuzzCompile(f *testing.F) {
	for _, s := range append(templatePieces(), "{{ event.a", "{%", "{{{ x }}}", "{% for x in (1..3) %}{{ x }}{% endfor %}", "{{ 'a' | date }}") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		template, err := Compile(Source{Name: "x", Subject: "s", HTML: source})
		if err != nil {
			problem(t, err)
			return
		}
		if err := template.Check(json.RawMessage(`{"properties":{"a":{"type":"string"}}}`), []string{"a"}); err != nil {
			problem(t, err)
		}
		if _, _, _, err := template.DryRun(nil); err != nil {
			problem(t, err)
		}
	})
}
