package format

import (
	"strings"
	"testing"
)

// Each of these kept a core for hours, or took all memory of the machine. What is
// looked at is that they end, and say why.
func TestNoTemplateTakesTheServerForItself(t *testing.T) {
	double := func(what string) string {
		return `{% assign s = "abcdefgh" %}` + strings.Repeat(what, 60) + "{{ s | size }}"
	}
	for name, test := range map[string]struct{ text, want string }{
		"loops in loops":             {"{% tablerow i in (1..1000) %}{% for j in event.list %}{% for k in event.list %}{% endfor %}{% endfor %}{% endtablerow %}", errTurns.Error()},
		"appended to itself":         {double("{% assign s = s | append: s %}"), errValue.Error()},
		"prepended to itself":        {double("{% assign s = s | prepend: s %}"), errValue.Error()},
		"replaced by more":           {double(`{% assign s = s | replace: "a", "aaaaaaaaaaaaaaaaaaaaaaaaa" %}`), errValue.Error()},
		"replaced, in one":           {`{% assign s = "a" %}{{ s ` + strings.Repeat(`| replace: "a", "aaaaaaaaaaaaaaaaaaaaaaaaa"`, 60) + ` | size }}`, errValue.Error()},
		"joined by itself":           {double(`{% assign s = s | split: "" | join: s %}`), errValue.Error()},
		"quoted again and again":     {`{% assign s = '"' %}` + strings.Repeat("{% assign s = s | inspect %}", 60) + "{{ s | size }}", errValue.Error()},
		"a list joined to itself":    {`{% assign l = event.list %}` + strings.Repeat("{% assign l = l | concat: l %}", 60) + "{{ l | size }}", errValue.Error()},
		"captured twice":             {double("{% capture s %}{{ s }}{{ s }}{% endcapture %}"), "the rendered template is over 4 MB"},
		"many variables":             {"{% for i in (1..1000) %}{% assign s = event.long %}{% endfor %}", errHeld.Error()},
		"a line break to a new line": {`{% assign s = event.lines %}` + strings.Repeat("{% assign s = s | newline_to_br %}", 100) + "{{ s | size }}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailing(t, Source{Subject: "s", HTML: test.text}, `{"list":[`+strings.Repeat("1,", 2000)+`1],"long":"`+strings.Repeat("x", 200<<10)+`","lines":"`+strings.Repeat(`\n`, 1000)+`"}`)
			w, err := m.Writer()
			if err == nil {
				_, _, err = w.Write(nil, newRecipient())
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestWhatOneMessageTookIsNotAnothers(t *testing.T) {
	m := newMailing(t, Source{Subject: "s", Text: "{% for i in (1..600) %}{% for j in (1..600) %}{% endfor %}{% endfor %}{% assign s = event.long %}{{ subscriber.id }}"}, `{"long":"`+strings.Repeat("x", 200<<10)+`"}`)
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := w.Write(nil, newRecipient()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTagsOfTheCompilerAreUnknownToTemplates(t *testing.T) {
	for _, source := range []string{"{% fanfare_turn %}", "{% fanfare_capture a %}x{% endfanfare_capture %}"} {
		if _, err := Compile(Source{Name: "x", Subject: "s", Text: source}); err == nil || !strings.Contains(err.Error(), "undefined tag") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
