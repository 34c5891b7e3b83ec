package render

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/render/liquid"
)

// poor returns a recipient who has only the required fields, and a subscription with a filter.
func poor() *Recipient {
	r := newRecipient()
	r.Locale, r.TimeZone, r.Attributes = "", "", nil
	r.Subscriptions = []Subscription{{ID: "sub-1"}}
	return r
}

func TestKnownAbsentVariableIsEmpty(t *testing.T) {
	for template, want := range map[string]string{
		"{% for s in subscriptions %}{{ s.rule }}{{ s.params | json }}{% endfor %}":                                      "",
		"{{ subscription.params }}{{ subscription.params.place }}{{ subscription.data.a.b }}":                            "",
		"{{ subscriber.attributes.name }}{{ subscriber.attributes | json }}{{ subscriber.locale }}":                      "",
		"{{ event.gone }}{{ event.gone.deep[0].er }}{{ event.list[7] }}{{ event['no such'] }}":                           "",
		"{{ event.title | append: event.gone }}":                                                                         "x",
		"{% for x in event.gone %}a{% endfor %}{% for x in event.gone.er %}b{{ x.c }}{% endfor %}":                       "",
		"{% for x in event.gone %}a{% else %}none{% endfor %}":                                                           "none",
		"{% for x in event.list limit: event.gone offset: event.gone %}{{ x }}{% endfor %}":                              "1",
		"{% assign x = event.gone %}{{ x }}{{ x.y }}":                                                                    "",
		"{% if event.gone > 3 or event.gone < 3 or event.gone == 3 or event.gone contains 'a' %}a{% else %}b{% endif %}": "b",
		"{% if subscriptions.size == 1 %}{{ subscription.params.n | plus: 1 }}{% endif %}":                               "1",
		"{% case event.gone %}{% when 1 %}a{% else %}b{% endcase %}":                                                     "b",
		"{{ meta.extensions.gone }}{{ meta.subject }}":                                                                   "",
		"{% assign first = event.gone | first %}{{ first.name }}":                                                        "",
		"{{ event.gone | json }}{{ event.gone | inspect }}":                                                              "",
	} {
		source := Source{Subject: "s" + template, Text: template, HTML: "<p>" + template + "</p>", Variants: []Variant{{Locale: "cy", Text: "cy" + template}}}
		m := newMailing(t, source, `{"title":"x","list":[1]}`)
		m.Event.Subject = ""
		w, err := m.Writer()
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		p, err := w.Preview(poor())
		if err != nil || strings.TrimSpace(p.Text) != want || !strings.Contains(p.HTML, "<p>"+want+"</p>") || p.Subject != "s"+want {
			t.Errorf("%s: %q, %q and %q, %v, want %q", template, p.Subject, p.Text, p.HTML, err, want)
		}
		r := poor()
		r.Locale = "cy"
		if strings.Contains(template, "subscriber.locale") {
			continue
		}
		if p, err := w.Preview(r); err != nil || strings.TrimSpace(p.Text) != "cy"+want {
			t.Errorf("%s in another language: %q, %v", template, p.Text, err)
		}
	}
}

func TestKnownAbsentVariableIsEmptyInEveryPart(t *testing.T) {
	const read = "[{{ event.gone }}{{ subscription.params | json }}{% for s in subscriptions %}{{ s.data.a.b }}{% endfor %}]"
	for name, source := range map[string]Source{
		"markdown": {Markdown: "a " + read},
		"layout":   {Markdown: "a " + read, Layout: "plain"},
		"page":     {HTML: "<p>a</p>", Page: "<html lang=\"en\"><body>" + read + "{{ content }}</body></html>"},
		"partial":  {Text: "{% render \"part\" %}", HTML: "<p>{% render \"part\" %}</p>", Partials: map[string]string{"part": read}},
		"device":   {Text: "x", HTML: "x", Variants: []Variant{{Device: "phone", HTML: read}}},
	} {
		source.Subject = "s"
		m := newMailing(t, source, `{}`)
		w, err := m.Writer()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := poor()
		if r.Subscriptions[0].Data = json.RawMessage(`{}`); name == "device" {
			r.Subscriptions[0].Data = json.RawMessage(`{"device":"phone"}`)
		}
		if p, err := w.Preview(r); err != nil || !strings.Contains(p.HTML, "[]") {
			t.Errorf("%s: %q, %v", name, p.HTML, err)
		}
	}
}

