package bodies

import (
	"os"
	"strings"
	"testing"
)

func TestMarkdownBecomesHTMLAndText(t *testing.T) {
	tests := []struct {
		name, markdown, html, text string
	}{
		{"a heading and a paragraph", "# {{ event.title }}\n\nHello **{{ subscriber.id }}**.",
			"<h1>{{ event.title }}</h1>\n<p>Hello <strong>{{ subscriber.id }}</strong>.</p>",
			"{{ event.title }}\n{{ event.title | underline: \"=\" }}\n\nHello {{ subscriber.id }}."},
		{"values are not read as Markdown, and filters stay", "*{{ event.a | default: \"*b*\" }}*",
			"<p><em>{{ event.a | default: \"*b*\" }}</em></p>", "{{ event.a | default: \"*b*\" }}"},
		{"a value in an address", "[The page](https://www.gov.uk{{ event.path }}), https://www.gov.uk{{ event.path }} and <{{ event.url }}>",
			`<p><a href="https://www.gov.uk{{ event.path }}">The page</a>, <a href="https://www.gov.uk{{ event.path }}">https://www.gov.uk{{ event.path }}</a> and <a href="{{ event.url }}">{{ event.url }}</a></p>`,
			"The page <https://www.gov.uk{{ event.path }}>, https://www.gov.uk{{ event.path }}\nand {{ event.url }}"},
		{"tags on lines of their own", "One\n{% if event.a %}\nTwo\n{% endif %}\nThree",
			"<p>One</p>\n{% if event.a %}\n<p>Two</p>\n{% endif %}\n<p>Three</p>",
			"One\n\n{% if event.a %}Two\n\n{% endif %}Three"},
		{"a paragraph on a condition, in one line", "One\n\n{% if event.a %}Two **{{ event.b }}**{% else %}No{% endif %}\n\nThree",
			"<p>One</p>\n{% if event.a %}\n<p>Two <strong>{{ event.b }}</strong></p>\n{% else %}\n<p>No</p>\n{% endif %}\n<p>Three</p>",
			"One\n\n{% if event.a %}Two {{ event.b }}\n\n{% else %}No\n\n{% endif %}Three"},
		{"two conditions in one paragraph", "{% if event.a %}a{% endif %}{% if event.b %}b{% endif %}",
			"<p>{% if event.a %}a{% endif %}{% if event.b %}b{% endif %}</p>", "{% if event.a %}a{% endif %}{% if event.b %}b{% endif %}"},
		{"tags in a line", "One {% if event.a %} two {% endif %} three{% if event.b %}, four{% endif %}.",
			"<p>One {% if event.a %} two {% endif %} three{% if event.b %}, four{% endif %}.</p>",
			"One {% if event.a %}two {% endif %}three{% if event.b %}, four{% endif %}."},
		{"a loop makes items and not lists", "{% for o in event.list %}\n- {{ o }}\n{% endfor %}\n- last",
			"<ul>\n{% for o in event.list %}\n<li>{{ o }}</li>\n{% endfor %}\n<li>last</li>\n</ul>",
			"{% for o in event.list %}- {{ o }}\n{% endfor %}- last"},
		{"a numbered loop", "{% for o in event.list %}\n1. {{ o }}\n{% endfor %}",
			"<ol>\n{% for o in event.list %}\n<li>{{ o }}</li>\n{% endfor %}\n</ol>",
			"{% for o in event.list %}{{ forloop.index }}. {{ o }}\n{% endfor %}"},
		{"a list on a condition is no item of the one before", "- a\n\nthen\n\n{% if event.a %}\n- b\n{% endif %}",
			"<ul>\n<li>a</li>\n</ul>\n<p>then</p>\n{% if event.a %}\n<ul>\n<li>b</li>\n</ul>\n{% endif %}",
			"- a\n\nthen\n\n{% if event.a %}- b\n\n{% endif %}"},
		{"lists in lists", "1. a\n2. b\n   - c\n   - d\n\nend", "<ol>\n<li>a</li>\n<li>b\n<ul>\n<li>c</li>\n<li>d</li>\n</ul>\n</li>\n</ol>\n<p>end</p>",
			"1. a\n2. b\n   - c\n   - d\n\nend"},
		{"rows of a table in a loop", "| Name | Price |\n|---|---|\n{% for r in event.rows %}\n| {{ r.a }} | {{ r.b }} |\n{% endfor %}",
			"<table class=\"data\">\n<thead>\n<tr>\n<th scope=\"col\">Name</th>\n<th scope=\"col\">Price</th>\n</tr>\n</thead>\n<tbody>\n{% for r in event.rows %}\n<tr>\n<td>{{ r.a }}</td>\n<td>{{ r.b }}</td>\n</tr>\n{% endfor %}\n</tbody>\n</table>",
			"{% for r in event.rows %}Name: {{ r.a }}\nPrice: {{ r.b }}\n\n{% endfor %}"},
		{"a table on a condition", "{% if event.a %}\n| a | b |\n|---|---|\n| 1 | 2 |\n{% endif %}",
			"{% if event.a %}\n<table class=\"data\">\n<thead>\n<tr>\n<th scope=\"col\">a</th>\n<th scope=\"col\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n{% endif %}",
			"{% if event.a %}a: 1\nb: 2\n\n{% endif %}"},
		{"an inset", "^ Mind\n^ the gap", "<div class=\"inset\">\n<p>Mind\nthe gap</p>\n</div>", "Mind the gap"},
		{"a quotation and code", "> said {{ x }}\n\n```\na {{ event.x }}\n  b\n```", "<blockquote>\n<p>said {{ x }}</p>\n</blockquote>\n<pre><code>a {{ event.x }}\n  b\n</code></pre>",
			"> said {{ x }}\n\n    a {{ event.x }}\n      b"},
		{"raw and comments are left alone", "{% raw %}{{ x }} *a*{% endraw %} b{% comment %} *c* {% endcomment %}",
			"<p>{% raw %}{{ x }} *a*{% endraw %} b{% comment %} *c* {% endcomment %}</p>",
			"{% raw %}{{ x }} *a*{% endraw %} b{% comment %} *c* {% endcomment %}"},
		{"a heading on a condition", "## {% if event.a %}Level {{ event.a }}{% else %}None{% endif %}",
			"<h2>{% if event.a %}Level {{ event.a }}{% else %}None{% endif %}</h2>",
			"{% if event.a %}Level {{ event.a }}{% else %}None{% endif %}\n{% if event.a %}------{{ event.a | underline: \"-\" }}{% else %}----{% endif %}"},
		{"a tag that must not run twice", "# {% assign x = event.a %}{{ x }}!", "<h1>{% assign x = event.a %}{{ x }}!</h1>", "{% assign x = event.a %}{{ x }}!\n============="},
		{"an address of an image that is a value", "![]({{ event.map }}) ![{{ event.alt }}]({{ event.map }})",
			`<p><img src="{{ event.map }}" alt=""> <img src="{{ event.map }}" alt="{{ event.alt }}"></p>`, "{{ event.map }} {{ event.alt }}"},
		{"a word that looks like a mark", "qlqax {{ event.a }} QLQQbx", "<p>qlqax {{ event.a }} QLQQbx</p>", "qlqax {{ event.a }} QLQQbx"},
		{"right to left and wide", "# مرحبا {{ event.a }}\n\n地震がありました。", "<h1>مرحبا {{ event.a }}</h1>\n<p>地震がありました。</p>", "مرحبا {{ event.a }}\n======{{ event.a | underline: \"=\" }}\n\n地震がありました。"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made, wrong := Make(Source{Name: "t", Markdown: tt.markdown})
			if len(wrong) > 0 {
				t.Fatal(wrong[0])
			}
			if got := strings.TrimSpace(plainLiquid(made.HTML.Source)); got != strings.TrimSpace(tt.html) {
				t.Errorf("html\n%s\nwant\n%s", got, tt.html)
			}
			if got := strings.TrimSpace(plainLiquid(made.Text.Source)); got != strings.TrimSpace(tt.text) {
				t.Errorf("text\n%s\nwant\n%s", got, tt.text)
			}
		})
	}
}

