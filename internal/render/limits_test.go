package render

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Without limits, each of these templates keeps a core busy for hours or takes all memory of
// the machine. Rendering must stop with the reason.
func TestExpensiveTemplatesAreStopped(t *testing.T) {
	double := func(what string) string {
		return `{% assign s = "abcdefgh" %}` + strings.Repeat(what, 60) + "{{ s | size }}"
	}
	for name, test := range map[string]struct{ text, want string }{
		"loops in loops":             {"{% tablerow i in (1..1000) %}{% for j in event.list %}{% for k in event.list %}{% endfor %}{% endfor %}{% endtablerow %}", "the loops have more than"},
		"appended to itself":         {double("{% assign s = s | append: s %}"), "a value is larger than"},
		"prepended to itself":        {double("{% assign s = s | prepend: s %}"), "a value is larger than"},
		"replaced by more":           {double(`{% assign s = s | replace: "a", "aaaaaaaaaaaaaaaaaaaaaaaaa" %}`), "a value is larger than"},
		"replaced, in one":           {`{% assign s = "a" %}{{ s ` + strings.Repeat(`| replace: "a", "aaaaaaaaaaaaaaaaaaaaaaaaa"`, 60) + ` | size }}`, "a value is larger than"},
		"joined by itself":           {double(`{% assign s = s | split: "" | join: s %}`), "a value is larger than"},
		"quoted again and again":     {`{% assign s = '"' %}` + strings.Repeat("{% assign s = s | inspect %}", 60) + "{{ s | size }}", "a value is larger than"},
		"a list joined to itself":    {`{% assign l = event.list %}` + strings.Repeat("{% assign l = l | concat: l %}", 60) + "{{ l | size }}", "a value is larger than"},
		"captured twice":             {double("{% capture s %}{{ s }}{{ s }}{% endcapture %}"), "the rendered template is larger than 4 MB"},
		"many variables":             {"{% for i in (1..1000) %}{% assign s = event.long %}{% endfor %}", "the variables contain more than"},
		"sorted in loops":            {"{% for i in (1..1000) %}{% for j in (1..1000) %}{{ event.list | sort | size }}{% endfor %}{% endfor %}", "the filters process more than"},
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

// Comparing each value with all others would take a minute for an event with many tags.
func TestUniqueIsFastForManyValues(t *testing.T) {
	const many = 12_000
	var tags, objects []string
	for n := range many {
		tags, objects = append(tags, strconv.Quote(strconv.Itoa(n))), append(objects, fmt.Sprintf(`{"n":%d}`, n))
	}
	m := newMailing(t, Source{Subject: "s", Text: "{{ event.tags | uniq | size }} {{ event.objects | uniq | size }}"}, `{"tags":[`+strings.Join(tags, ",")+`],"objects":[`+strings.Join(objects, ",")+`]}`)
	if out := string(write(t, m, newRecipient()).Body); !strings.Contains(out, "12000 12000") {
		t.Errorf("%s", out)
	}
}

func TestUniqueKeepsOneOfEqualValues(t *testing.T) {
	m := newMailing(t, Source{Subject: "s", Text: "{{ event.all | uniq | json }}"}, `{"all":["b","a","b",1,1,null,null,{"x":1,"y":[2]},{"y":[2],"x":1},[1],[1],[2],true,true]}`)
	if out, want := string(write(t, m, newRecipient()).Body), `["b","a",1,null,{"x":1,"y":[2]},[1],[2],true]`; !strings.Contains(out, want) {
		t.Errorf("%s, want %s", out, want)
	}
}

func TestTemplatesCannotUseNamesOfTheCompiler(t *testing.T) {
	for _, source := range []string{"{% assign fanfare_usage = 1 %}", "{% capture fanfare_usage %}x{% endcapture %}", "{% for fanfare_usage in event.list %}{% endfor %}", "{{ fanfare_usage }}", "{{ 1 | fanfare_count: 1, 1 }}"} {
		if _, err := Compile(Source{Name: "x", Subject: "s", Text: source}); err == nil {
			t.Errorf("%s is taken", source)
		}
	}
}

// The personal pieces of a part are rendered separately and share its limit.
func TestPiecesOfAPartShareOneLimit(t *testing.T) {
	piece := "{% for i in (1..100) %}{{ event.long | append: subscriber.id | upcase | size }}{% endfor %} and {{ event.title }} " // which takes 40 MB
	m := newMailing(t, Source{Subject: "s", Text: strings.Repeat(piece, 5)}, `{"title":"x","long":"`+strings.Repeat("x", 200<<10)+`"}`)
	w, err := m.Writer()
	if err == nil {
		_, _, err = w.Write(nil, newRecipient())
	}
	if err == nil || !strings.Contains(err.Error(), "the filters process more than") {
		t.Errorf("it says %v", err)
	}
}

func TestEachMessageHasItsOwnLimit(t *testing.T) {
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

func TestTemplatesCannotUseTagsOfTheCompiler(t *testing.T) {
	for _, source := range []string{"{% fanfare_iteration %}", "{% fanfare_capture a %}x{% endfanfare_capture %}"} {
		if _, err := Compile(Source{Name: "x", Subject: "s", Text: source}); err == nil || !strings.Contains(err.Error(), "undefined tag") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