func TestDigestOmitsAbsentSubscriptionFields(t *testing.T) {
	const text = "{{ count }}{% for item in items %}({{ item.subscription.rule }}{{ item.subscription.params | json }}{{ item.subscription.params.place }}{{ item.event.gone.er }}{{ item.meta.extensions.x }}{% for s in item.subscriptions %}{{ s.data.a }}{% endfor %}){% endfor %}"
	m := newDigest(t, Source{Text: text, HTML: text}, `{"n":1}`, `{"n":2}`)
	for _, subscriptions := range [][]Subscription{{{ID: "sub-1"}}, nil} {
		r := poor()
		r.Subscriptions = subscriptions
		r.Items = []RecipientItem{{Number: 0}, {Number: 1}}
		if subscriptions != nil {
			r.Items = []RecipientItem{{Number: 0, Subscriptions: []uint32{0}}, {Number: 1, Subscriptions: []uint32{0}}}
		}
		if got := strings.TrimSpace(parse(t, write(t, m, r).Body).parts["text/plain"]); got != "2()()" {
			t.Errorf("%q", got)
		}
	}
}

func TestWebhookDocumentWritesAbsentValueAsNullOrEmpty(t *testing.T) {
	template, err := Compile(Source{Name: "hook", JSON: `{"a": {{ event.gone | json }}, "b": "{{ subscription.params.place }}", "c": {{ subscription.params | json }}}`})
	if err != nil {
		t.Fatal(err)
	}
	w, err := WebhookBatch{Template: template, Event: posted(`{}`)}.Writer()
	if err != nil {
		t.Fatal(err)
	}
	r := receiver()
	r.Subscriptions = []Subscription{{ID: "sub-1"}}
	message, _, err := w.Write(nil, r)
	if err != nil || string(message.Body) != `{"a": null, "b": "", "c": null}` {
		t.Errorf("%s %v", message.Body, err)
	}
}

func TestFiltersAcceptAbsentValuesAndArguments(t *testing.T) {
	arguments := map[string][]string{"append": {"''"}, "concat": {"event.list"}, "date": {"'%Y'", "'long'"}, "default": {"'x'"}, "divided_by": {"2"}, "join": {"','"},
		"map": {"'a'"}, "minus": {"1"}, "modulo": {"2"}, "plus": {"1"}, "prepend": {"'a'"}, "remove": {"'a'"}, "remove_first": {"'a'"}, "replace": {"'a', 'b'"},
		"replace_first": {"'a', 'b'"}, "round": {"1"}, "slice": {"0, 2"}, "sort": {"'a'"}, "sort_natural": {"'a'"}, "split": {"','"}, "sum": {"'a'"}, "times": {"2"},
		"truncate": {"3"}, "truncatewords": {"3"}, "underline": {"'='"}, "where": {"'a', 'b'"}, "datetime": {"'long'"}, "money": {"'EUR'"}, "number": {"1"}, "plural": {"'other: x'"}, "time": {"'UTC'"}}
	optional := " date join round sort sort_natural sum truncate truncatewords underline datetime number time where slice uniq "
	for _, filter := range strings.Fields(liquid.FilterNames + liquid.LocalizedFilterNames) {
		var all []string
		for _, given := range arguments[filter] {
			all = append(all, "event.gone | "+filter+": "+given)
		}
		if len(all) == 0 || strings.Contains(optional, " "+filter+" ") && filter != "slice" && filter != "where" {
			all = append(all, "event.gone | "+filter)
		}
		if len(arguments[filter]) > 0 && filter != "plural" {
			for _, value := range []string{"event.s", "event.n", "event.list"} {
				if _, err := rendersFor(poor(), "{{ "+value+" | "+filter+": "+arguments[filter][len(arguments[filter])-1]+" }}"); err == nil {
					all = append(all, value+" | "+filter+": event.gone", value+" | "+filter+": subscription.params.gone")
				}
			}
		}
		for _, expression := range all {
			if _, err := rendersFor(poor(), "{{ "+expression+" }}"); err != nil {
				t.Errorf("%s: %v", expression, err)
			}
		}
	}
}

// rendersFor returns the text and HTML of a template for r.
func rendersFor(r *Recipient, text string) (Preview, error) {
	template, err := Compile(Source{Name: "x", Subject: "s", Text: text, HTML: text})
	if err != nil {
		return Preview{}, err
	}
	w, err := MailBatch{Template: template, From: mail.Address{Address: "a@example.org"}, Domain: "example.org",
		Event: posted(`{"s":"2026-01-02","n":7,"list":[{"a":1}]}`)}.Writer()
	if err != nil {
		return Preview{}, err
	}
	return w.Preview(r)
}

