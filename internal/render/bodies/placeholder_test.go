package bodies

import (
	"strings"
	"testing"
)

func TestPartialsAreInserted(t *testing.T) {
	partials := map[string]string{
		"greet":  "Hello {{ name }}{% if title != \"\" %}, {{ title | upcase }}{% endif %}",
		"link":   "[{{ text }}]({{ url }}?name=1)",
		"both":   "{% render \"greet\", name: who.name, title: \"Dr\" %} and {% render \"link\", text: who.name, url: who.url %}",
		"items":  "{% for x in list %}\n- {{ x.name }} {{ name }}\n{% endfor %}\n",
		"circle": "{% render \"round\" %}", "round": "{% render \"circle\" %}",
	}
	tests := []struct{ name, source, want, wrong string }{
		{"with what it is given", `{% render "greet", name: event.name, title: subscriber.attributes.title %}`,
			`<p>Hello {{ event.name }}{% if subscriber.attributes.title != "" %}, {{ subscriber.attributes.title | upcase }}{% endif %}</p>`, ""},
		{"within one another", "{% for o in event.list %}\n- {% render 'both', who: o %}\n{% endfor %}",
			"<ul>\n{% for o in event.list %}\n<li>Hello {{ o.name }}{% if \"Dr\" != \"\" %}, {{ \"Dr\" | upcase }}{% endif %} and <a href=\"{{ o.url }}?name=1\">{{ o.name }}</a></li>\n{% endfor %}\n</ul>", ""},
		{"with a loop of its own", `{% render "items", list: event.all, name: event.by %}`, "<ul>\n{% for x in event.all %}\n<li>{{ x.name }} {{ event.by }}</li>\n{% endfor %}\n</ul>", ""},
		{"not what hides what is given", "{% for x in event.a %}{% render \"items\", list: x.all, name: event.by %}{% endfor %}", "", "x hides the argument list"},
		{"not one that there is not", "a\n{% render \"great\" %}", "", "unknown partial great"},
		{"not in circles", `{% render "circle" %}`, "", "partial circle renders itself"},
		{"not with filters", `{% render "greet", name: event.name | upcase %}`, "", "render cannot parse | upcase"},
		{"not by a variable", `{% render event.name %}`, "", "render requires the name of a partial"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made, wrong := Make(Source{Name: "t", Markdown: tt.source, Partials: partials})
			if tt.wrong != "" {
				if len(wrong) == 0 || wrong[0].Message != tt.wrong || wrong[0].Line == 0 || wrong[0].Pointer == "" {
					t.Errorf("%v", wrong)
				}
				return
			}
			if len(wrong) > 0 {
				t.Fatal(wrong[0])
			}
			if got := strings.TrimSpace(plainLiquid(made.HTML.Source)); got != tt.want {
				t.Errorf("\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestPartialsAreInHTMLAndText(t *testing.T) {
	src := Source{Name: "t", HTML: `<p>{% render "p", a: event.a %}</p>`, Text: "T {% render \"p\", a: event.b %}\n", Partials: map[string]string{"p": "({{ a }})\n"}}
	made, wrong := Make(src)
	if len(wrong) > 0 || src.IsComplete() {
		t.Fatal(wrong)
	}
	if made.HTML.Source != "<p>({{ event.a }})</p>" || made.Text.Source != "T ({{ event.b }})\n" {
		t.Errorf("%q and %q", made.HTML.Source, made.Text.Source)
	}
	if f, line := made.HTML.Origin(1); f == nil || f.Pointer() != "/templates/t/partials/p" || line != 1 {
		t.Errorf("from %v:%d", f, line)
	}
}

func TestCustomLayout(t *testing.T) {
	src := Source{Name: "t", Subject: "S {{ event.s }}", Markdown: "Hi {{ event.a }}", Lang: "ar",
		CustomLayout: "<html lang=\"{{ lang }}\" dir=\"{{ dir }}\"><head><title>{{ title }}</title><style>p { margin: 0 }</style></head><body>{{ content }}<p>By {{ meta.service }}</p></body></html>"}
	made, wrong := Make(src)
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	want := "<html lang=\"ar\" dir=\"rtl\"><head><title>S {{ event.s }}</title></head><body><p style=\"margin: 0\">Hi {{ event.a }}</p>\n<p style=\"margin: 0\">By {{ meta.service }}</p></body></html>"
	if got := plainLiquid(made.HTML.Source); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := plainLiquid(made.Text.Source); got != "Hi {{ event.a }}\n\nBy {{ meta.service }}\n" {
		t.Errorf("%q", got)
	}
	src.CustomLayout = "<html></html>"
	if _, wrong = Make(src); len(wrong) == 0 || wrong[0].Pointer != "/templates/t/page" {
		t.Errorf("%v", wrong)
	}
}
