package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// problem unwraps the *fanfare.Error that every error here must be.
func problem(t *testing.T, err error) *fanfare.Error {
	t.Helper()
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		t.Fatalf("%v (%T) is not a *fanfare.Error", err, err)
	}
	return e
}

func TestTemplateErrorsHaveALine(t *testing.T) {
	tests := []struct {
		name, html string
		line       int
		message    string
		hint       string
	}{
		{"unclosed block", "a\n{% if event.x %}\nb", 2, `unterminated "if" block`, ""},
		{"end without begin", "a\n\n{% endif %}", 3, "endif without an opening tag", ""},
		{"unknown tag", "\n{% iff event.x %}{% endiff %}", 2, `undefined tag "iff"`, ""},
		{"syntax", "a\nb {{ event.x | }} c", 2, "syntax error", ""},
		{"unclosed output", "a\n\n\nb {{ event.x", 4, "{{ is not closed", ""},
		{"unclosed tag", "a\n{% if event.x", 2, "{% is not closed", ""},
		{"unknown filter", "a\n{{ event.x | upcas }}", 2, `unknown filter "upcas"`, "did you mean upcase?"},
		{"own filter", "{{ event.x | fanfare_slot }}", 1, `unknown filter "fanfare_slot"`, ""},
		{"unknown variable", "a\n{{ evnt.title }}", 2, "unknown variable evnt.title", "did you mean event?"},
		{"unknown in condition", "a\n\n{% if a == evnt %}{% endif %}", 3, "unknown variable a", ""},
		{"unknown field", "{%- if meta.id -%}\n\n{{ subscriber.adress }}{% endif %}", 3, "unknown variable subscriber.adress", "did you mean address?"},
		{"unknown field in a loop", "{% for s in subscriptions %}\n{{ s.parms.x }}{% endfor %}", 2, "unknown variable s.parms.x", "did you mean params?"},
		{"include", "a\n{% include 'x' %}", 2, `undefined tag "include"`, ""},
		{"break outside", "a\n{% break %}", 2, "break is used outside a loop", ""},
		{"endless range", "{% for i in (1..event.n) %}{% endfor %}", 1, "the range may be too long", "at most 1000"},
		{"long range", "\n{% for i in (1..1002) %}{% endfor %}", 2, "the range may be too long", ""},
		{"builtin assigned", "{% assign event = 1 %}", 1, "event is a built-in variable", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(Source{Name: "quake", Subject: "s", HTML: tt.html})
			if err == nil {
				t.Fatal("compiled")
			}
			e := problem(t, err)
			if e.Code != fanfare.Invalid || e.Pointer != "/templates/quake/html" || e.Line != tt.line ||
				!strings.Contains(e.Message, tt.message) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("%+v", *e)
			}
		})
	}
}

func TestTemplateNeedsSubjectAndBodyWithinLimits(t *testing.T) {
	for _, tt := range []struct {
		source  Source
		pointer string
		code    fanfare.Code
	}{
		{Source{Subject: "s"}, "/templates/a~1b", fanfare.Invalid},
		{Source{Text: "t"}, "/templates/a~1b/subject", fanfare.Invalid},
		{Source{Subject: strings.Repeat("s", liquid.MaxSubjectBytes+1), Text: "t"}, "/templates/a~1b/subject", fanfare.TooLarge},
		{Source{Subject: "s", Text: strings.Repeat("s", liquid.MaxBodyBytes+1)}, "/templates/a~1b/text", fanfare.TooLarge},
		{Source{Subject: "s", HTML: "\xff"}, "/templates/a~1b/html", fanfare.Invalid},
		{Source{Subject: "s", HTML: "\x00"}, "/templates/a~1b/html", fanfare.Invalid},
	} {
		tt.source.Name = "a/b"
		_, err := Compile(tt.source)
		if err == nil {
			t.Fatalf("compiled, want %s", tt.pointer)
		}
		if e := problem(t, err); e.Pointer != tt.pointer || e.Code != tt.code {
			t.Errorf("%+v, want %s", *e, tt.pointer)
		}
	}
	_, err := Compile(Source{Name: "x", Subject: "{{ a }}", Text: "{{ b }}", HTML: "{{ c }}"})
	if e := problem(t, err); len(e.Details) != 2 || e.Details[1].Pointer != "/templates/x/html" {
		t.Errorf("not all parts are named: %+v", *e)
	}
}