// plainLiquid removes the parts that only separate lines.
func plainLiquid(source string) string {
	return strings.ReplaceAll(source, lineSeparator, "")
}

func TestHTMLBecomesText(t *testing.T) {
	tests := []struct{ name, html, text string }{
		{"what is not for reading is left out", `<html><head><title>T</title><script>p</script></head><body><div style="display: none">first words</div><p>Hi&nbsp;&amp; bye<script>x</script></p></body></html>`, "Hi\u00a0& bye"},
		{"lines break where they are broken", "<p>a<br>b\n c</p>", "a\nb c"},
		{"pictures are what is said of them", `<p><img src="x" alt="A map"> <img src="y" alt=""></p>`, "A map"},
		{"an image without alt is its address", `<p>See <img src="https://a.example/map.png">.</p>`, "See https://a.example/map.png."},
		{"an image within the mail has no address", `<p>See <img src="cid:map"> <img src="data:image/png;base64,AA==">it</p>`, "See it"},
		{"an image that counts readers is nothing to read", `<p>a<img src="https://a.example/open.gif" width="1" height="1"></p>`, "a"},
		{"an image without alt that is a link", `<a href="https://a.example"><img src="https://a.example/logo.png"></a>`, "https://a.example"},
		{"a picture with an address", `<a href="https://a.example"><img src="x" alt="Us"></a>`, "Us <https://a.example>"},
		{"filters for HTML", "<p>{{ event.a | raw }} {{- event.b | escape }}{{ event.c | newline_to_br | upcase }}</p>", "{{ event.a | strip_html }} {{ event.b }}{{ event.c | upcase }}"},
		{"a list of terms", "<dl><dt>Magnitude</dt><dd><b>{{ event.mag }}</b></dd><dt>Depth</dt><dd>10 km</dd></dl>", "Magnitude: {{ event.mag }}\nDepth: 10 km"},
		{"a table for looks is no table", `<table role="presentation"><tr><td>a</td><td>b</td></tr></table>`, "a\nb"},
		{"pairs", `<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>`, "a: b\nc: d"},
		{"rows", `<table><tr><td>a</td><td>b</td><td>c</td></tr></table>`, "a | b | c"},
		{"addresses that are said", `<p><a href="mailto:a@b.example">a@b.example</a> <a href="#top">up</a> <a href="tel:+441">call</a></p>`, "a@b.example up call <tel:+441>"},
		{"attributes with Liquid", `<p{% if event.a %} class="x"{% endif %}>a</p>`, "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made, wrong := Make(Source{Name: "t", HTML: tt.html})
			if len(wrong) > 0 {
				t.Fatal(wrong[0])
			}
			if got := strings.TrimSpace(plainLiquid(made.Text.Source)); got != tt.text {
				t.Errorf("%q, want %q", got, tt.text)
			}
			if made.HTML.Source != tt.html {
				t.Errorf("HTML that needs nothing was changed: %s", made.HTML.Source)
			}
		})
	}
}

