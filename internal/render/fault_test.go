package render

import (
	"errors"
	"testing"
)

func TestRenderErrorNamesVariablesButNoValues(t *testing.T) {
	for want, source := range map[string]Source{
		"text, line 2, which uses event.a":                          {Text: "{{ event.b }}\n{{ event.a | number }}"},
		"text, line 1, which uses subscription.data.since, event.b": {Text: "{{ subscription.data.since | date: 'long' }}{{ event.b }}\n{{ event.a }}"},
		"html, line 3, which uses s.data.since":                     {Text: "x", HTML: "<p>\n{% for s in subscriptions %}\n{{ s.data.since | date: 'long' }}{% endfor %}</p>"},
		"markdown, line 3, which uses event.a":                      {Markdown: "# T\n\n{{ event.a | number }}"},
		"locales/de/text, line 1, which uses event.a":               {Text: "x", Variants: []Variant{{Locale: "de", Text: "{{ event.a | number }}"}}},
		"partials/part, line 2, which uses event.a":                 {Text: "{% render 'part' %}", Partials: map[string]string{"part": "a\n{{ event.a | number }}"}},
	} {
		source.Name, source.Subject = "x", "s"
		template, err := Compile(source)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		m := newMailing(t, Source{Text: "x"}, `{"a":"soon","b":1}`)
		m.Template = template
		r := newRecipient()
		r.Locale = "de"
		r.Subscriptions[0].Data, r.Subscriptions[1].Data = []byte(`{"since":"soon"}`), []byte(`{"since":"soon"}`)
		w, err := m.Writer()
		if err == nil {
			_, _, err = w.Write(nil, r)
		}
		fault, ok := template.Fault(err)
		if !ok || fault.String() != want {
			t.Errorf("%v is told as %q, want %q", err, fault, want)
		}
	}
	template, err := Compile(Source{Name: "x", Subject: "s", Text: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []error{nil, errors.New("x"), invalidValue("to", "no address")} {
		if fault, ok := template.Fault(other); ok {
			t.Errorf("%v is told as %q", other, fault)
		}
	}
}
