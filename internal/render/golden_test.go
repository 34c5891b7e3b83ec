package render

import (
	"bytes"
	"flag"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMessagesEqualTheGoldenFiles(t *testing.T) {
	const data = `{"title":"M 5.3 - Sangiang","place":"50km NNW of Sangiang","felt":null,"list":["one","two"]}`
	tests := []struct {
		name      string
		source    Source
		data      string
		mailing   func(*MailBatch)
		recipient func(*Recipient)
		text      string // what the text part must say, decoded
		html      string
		subject   string
	}{
		{name: "ascii", source: Source{Subject: "{{ event.title }}", Text: "Hi {{ subscriber.id }},\n\n{{ event.place }}\n"},
			subject: "M 5.3 - Sangiang", text: "Hi person-1,\n\n50km NNW of Sangiang\n"},
		{name: "html-only", source: Source{HTML: "<p>{{ subscriber.attributes.name }}</p>"},
			subject: "Hello", text: "Ada & Co\n", html: "<p>Ada &amp; Co</p>\n"},
		{name: "multipart", source: Source{Subject: "For {{ subscriber.attributes.name }}",
			Text: "{{ subscription.data.link }}", HTML: `<a href="{{ subscription.data.link }}">x</a> <a href="{{ unsubscribe_url }}">y</a>`},
			subject: "For Ada & Co", text: "https://example.com/?a=1&b=2",
			html: `<a href="https://example.com/?a=1&amp;b=2">x</a> <a href="https://example.org/u/person-1">y</a>`},
		{name: "utf8-names", source: Source{Subject: "Erdbeben nahe Tromsø – Stärke 5,3, 東京都は揺れませんでした、ご安心ください", Text: "Größe: {{ event.title }} = groß \n"},
			mailing: func(m *MailBatch) { m.From = mail.Address{Name: "Ärger & Söhne", Address: "info@bücher.example"} },
			subject: "Erdbeben nahe Tromsø – Stärke 5,3, 東京都は揺れませんでした、ご安心ください", text: "Größe: M 5.3 - Sangiang = groß \n"},
		{name: "long-lines", source: Source{Subject: strings.Repeat("word ", 40) + strings.Repeat("x", 100), Text: "{{ event.title }} " + strings.Repeat("long ", 300) + "\nshort\n"},
			subject: strings.Repeat("word ", 40) + strings.Repeat("x", 100), text: "M 5.3 - Sangiang " + strings.Repeat("long ", 300) + "\nshort\n"},
		{name: "utf8-address", source: Source{Text: "Hi"}, recipient: func(r *Recipient) { r.Address = "дмитрий@почта.example" },
			subject: "Hello", text: "Hi\n"},
		{name: "idn-domain", source: Source{Text: "Hi"}, recipient: func(r *Recipient) { r.Address = "Info@BÜCHER.example" },
			subject: "Hello", text: "Hi\n"},
		{name: "no-list", source: Source{Text: "Hi"}, subject: "Hello", text: "Hi\n",
			mailing: func(m *MailBatch) { m.ListID, m.UnsubscribeURL, m.UnsubscribeMailto, m.ReplyTo = "", nil, "", "" }},
		{name: "loops", source: Source{Text: "{% for x in event.list -%}\n{{ forloop.index }} {{ x }}\n{% endfor %}{% for s in subscriptions %}{{ s.id }};{% endfor %}\n"},
			subject: "Hello", text: "1 one\n2 two\nsub-1c00004e;sub-1c00004f;\n"},
		{name: "boundary-in-text", source: Source{Text: "--=_evt-20261120-1001\nnot the end\n", HTML: "<p>--=_evt-20261120-1001--</p>"},
			subject: "Hello", text: "--=_evt-20261120-1001\nnot the end", html: "<p>--=_evt-20261120-1001--</p>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.data == "" {
				tt.data = data
			}
			m, r := newMailing(t, tt.source, tt.data), newRecipient()
			if tt.mailing != nil {
				tt.mailing(&m)
			}
			if tt.recipient != nil {
				tt.recipient(r)
			}
			message := write(t, m, r)
			p := parse(t, message.Body)
			if got := p.subject(t); got != tt.subject {
				t.Errorf("subject %q, want %q", got, tt.subject)
			}
			trim := func(s string) string { return strings.TrimSuffix(s, "\n") }
			if got := p.parts["text/plain"]; trim(got) != trim(tt.text) {
				t.Errorf("text %q, want %q", got, tt.text)
			}
			if got := p.parts["text/html"]; trim(got) != trim(tt.html) {
				t.Errorf("html %q, want %q", got, tt.html)
			}
			golden(t, tt.name, message.Body)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".eml")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s:\n%s", path, got)
	}
}

func TestAddressesAreEncodedForTheirRoute(t *testing.T) {
	tests := []struct {
		address, to string
		utf8        bool
	}{
		{"ada@EXAMPLE.net", "ada@example.net", false},
		{"Info@BÜCHER.example", "Info@xn--bcher-kva.example", false},
		{"дмитрий@почта.example", "дмитрий@почта.example", true},
		{`"a b"@example.net`, `"a b"@example.net`, false},
	}
	m := newMailing(t, Source{Text: "x"}, `{}`)
	for _, tt := range tests {
		r := newRecipient()
		r.Address = tt.address
		message := write(t, m, r)
		if message.To != tt.to || message.UTF8 != tt.utf8 || message.EightBit {
			t.Errorf("%s: to %s, utf8 %v, eight bit %v", tt.address, message.To, message.UTF8, message.EightBit)
		}
		if message.From != "bounces@example.org" || message.Delivery != r.Delivery {
			t.Errorf("%s: from %s, delivery %v", tt.address, message.From, message.Delivery)
		}
		if got := parse(t, message.Body).header.Get("To"); got != tt.to {
			t.Errorf("%s: header %s", tt.address, got)
		}
	}
}

func TestHeadersFollowTheStandards(t *testing.T) {
	message := write(t, newMailing(t, Source{Text: "x", HTML: "y"}, `{}`), newRecipient())
	h := parse(t, message.Body).header
	for name, want := range map[string]string{
		"From":                  "Earthquake Watch <quakes@example.org>",
		"Reply-To":              "Info <info@example.org>",
		"To":                    "ada@example.net",
		"Subject":               "Hello",
		"Date":                  "Fri, 20 Nov 2026 09:30:01 +0000",
		"Message-Id":            "<dlv-20261120-40043-11@example.org>",
		"List-Id":               "<earthquakes.example.org>",
		"List-Unsubscribe":      "<https://example.org/u/person-1>, <mailto:leave@example.org>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"Auto-Submitted":        "auto-generated",
		"X-Fanfare-Event":       "evt-20261120-1001",
		"Mime-Version":          "1.0",
		"Precedence":            "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRetryHasTheSameBytes(t *testing.T) {
	m, r := newMailing(t, Source{Text: "{{ subscriber.id }}", HTML: "ü"}, `{}`), newRecipient()
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	first, buf, err := w.Write(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	other := *r
	other.Address, other.ID = "bob@example.net", "person-2"
	if _, buf, err = w.Write(buf, &other); err != nil {
		t.Fatal(err)
	}
	again, _, err := w.Write(buf, r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Body, again.Body) || !bytes.Equal(first.Body, write(t, m, r).Body) {
		t.Error("the bytes differ")
	}
}