func TestLinesOfTextAreWrapped(t *testing.T) {
	made, wrong := Make(Source{Name: "t", Markdown: "> - " + strings.Repeat("some words and {{ event.a }} ", 40)})
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	lines := strings.Split(strings.TrimSpace(made.Text.Source), "\n")
	if len(lines) < 10 {
		t.Errorf("only %d lines", len(lines))
	}
	for i, line := range lines {
		if seen := strings.ReplaceAll(line, "{{ event.a }}", strings.Repeat("x", valueWidth)); len(seen) > maxColumns {
			t.Errorf("%d columns: %s", len(seen), line)
		}
		if !strings.HasPrefix(line, "> - ") && !strings.HasPrefix(line, ">   ") || i > 0 && line[2] == '-' {
			t.Errorf("not in its place: %q", line)
		}
	}
}

func TestErrorsHaveTheLineOfTheSource(t *testing.T) {
	tests := []struct {
		markdown     string
		line, column int
		message      string
	}{
		{"a\n\nb {{ x", 3, 3, "{{ is not closed"},
		{"a\n {% if event.a %}\nb", 2, 2, "if is not closed"},
		{"ä {% endif %}", 1, 3, "endif without an opening tag"},
		{"{% for x in event.a %}\n{% if x %}\n{% endfor %}", 3, 1, "endfor without an opening tag"},
		{"{% raw %}", 1, 1, "raw is not closed"},
	}
	for _, tt := range tests {
		_, wrong := Make(Source{Name: "t", Markdown: tt.markdown})
		if len(wrong) == 0 {
			t.Errorf("%q: nothing is wrong", tt.markdown)
			continue
		}
		if w := wrong[0]; w.Line != tt.line || w.Column != tt.column || w.Message != tt.message || w.Pointer != "/templates/t/markdown" {
			t.Errorf("%q: %s at %s %d:%d", tt.markdown, w.Message, w.Pointer, w.Line, w.Column)
		}
	}
}

// The golden file was written by hand.
func TestTextOfMarkdownIsReadable(t *testing.T) {
	source, err := os.ReadFile("testdata/elements.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/elements.txt")
	if err != nil {
		t.Fatal(err)
	}
	made, wrong := Make(Source{Name: "t", Markdown: string(source)})
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	if got := plainLiquid(made.Text.Source); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextWidthIsThatOfATerminal(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "地震 x": 6, "Ｆ": 2, "é": 1, "e\u0301": 1, "🌋": 2, "two\nlines": 5, "a\u200bb": 2} {
		if got := Columns(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// FuzzMake checks that no Liquid is lost or moved, and that no source causes a panic.
func FuzzMake(f *testing.F) {
	f.Add("# {{ a }}\n{% if b %}\n- {{ c }}\n{% endif %}\n\n| a |\n|---|\n| {{ d }} |", true)
	f.Add("<p{% if a %} x{% endif %}>{{ b }}<table><tr><td>{{ c }}", false)
	f.Fuzz(func(t *testing.T, source string, markdown bool) {
		src := Source{Name: "t", HTML: source}
		if markdown {
			src = Source{Name: "t", Markdown: source}
		}
		made, wrong := Make(src)
		if len(wrong) > 0 {
			return
		}
		if strings.Contains(made.HTML.Source, "qlq") != strings.Contains(strings.ToLower(source), "qlq") && !strings.Contains(strings.ToLower(source), "qlq") {
			t.Errorf("a mark is left in %q", made.HTML.Source)
		}
		if n := strings.Count(made.HTML.Source, "\n") + 1; made.HTML.Source != "" && n != len(made.HTML.lines) {
			t.Errorf("%d lines have %d origins", n, len(made.HTML.lines))
		}
	})
}
