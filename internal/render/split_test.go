package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// undivided returns the template with every part rendered whole for each recipient.
func undivided(t *Template) *Template {
	whole := *t
	for _, p := range []**templatePart{&whole.subject, &whole.text, &whole.html} {
		if *p != nil {
			one := *(*p).Part
			one.Split, one.Shared, one.Slots = false, nil, nil
			*p = &templatePart{&one, (*p).owner}
		}
	}
	return &whole
}

// TestSplitAndWholeRenderingGiveTheSameBytes checks partial evaluation.
func TestSplitAndWholeRenderingGiveTheSameBytes(t *testing.T) {
	splits := 0
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom(templatePieces()),
			rapid.StringMatching(`[ a-z{}%<&"'\n=_.-]{0,12}`),
		), 1, 12).Draw(t, "pieces")
		source := strings.Join(pieces, "")
		template, err := Compile(Source{Name: "x", Subject: "s " + strings.ReplaceAll(source, "\n", " "), Text: source + " ", HTML: source + " "})
		if err != nil {
			return // not a template
		}
		value := rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"", "x", " sp ", "a\nb", "a\r\nb", "\r", "\n", "ü", "--=_evt-", "=", "<&>\"'", strings.Repeat("long ", 300), "\x00\x07", "{{ event }}", "\xff"}),
		)
		object := func(name string) json.RawMessage {
			raw, err := json.Marshal(map[string]any{
				"a": value.Draw(t, name+".a"), "b": rapid.Float64().Draw(t, name+".b"), "c": nil,
				"d": []any{value.Draw(t, name+".d"), 1, true}, "e": map[string]any{"f": value.Draw(t, name+".f")},
				"i": rapid.Int64().Draw(t, name+".i"),
			})
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		m := newMailing(t, Source{Text: "x"}, string(object("event")))
		m.Template = template
		whole := m
		whole.Template = undivided(template)
		w1, err1 := m.Writer()
		w2, err2 := whole.Writer()
		if err2 != nil {
			t.Fatal(err2)
		}
		if err1 != nil {
			// An error in the shared part fails every message.
			if _, _, err := w2.Write(nil, newRecipient()); err == nil {
				t.Fatalf("only the split template fails: %v", err1)
			}
			return
		}
		if template.text.Split {
			splits++
		}
		for range 3 {
			r := newRecipient()
			r.Locale, r.TimeZone = value.Draw(t, "locale"), value.Draw(t, "zone")
			r.Attributes = object("attributes")
			for i := range r.Subscriptions {
				r.Subscriptions[i].Data = object("data")
				r.Subscriptions[i].ID = value.Draw(t, "id")
			}
			if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
				r.Subscriptions = nil
			}
			if rapid.Bool().Draw(t, "direct") {
				r.Data = object("sub")
			}
			l1, _, err1 := w1.Write(nil, r)
			l2, _, err2 := w2.Write(nil, r)
			if (err1 == nil) != (err2 == nil) {
				t.Fatalf("split: %v; whole: %v", err1, err2)
			}
			if !bytes.Equal(l1.Body, l2.Body) {
				t.Fatalf("split:\n%s\nwhole:\n%s", l1.Body, l2.Body)
			}
			if err1 == nil {
				parse(t, l1.Body)
			}
		}
	})
	if splits == 0 {
		t.Error("no template was ever split")
	}
}

// One template serves all goroutines at once.
func TestTemplateServesConcurrentWriters(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.a }} {{ subscriber.id | upcase }}",
		Text: "{% assign v = subscriber.id %}{{ v }}", HTML: "{% for s in subscriptions %}{{ s.data.link }}{% endfor %}"}, `{"a":"ü"}`)
	m.UnsubscribeURL = nil
	want := write(t, m, newRecipient()).Body
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			w, err := m.Writer()
			if err != nil {
				t.Error(err)
				return
			}
			var dst []byte
			for range 100 {
				var message driver.Message
				message, dst, err = w.Write(dst[:0], newRecipient())
				if err != nil || !bytes.Equal(message.Body, want) {
					t.Errorf("%v: %s", err, message.Body)
					return
				}
			}
		})
	}
	group.Wait()
}

func templatePieces() []string {
	return []string{
		"{{ event.a }}", "{{- event.a -}}", "{{ event.b }}", "{{ event.d }}", "{{ event.e }}", "{{ event.a | raw }}", "{{ meta.id }}",
		"{{ event.b | number: 2 }}", "{{ event.b | money: \"EUR\" -}}", "{{ meta.time | date: \"long\" }}", "{{- subscription.data.i | plural: \"one: # day\", \"other: # days\" }}", "{{ meta.time | time }}",
		"{{ subscriber.id }}", "{{- subscriber.locale -}}", "{{ subscriber.attributes.a }}", "{{ subscriber.attributes.e.f }}",
		"{{ subscription.data.a }}", "{{- subscription.data.b }}", "{{ subscription.data.c }}", "{{ subscription.data.d }}", "{{ subscription.data.i -}}",
		"{{ subscription.data }}", "{{ subscription.data.a | upcase }}", "{{ subscription.data.a | raw }}", "{{ subscription.data.e.f | escape }}",
		"{{ subscription.data.x | default: event.a }}", "{{ subscription.data.d[0] }}",
		"{{ subscription.data.a | default: 'x<' }}", "{{ subscription.data.a | default: 'x<' | raw }}", "{{ subscription.data.x | default: \"<y\" | raw }}", "{{ subscription.data.c | default: 5 }}", "{{subscription.data.d|default:\"\"}}",
		"{{ subscription.data.x.y | default: 1.50 }}", "{{ subscriber.locale | default: 'en' }}", "{{ subscription.data.a | default: -1 | upcase }}", "{{ subscription.data.d.size }}", "{{ subscriptions[1].id }}",
		"{{ sub }}", "{{ sub.a }}", "{{ sub.e.f | default: 'y' }}", "{{ sub.x | default: 1 }}", "{% if sub.b %}{{ sub.a | upcase }}{% endif %}",
		"{{ unsubscribe_url }}", "{{ subscription.id }}", "{{ subscriber.time_zone }}", "{{ subscription.data.a.size }}",
		"{% if subscription.data.a == 'x' %}{{ event.a }}\n{% else %} {{ subscriber.id }} {% endif %}",
		"{%- if event.a == 'x' -%} x {%- else -%} {{ event.b }} {%- endif -%}",
		"{% for s in subscriptions %}{{ forloop.index }} {{ s.data.a }}\n{%- endfor %}",
		"{% for x in event.d %}{{ x }},{% endfor %}",
		"{% assign v = event.a %}", "{{ v }}", "{% assign v = subscriber.locale %}", "{% assign w = subscription.data.a | upcase %}{{ w }}",
		"{% capture v %}<b>{{ event.a }}</b>{% endcapture %}", "{% capture q %}{{ subscriber.id }}{% endcapture %}{{ q }}",
		"{% raw %}{{ x }}\n{% endraw %}", "{% comment %}\n{% endcomment %}", "\n", "\n\n  ", "<p>", "ü", "--=_evt-", strings.Repeat("line ", 250),
	}
}
