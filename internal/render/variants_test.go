package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestRecipientGetsTheBestVariantForLanguageAndDevice(t *testing.T) {
	template, err := Compile(Source{Name: "x", Subject: "base {{ subscriber.id }}", Text: "base", Variants: []Variant{
		{Locale: "pt", Subject: "pt", Text: "pt"},
		{Locale: "pt-BR", Text: "pt-BR"},
		{Locale: "cy", Device: "watch", Subject: "cy watch"},
		{Locale: "cy", Text: "cy {{ subscriber.id }}"},
		{Device: "watch", Subject: "watch", Text: "watch"},
		{Locale: "zh-Hant", Text: "zh-Hant"},
		{Locale: "ar", Subject: "ar"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := newMailing(t, Source{Text: "x"}, `{}`)
	m.Template = template
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ locale, device, want string }{
		{"", "", "base me: base"}, {"en", "", "base me: base"}, {"tlh", "", "base me: base"}, {"\xff", "", "base me: base"},
		{"pt", "", "pt: pt"}, {"pt-PT", "", "pt: pt"}, {"pt_br", "", "pt: pt-BR"}, {"pt-BR-x-own", "", "pt: pt-BR"},
		{"cy", "", "base me: cy me"}, {"cy-GB", "", "base me: cy me"},
		{"cy", "watch", "cy watch: cy me"}, {"pt", "watch", "pt: pt"}, {"en", "watch", "watch: watch"}, {"en", "phone", "base me: base"},
		{"zh-TW", "", "base me: zh-Hant"}, {"zh-CN", "", "base me: base"}, {"zh", "", "base me: base"},
		{"ar-EG", "watch", "ar: base"}, // the language comes before the device
	}
	for range 2 {
		for _, tt := range tests {
			r := newRecipient()
			r.ID, r.Locale = "me", tt.locale
			r.Attributes = fmt.Appendf(nil, `{"device":%q}`, tt.device)
			p, err := w.Preview(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Subject + ": " + strings.TrimSpace(p.Text); got != tt.want {
				t.Errorf("%q on %q: %q, want %q", tt.locale, tt.device, got, tt.want)
			}
			parse(t, p.Message.Body)
		}
	}
	if n := len(w.byLocalization.byKey); n > 9 {
		t.Errorf("%d writers are kept for 8 variants", n)
	}
}

func TestDeviceComesFromMessageSubscriptionOrSubscriber(t *testing.T) {
	for _, tt := range []struct{ data, subscription, attributes, want string }{
		{`{"device":"a"}`, `{"device":"b"}`, `{"device":"c"}`, "a"},
		{``, `{"device":"b"}`, `{"device":"c"}`, "b"},
		{`{}`, ``, `{"x":1,"device":"c"}`, "c"},
		{``, ``, `{"device":5}`, ""},
		{``, ``, ``, ""},
	} {
		r := &Recipient{Data: []byte(tt.data), Subscriptions: []Subscription{{Data: []byte(tt.subscription)}}, Attributes: []byte(tt.attributes)}
		if got := deviceOf(r); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestVariantWritesDatesInItsLanguage(t *testing.T) {
	template, err := Compile(Source{Name: "x", Subject: "s", Text: `{{ event.when | date: "long" }}`, Variants: []Variant{
		{Locale: "cy", Text: `Ar {{ event.when | date: "full" }}`}, {Locale: "ja", Text: `{{ event.when | date: "long" }}`}, {Locale: "ar", Subject: "ar"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := newMailing(t, Source{Text: "x"}, `{"when":"2026-11-20T10:00:00Z"}`)
	m.Template = template
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"": "November 20, 2026", "en-GB": "20 November 2026", "cy": "Ar Dydd Gwener, 20 Tachwedd 2026", "ja-JP": "2026年11月20日", "fr": "November 20, 2026",
	} {
		r := newRecipient()
		r.Locale = tag
		p, err := w.Preview(r)
		if got := strings.TrimSpace(p.Text); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", tag, got, want, err)
		}
	}
}

func TestVariantErrorsHaveAPointer(t *testing.T) {
	const schema = `{"type":"object","properties":{"title":{"type":"string"}}}`
	tests := []struct {
		variant Variant
		pointer string
		message string
		line    int
	}{
		{Variant{Locale: "cy", Text: "\n{{ nope }}"}, "/templates/x/locales/cy/text", "unknown variable nope", 2},
		{Variant{Locale: "cy", Device: "watch", Text: "{% if %}"}, "/templates/x/locales/cy/devices/watch/text", "", 1},
		{Variant{Device: "watch", Markdown: "a\n\n{{ event.a | nope }}"}, "/templates/x/devices/watch/markdown", "unknown filter", 3},
		{Variant{Locale: "xx", Text: "a"}, "/templates/x/locales/xx", `unknown language "xx"`, 0},
		{Variant{Text: "a"}, "/templates/x", "a variant must specify", 0},
		{Variant{Locale: "cy", HTML: "a", Markdown: "b"}, "/templates/x/locales/cy/markdown", "both markdown and html", 0},
		{Variant{Locale: "cy", Text: "\n\n{{ event.titel }}"}, "/templates/x/locales/cy/text", "unknown field event.titel", 3},
		{Variant{Locale: "cy", Markdown: "a\n\n{{ event.titel }}"}, "/templates/x/locales/cy/markdown", "unknown field event.titel", 3},
		{Variant{Locale: "cy", Text: "{% for i in items %}{{ i.event.a }}{% endfor %}"}, "/templates/x/text", "the template also uses items", 1},
		{Variant{Locale: "cy", Text: "{{ event.title | money: 'EUR' }}"}, "/templates/x/locales/cy/text", "is not a number", 1},
	}
	for _, tt := range tests {
		template, err := Compile(Source{Name: "x", Subject: "s", Text: "{{ event.title }}", Variants: []Variant{tt.variant}})
		if err == nil {
			err = template.Check([]byte(schema), nil)
		}
		if err == nil {
			_, _, _, err = template.DryRun([]byte(schema))
		}
		if err == nil {
			t.Errorf("%+v is taken", tt.variant)
			continue
		}
		if e := problem(t, err); e.Pointer != tt.pointer || !strings.Contains(e.Message, tt.message) || e.Line != tt.line {
			t.Errorf("%+v: %+v", tt.variant, *e)
		}
	}
}

func TestFailingVariantAffectsOnlyItsReaders(t *testing.T) {
	template, err := Compile(Source{Name: "x", Subject: "s", Text: "base", Variants: []Variant{{Locale: "cy", Text: "{{ subscriber.id | date: \"long\" }}"}}})
	if err != nil {
		t.Fatal(err)
	}
	m := newMailing(t, Source{Text: "x"}, `{}`)
	m.Template = template
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"cy", "en", "cy", "en"} {
		r := newRecipient()
		r.Locale = tag
		_, _, err := w.Write(nil, r)
		if (err != nil) != (tag == "cy") {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

func TestWebhookMessageIsInTheLanguageOfTheSubscriber(t *testing.T) {
	template, err := Compile(Source{Name: "x", JSON: `{"text": "{{ event.a | number }}"}`, Variants: []Variant{{Locale: "de", JSON: `{"text": "de {{ event.a | number }}"}`}}})
	if err != nil {
		t.Fatal(err)
	}
	m := newMailing(t, Source{Text: "x"}, `{"a":1.5}`)
	w, err := WebhookBatch{Template: template, Event: m.Event, Topic: "t", Service: "s"}.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{"": `{"text": "1.5"}`, "de": `{"text": "de 1,5"}`, "fr": `{"text": "1.5"}`} {
		r := newRecipient()
		r.Locale, r.Address = tag, "https://receiver.example.org/"
		message, _, err := w.Write(nil, r)
		if err != nil || string(message.Body) != want {
			t.Errorf("%s: %s %v", tag, message.Body, err)
		}
	}
}
