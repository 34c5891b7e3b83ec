package render

import (
	"bytes"
	"strings"
	"testing"
)

// throughLiquid returns the template without the fast path.
func throughLiquid(t *Template) *Template {
	plain := *t
	for _, p := range []**templatePart{&plain.subject, &plain.text, &plain.html} {
		if *p != nil {
			one := *(*p).Part
			one.Flat = nil
			*p = &templatePart{&one, (*p).owner}
		}
	}
	return &plain
}

func TestFastPathEqualsLiquid(t *testing.T) {
	data := `{"title":"<b>&amp; \"so\"","n":-0.5,"big":12345678901234567890,"i":7,"yes":true,"none":null,"list":[1,"a<",null,{"x":1}],"empty":[],"in":{"b":2,"a":"<"},"text":"a\r\nb\u0000c\u2028{{ event.i }}"}`
	for _, c := range []struct {
		text     string
		outlined bool
	}{
		{"plain\ntext", true},
		{"{{ event.title }} {{event.n}} {{ event.big }} {{ event.i }} {{ event.yes }}{{ event.none }}.", true},
		{"{{ event.list }} {{ event.list.size }} {{ event.list.first }} {{ event.list.last }} {{ event.empty.first }}|{{ event.title.size }}", true},
		{"{{ event.in }} {{ event.in.a }} {{ event['in'].size }} {{ event.text }}", true},
		{"{{ meta.id }} {{ meta.time }} {{ meta.topic }} {{ meta.extensions.size }}", true},
		{"{{ event.title }}{{ subscriber.id }}{{ event.i }}\n{{ subscriber.id | upcase }}", true},
		{"  {{- event.title -}}  \n x", false},
		{"{{ event.title }} a brace {", true},
		{"{{ event.title | upcase }}", false},
		{"{{ event.title | raw }}", false},
		{"{{ event.gone | default: 'x' }}", false},
		{"{{ event.list[0] }}", false},
		{"a {{ event.gone }} {{ event.title.gone }} {{ meta.extensions.gone }} b", true},
		{"{% if event.yes %}{{ event.title }}{% endif %}", false},
		{"{% assign x = event.title %}{{ x }}", false},
		{"{% raw %}{{ event.title }}{% endraw %}", false},
	} {
		m := newMailing(t, Source{Subject: "s " + strings.ReplaceAll(c.text, "\n", " "), Text: c.text + "\n", HTML: c.text + "\n"}, data)
		if got := m.Template.text.Flat != nil; got != c.outlined {
			t.Errorf("%s: written without Liquid: %v, want %v", c.text, got, c.outlined)
		}
		liquid := m
		liquid.Template = throughLiquid(m.Template)
		if got, want := write(t, m, newRecipient()).Body, write(t, liquid, newRecipient()).Body; !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nLiquid:\n%s", c.text, got, want)
		}
	}
}

func TestFastPathReportsMissingVariablesAsLiquidDoes(t *testing.T) {
	for _, text := range []string{"one\n{{ event.gone }}\n", "{{ event.title }}\n\n{{ event.title.gone }} {{ subscriber.id }}", "{{ event.list.gone }}"} {
		m := newMailing(t, Source{Subject: "s", Text: text}, `{"title":"x"}`)
		m.RefuseMissing = true
		liquid := m
		liquid.Template = throughLiquid(m.Template)
		_, got := m.Writer()
		_, want := liquid.Writer()
		if got == nil || want == nil || got.Error() != want.Error() {
			t.Errorf("%q: %v, Liquid: %v", text, got, want)
		}
	}
}