func TestWriterSurvivesAFailedRecipient(t *testing.T) {
	w, err := newMailing(t, Source{Text: "{{ subscription.data.link }}{% if subscription.id == 'x' %}{{ subscription.id | divided_by: 0 }}{% endif %}"}, `{}`).Writer()
	if err != nil {
		t.Fatal(err)
	}
	poor := newRecipient()
	poor.Subscriptions = []Subscription{{ID: "x"}}
	dst := []byte("kept")
	if _, dst, err = w.Write(dst, poor); err == nil || string(dst) != "kept" {
		t.Fatalf("%v, %q", err, dst)
	}
	message, _, err := w.Write(dst, newRecipient())
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(t, message.Body).parts["text/plain"]; got != "https://example.com/?a=1&b=2\n" {
		t.Errorf("%q", got)
	}
}

func TestTemplatesRender(t *testing.T) {
	const data = `{"s":"<b>&\"'","n":null,"i":9007199254740993,"f":4.50,"whole":5.0,"t":true,"list":["a","b"],"o":{"k":1},"html":"<i>x</i>","lines":"a\r\nb\rc\u0000\u0007d","felt":0}`
	tests := []struct{ template, text, html string }{
		{"{{ event.s }}", `<b>&"'`, "&lt;b&gt;&amp;&#34;&#39;"},
		{"{{ event.s | raw }}", `<b>&"'`, `<b>&"'`},
		{"{{ event.s | escape }}", "&lt;b&gt;&amp;&#34;&#39;", "&lt;b&gt;&amp;&#34;&#39;"},
		{"[{{ event.n }}]", "[]", "[]"},
		{"{{ event.i }} {{ event.f }} {{ event.whole }} {{ event.t }}", "9007199254740993 4.5 5 true", "9007199254740993 4.5 5 true"},
		{"{{ event.list }} {{ event.list | join: ', ' }} {{ event.list.size }} {{ event.list[-1] }} {{ event.list.first }}", "ab a, b 2 b a", "ab a, b 2 b a"},
		{"{{ event.o }}", `{"k":1}`, "{&#34;k&#34;:1}"},
		{"{{ event.n | default: 'nobody' }} {{ event.nope | default: 'nobody' }}", "nobody nobody", "nobody nobody"},
		{"{% if event.nope %}a{% else %}b{% endif %}{% unless event.nope.deep %}c{% endunless %}", "bc", "bc"},
		{"{% case event.nope %}{% when 1 %}a{% else %}b{% endcase %}", "b", "b"},
		{"{% if event.nope == nil and event.list contains 'a' or false %}y{% endif %}", "y", "y"},
		{"{% capture x %}<b>{{ event.s }}</b>{% endcapture %}{{ x }}", `<b><b>&"'</b>`, "<b>&lt;b&gt;&amp;&#34;&#39;</b>"},
		{"{{ event.lines }}", "a\nb\ncd", "a\nb\ncd"},
		{"{% raw %}{{ event.x }}{% endraw %}{% comment %}{{ nope }}{% endcomment %}", "{{ event.x }}", "{{ event.x }}"},
		{"a  {{- ' b ' -}}  c {%- if true -%} d {%- endif %} e", "a b cd e", "a b cd e"},
		{"{ {% if true %}{{% endif %}{{ event.whole }} }", "", ""},
		{"{% for x in event.list limit: 1 %}{{ x }}{{ forloop.last }}{% endfor %}", "atrue", "atrue"},
		{"{% for i in (1..3) reversed %}{{ i }}{% endfor %}", "321", "321"},
		{"{% for p in event.o %}{{ p[0] }}={{ p[1] }}{% endfor %}", "k=1", "k=1"},
		{"{{ event['s'] | size }} {{ event[meta.type] | default: 'x' }}", "6 x", "6 x"},
		{"{{ meta.topic }} {{ meta.time | date: '%Y' }}", "earthquake 2026", "earthquake 2026"},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			template, err := Compile(Source{Name: "x", Subject: "s", Text: tt.template, HTML: tt.template})
			if tt.text == "" {
				if err == nil {
					t.Fatal("compiled")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m := newMailing(t, Source{Text: "x"}, data)
			m.Template = template
			p := parse(t, write(t, m, newRecipient()).Body)
			if got := strings.TrimRight(p.parts["text/plain"], "\n"); got != tt.text {
				t.Errorf("text %q, want %q", got, tt.text)
			}
			if got := strings.TrimRight(p.parts["text/html"], "\n"); got != tt.html {
				t.Errorf("html %q, want %q", got, tt.html)
			}
		})
	}
}