func TestUnknownVariableErrorHasPositionAndSuggestion(t *testing.T) {
	const schema = `{"type":"object","properties":{"title":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}`
	for _, tt := range []struct {
		template     string
		line, column int
		hint         string
	}{
		{"\n{{ subscriber.adress }}", 2, 4, "did you mean address?"},
		{"{{ subscriber.locale.name }}", 1, 4, ""},
		{"a {{ meta.tpic }}", 1, 6, "did you mean topic?"},
		{"{% for s in subscriptions %}\n  {{ s.parms.x }}{% endfor %}", 2, 6, "did you mean params?"},
		{"{% for s in subscriptions %}{{ forloop.indx }}{% endfor %}", 1, 32, "did you mean index?"},
		{"{{ evnt.title }}", 1, 4, "did you mean event?"},
		{"{{ event.titel }}", 1, 4, "did you mean title?"},
		{"{% if event.titel %}a{% endif %}", 1, 7, "did you mean title?"},
		{"{{ event.titel | default: 'x' }}", 1, 4, "did you mean title?"},
		{"{% assign x = event.list | first %}{{ x.nam }}", 1, 39, "did you mean name?"},
		{"{% assign all = event.list | sort: 'name' %}{% for x in all %}{{ x.nam }}{% endfor %}", 1, 66, "did you mean name?"},
		{"{{ event.list | map: 'nam' | join: ' ' }}", 1, 23, "did you mean name?"},
		{"{% for x in event.list %}{% assign y = x %}{{ y.nam }}{% endfor %}", 1, 47, "did you mean name?"},
		{"{% for s in subscriptions %}{% assign t = s %}{{ t.rle }}{% endfor %}", 1, 50, "did you mean rule?"},
		{"{{ subscriptions | map: 'rle' | join: ' ' }}", 1, 26, "did you mean rule?"},
		{"{{ unsubscribe_url.x }}", 1, 4, ""},
	} {
		t.Run(tt.template, func(t *testing.T) {
			template, err := Compile(Source{Name: "x", Subject: "s", Text: tt.template})
			if err == nil {
				err = template.Check(json.RawMessage(schema), nil)
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := problem(t, err); e.Line != tt.line || e.Column != tt.column || e.Hint != tt.hint || e.Pointer != "/templates/x/text" {
				t.Errorf("%+v", *e)
			}
		})
	}
}

func TestDryRunCoversEveryKindOfRecipientAndEvent(t *testing.T) {
	const schema = `{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"number"},"list":{"type":"array","items":{"type":"string"}}},"required":["title"]}`
	for name, tt := range map[string]struct{ source, kind string }{
		"no params":        {`{"a": {{ subscription.params.n }}}`, "a subscription with a filter"},
		"the second":       {`{"a": [0{% for s in subscriptions %}{% unless forloop.first %},{{ s.params.n }}{% endunless %}{% endfor %}]}`, "several subscriptions, the last with a filter"},
		"several":          {`{"a": [{% for s in subscriptions %}{{ s.id | json }}{% endfor %}]}`, "several subscriptions"},
		"no attributes":    {`{"a": {{ subscriber.attributes.n }}}`, "a recipient without attributes"},
		"no locale":        {`{"a": {{ subscriber.locale.size }}{% if subscriber.locale == "" %}x{% endif %}}`, "a recipient without locale"},
		"an optional one":  {`{"a": {{ event.n }}}`, "an event with only the fields that the schema requires"},
		"an empty list":    {`{"a": {% if event.list.size > 0 %}1{% endif %}}`, "an event with only the fields that the schema requires"},
		"a digest of one":  {`{"a": {% if count == 1 %}x{% else %}1{% endif %}}`, "a digest of one event"},
		"a digest of many": {`{"a": [{% for item in items %}{{ item.event.title | json }}{% endfor %}]}`, "a digest of many events"},
		"nothing more":     {`{"a": {% if more == 0 and count > 1 %}x{% else %}1{% endif %}}`, "a digest of many events, none of them omitted"},
		"no rule in items": {`{"a": {{ items[0].subscription.params.n }}}`, "a subscription with a filter"},
		"well":             {`{"a": {{ event.n | json }}, "b": "{{ subscription.params.n }}", "c": {{ subscriptions | json }}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := Compile(Source{Name: "x", JSON: tt.source})
			if err != nil {
				t.Fatal(err)
			}
			if template.Digest() {
				err = template.DryRunDigest([]json.RawMessage{json.RawMessage(schema)})
			} else {
				_, _, _, err = template.DryRun(json.RawMessage(schema))
			}
			if tt.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "(tried with "+tt.kind) {
				t.Errorf("%v, want that it was tried with %s", err, tt.kind)
			}
		})
	}
}

func TestMissingVariableWithoutSchemaIsReportedOnce(t *testing.T) {
	m := newMailing(t, Source{Subject: "s", Text: "{{ event.titel }}{{ event.a | default: 'x' }}{% if event.b %}{% endif %}{{ subscription.params.c }}{% if subscriber.id %}{{ event.d }}{% endif %}", HTML: "{{ event.titel | upcase }}"}, `{}`)
	var told []string
	m.OnMissing = func(variable string) { told = append(told, variable) }
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := w.Write(nil, poor()); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(told)
	if fmt.Sprint(told) != "[event.d event.titel]" {
		t.Errorf("told of %v", told)
	}
}
