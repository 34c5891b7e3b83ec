package render

import (
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

func TestMarkdownBecomesMail(t *testing.T) {
	m := newMailing(t, Source{Subject: "S", Markdown: "# {{ event.title }}\n\nHello {{ subscriber.attributes.name }},\n{% for x in event.list %}\n- *{{ x }}*\n{% endfor %}\n"},
		`{"title":"a <b> & *c*","list":["one","two"]}`)
	p := parse(t, write(t, m, newRecipient()).Body)
	if got, want := p.parts["text/plain"], "a <b> & *c*\n===========\n\nHello Ada & Co,\n\n- one\n- two\n"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	want := "<h1>a &lt;b&gt; &amp; *c*</h1>\n<p>Hello Ada &amp; Co,</p>\n<ul>\n\n<li><em>one</em></li>\n\n<li><em>two</em></li>\n\n</ul>"
	if got := p.parts["text/html"]; got != want {
		t.Errorf("html %q, want %q", got, want)
	}
}

func TestMarkdownErrorsHaveTheLineOfTheSource(t *testing.T) {
	tests := []struct {
		name, markdown string
		when           func(*Template) error
		line, column   int
		message        string
	}{
		{"a variable that is not there", "# A\n\nb\n\n- {{ event.a }} and {{ evnt.b }}", nil, 5, 24, "unknown variable evnt.b"},
		{"an unknown filter", "a\nb {{ event.a | upcaze }}", nil, 2, 16, `unknown filter "upcaze"`},
		{"Liquid that cannot be read", "a\n\n{% assign %}", nil, 3, 1, ""},
		{"a field that the schema lacks", "a\n{{ event.title }}\nb {{ event.titel }}",
			func(t *Template) error {
				return t.Check([]byte(`{"type":"object","properties":{"title":{"type":"string"}},"additionalProperties":false}`), nil)
			}, 3, 6, "unknown field event.titel: it is not in the schema of the topic"},
		{"a value that is missing", "a {{ event.title }}\n\n**b** {{ event.x }} {{ event.y }}",
			func(t *Template) error {
				_, err := t.renderAll(map[string]any{"event": map[string]any{"title": "T", "x": "X"}}, &liquid.MissingVariables{Uncertain: t.uncertain, Opaque: t.opaque, Refuse: true})
				return err
			}, 3, 24, "undefined variable event.y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			template, err := Compile(Source{Name: "t", Subject: "S", Markdown: tt.markdown})
			if tt.when != nil {
				if err != nil {
					t.Fatal(err)
				}
				err = tt.when(template)
			}
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("no error: %v", err)
			}
			if e.Pointer != "/templates/t/markdown" || e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Message, tt.message) || len(e.Details) > 0 {
				t.Errorf("%s at %s %d:%d, with %v", e.Message, e.Pointer, e.Line, e.Column, e.Details)
			}
		})
	}
}

func TestMarkdownExcludesHTML(t *testing.T) {
	_, err := Compile(Source{Name: "t", Subject: "S", Markdown: "a", HTML: "b"})
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != "/templates/t/markdown" {
		t.Error(err)
	}
}

func TestMarkdownVariantHasTheLayoutInItsLanguage(t *testing.T) {
	source := Source{Name: "t", Subject: "S", Markdown: "Hello", Layout: "plain", Variants: []Variant{{Locale: "cy", Markdown: "Helo"}}}
	m, r := newMailing(t, source, `{}`), newRecipient()
	r.Locale = "cy"
	p := parse(t, write(t, m, r).Body)
	if text := p.parts["text/plain"]; !strings.HasPrefix(text, "Helo\n\n-- \nDad-danysgrifio: https://") {
		t.Errorf("text %q", text)
	}
	if html := p.parts["text/html"]; !strings.Contains(html, `<html lang="cy" dir="ltr">`) || !strings.Contains(html, ">Helo</p>") {
		t.Errorf("html %s", html)
	}
	source.Variants[0].Markdown = "a\n\nb {{ evnt.a }}"
	_, err := Compile(source)
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != "/templates/t/locales/cy/markdown" || e.Line != 3 || e.Column != 6 {
		t.Errorf("%v", err)
	}
}
