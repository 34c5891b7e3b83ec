package bodies

import (
	"strings"
	"testing"
)

func TestStylesAreInlined(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"by name, class and id, the more specific wins", `<style>#i { color: green } .c { color: blue; margin: 0 } p { color: red; padding: 1px }</style><p class="a c">x</p><p id="i" class="c">y</p>`,
			`<p class="a c" style="padding: 1px; color: blue; margin: 0">x</p><p id="i" class="c" style="padding: 1px; margin: 0; color: green">y</p>`},
		{"the attribute wins, but over what is important", `<style>p { color: red !important; margin: 0 }</style><p style="color: blue; margin: 1px; top: 0">x</p>`,
			`<p style="color: red !important; margin: 1px; top: 0">x</p>`},
		{"within, and directly in", `<style>div p { color: red } td > p { margin: 0 }</style><div><section><p>x</p></section></div><table><tr><td><p>y</p><div><p>z</p></div></table>`,
			`<div><section><p style="color: red">x</p></section></div><table><tr><td><p style="margin: 0">y</p><div><p style="color: red">z</p></div></table>`},
		{"what depends on the reader stays", "<style>a { color: red }\na:hover { color: blue }\n@media (max-width: 480px) { a { color: green } }</style><a href=\"x\">x</a>",
			"<style>\na:hover { color: blue }\n@media (max-width: 480px) { a { color: green } }</style><a href=\"x\" style=\"color: red\">x</a>"},
		{"one list, both kinds", `<style>b, b:hover { color: red }</style><b>x</b>`, "<style>\nb:hover { color: red }</style><b style=\"color: red\">x</b>"},
		{"elements that end where others begin", `<style>li p { color: red }</style><ul><li><p>a<li>b</ul><p>c</p>`, `<ul><li><p style="color: red">a<li>b</ul><p>c</p>`},
		{"values", `<style>p { color: {{ event.c }} }</style><p>x</p>`, `<p style="color: {{ event.c }}">x</p>`},
		{"styles on a condition are left alone", `<style>{% if event.c %}p { color: red }{% endif %}</style><p>x</p>`, `<style>{% if event.c %}p { color: red }{% endif %}</style><p>x</p>`},
		{"Liquid between attributes", `<style>p { color: red }</style><p {% if event.c %}class="x"{% endif %} title="{{ event.t }}" hidden>x</p>`,
			`<p {% if event.c %}class="x" {% endif %} title="{{ event.t }}" hidden="" style="color: red">x</p>`},
		{"Liquid in the attribute", `<style>p { color: red }</style><p style="{% if event.c %}top: 0{% endif %}">x</p>`, `<p style="color: red; {% if event.c %}top: 0{% endif %}">x</p>`},
		{"addresses, comments and quotes", `<style>/* p { */ p { background: url(data:image/png;base64,AA==); font-family: "A B", 'C' }</style><p>x</p>`,
			`<p style="background: url(data:image/png;base64,AA==); font-family: &#34;A B&#34;, 'C'">x</p>`},
		{"styles for another medium", `<style media="print">p { color: red }</style><p>x</p>`, `<style media="print">p { color: red }</style><p>x</p>`},
		{"what is left open", `<style>p { color: red`, `<style>p { color: red`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made, wrong := Make(Source{Name: "t", HTML: tt.html, Text: "x"})
			if len(wrong) > 0 {
				t.Fatal(wrong[0])
			}
			if got := plainLiquid(made.HTML.Source); got != tt.want {
				t.Errorf("\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestBlocksWorkInOldReaders(t *testing.T) {
	made, wrong := Make(Source{Name: "t", HTML: `<f-section><f-column width="25%">a</f-column><f-column>b</f-column><f-column>c</f-column></f-section><f-button href="{{ event.url }}">{{ event.a }}</f-button><f-spacer height="40"></f-spacer><f-image src="m.png" alt="" width="300"></f-image><f-divider></f-divider>`})
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	html := made.HTML.Source
	for _, want := range []string{`max-width: 138px`, `max-width: 204px`, `<td valign="top" width="138">`, `href="{{ event.url }}"`, `mso-padding-alt`, `height: 40px`, `alt="" width="300"`, `<hr class="f-divider"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in %s", want, html)
		}
	}
	if strings.Count(html, "<table") != strings.Count(html, "</table>") || strings.Count(html, ghostOpen) != strings.Count(html, ghostClose) || strings.Count(html, "<div") != strings.Count(html, "</div>") || strings.Contains(html, "<f-") {
		t.Error("something is not closed: " + html)
	}
}

func TestErrorNamesMissingAttributeOfABlock(t *testing.T) {
	for html, message := range map[string]string{
		"a\n<f-card>x</f-card>":         "unknown block f-card",
		"<f-image src=\"x\"></f-image>": "f-image has no alt",
		"<f-button>x</f-button>":        "f-button has no href",
		"<f-column>x</f-column>":        "f-column is used outside an f-section",
		"<p>{% if a %}</p>":             "if is not closed",
	} {
		_, wrong := Make(Source{Name: "t", HTML: html})
		if len(wrong) == 0 || wrong[0].Message != message || wrong[0].Pointer != "/templates/t/html" || wrong[0].Line == 0 {
			t.Errorf("%s: %v", html, wrong)
		}
	}
}

func TestLayoutIsInTheLanguageOfTheTemplate(t *testing.T) {
	tests := []struct{ lang, html, text string }{
		{"", `<html lang="en" dir="ltr">`, "Unsubscribe: {{ unsubscribe_url }}"},
		{"cy-GB", `<html lang="cy-GB" dir="ltr">`, "Dad-danysgrifio: "},
		{"ur", `<html lang="ur" dir="rtl">`, "ان سبسکرائب کریں: "},
		{"{{ event.locale }}", `<html lang="{{ event.locale }}" dir="{% case event.locale %}{% when "ar" %}rtl`, `{% case event.locale %}{% when "ar" %}إلغاء الاشتراك{% when "cs" %}`},
	}
	for _, tt := range tests {
		made, wrong := Make(Source{Name: "t", Subject: "A & {{ event.b }}", Markdown: "x", Layout: "plain", Lang: tt.lang})
		if len(wrong) > 0 {
			t.Fatal(wrong[0])
		}
		if html := plainLiquid(made.HTML.Source); !strings.Contains(html, tt.html) || !strings.Contains(html, "<title>A &amp; {{ event.b }}</title>") {
			t.Errorf("%s: %.300s", tt.lang, html)
		}
		if text := plainLiquid(made.Text.Source); !strings.Contains(text, tt.text) {
			t.Errorf("%s: %s", tt.lang, text)
		}
	}
}

func TestErrorNamesUnknownLayoutOrLanguage(t *testing.T) {
	for pointer, src := range map[string]Source{
		"/templates/t/layout": {Name: "t", Markdown: "x", Layout: "plane"},
		"/templates/t/lang":   {Name: "t", HTML: "<p>x</p>", Text: "x", Lang: "not a language"},
	} {
		if src.IsComplete() {
			t.Errorf("%s: the source is not checked", pointer)
		}
		if _, wrong := Make(src); len(wrong) != 1 || wrong[0].Pointer != pointer || wrong[0].Hint == "" {
			t.Errorf("%s: %v", pointer, wrong)
		}
	}
}