func TestCheckFindsVariablesThatTheSchemaLacks(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"title":{"type":"string"},"felt":{"type":["integer","null"]},
		"place":{"$ref":"#/$defs/place"},"free":{"type":"object"},
		"tags":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}},
		"open":{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}},
		"either":{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}},
		"$defs":{"place":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	tests := []struct {
		template string
		message  string // "" if all is well
		hint     string
	}{
		{"{{ event.title }}{{ event.place.name }}{{ event.free.any.thing }}{{ event.tags[0].name }}{{ event.tags.first.name }}", "", ""},
		{"{{ event.open.zzz }}{{ event.either.a }}{{ event.either.b }}{{ event.title.size }}{{ event.tags.size }}", "", ""},
		{"{% for x in event.tags %}{{ x.name }}{% endfor %}{% assign p = event.place %}{{ p.name }}", "", ""},
		{"{{ event[meta.id] }}{{ subscription.params.place }}{{ subscriber.attributes.x }}", "", ""},
		{"{{ event.titel }}", "unknown field event.titel: it is not in the schema of the topic", "did you mean title?"},
		{"{% if event.nope %}x{% endif %}", "unknown field event.nope: it is not in the schema of the topic", ""},
		{"{{ event.nope | default: 1 }}", "unknown field event.nope: it is not in the schema of the topic", ""},
		{"{{ event.place.nam }}", "unknown field event.place.nam: it is not in the schema of the topic", "did you mean name?"},
		{"{{ event.title.x }}", "unknown field event.title.x: it is not in the schema of the topic", ""},
		{"{{ event.title[0] }}", "unknown field event.title[0] (event.title[]): it is not in the schema of the topic", ""},
		{"{{ event.either.c }}", "unknown field event.either.c: it is not in the schema of the topic", ""},
		{"{% for x in event.tags %}{{ x.nam }}{% endfor %}", "unknown field x.nam (event.tags[].nam): it is not in the schema of the topic", "did you mean name?"},
		{"{% assign p = event.place %}{{ p.nam }}", "unknown field p.nam (event.place.nam): it is not in the schema of the topic", "did you mean name?"},
		{"{{ subscription.params.plce }}", "subscription.params.plce: the rule has no parameter plce", "did you mean place?"},
		{"{% for s in subscriptions %}{{ s.params.plce }}{% endfor %}", "s.params.plce: the rule has no parameter plce", "did you mean place?"},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			template, err := Compile(Source{Name: "x", Subject: "s", Text: "\n" + tt.template})
			if err != nil {
				t.Fatal(err)
			}
			err = template.Check(json.RawMessage(schema), []string{"place"})
			if tt.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := problem(t, err); e.Message != tt.message || e.Hint != tt.hint || e.Line != 2 || e.Pointer != "/templates/x/text" {
				t.Errorf("%+v", *e)
			}
			if err := template.Check(nil, nil); err != nil {
				t.Errorf("without schema and params: %v", err)
			}
		})
	}
}

func TestDryRunShowsTheTemplateWithSamples(t *testing.T) {
	template, err := Compile(Source{Name: "x", Subject: "{{ event.title }}",
		Text: "{{ event.n }} {{ event.when | date: '%Y' }} {{ event.extra.deep | upcase }} {{ subscription.data.link }} {{ unsubscribe_url }}{% for t in event.tags %}<{{ t.name }}>{% endfor %}"})
	if err != nil {
		t.Fatal(err)
	}
	subject, text, html, err := template.DryRun(json.RawMessage(`{"type":"object","properties":{
		"title":{"type":"string","examples":["Quake"]},"n":{"type":"integer"},"when":{"type":"string","format":"date-time"},
		"tags":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if subject != "Quake" || text != "1 2026 1 1 https://example.org/u/sample<sample>" || html != "" {
		t.Errorf("%q %q %q", subject, text, html)
	}
	template, err = Compile(Source{Name: "x", Subject: "s", Text: "\n{{ event.title | divided_by: 0 }}"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = template.DryRun(json.RawMessage(`{"properties":{"title":{"type":"integer"}}}`)); err == nil {
		t.Fatal("divided by zero")
	}
	if e := problem(t, err); e.Line != 2 || !strings.Contains(e.Message, "division by zero") {
		t.Errorf("%+v", *e)
	}
}
