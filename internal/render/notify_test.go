package render

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/notifytext"
)

func TestNotifySyntaxRendersAsNotifyDoes(t *testing.T) {
	const event = `{"title":"Flood","list":["a"," b ",null,"","c"],"two":["x","y"],"none":[],"n":5,"flag":"yes","off":"no","on":true,"null":null,"html":"<b>"}`
	tests := []struct{ template, sub, text string }{
		{"((title)) ((TITLE)) (( Ti_t-le ))", "", "Flood Flood Flood"},
		{"((first name)), ((title))", `{"First_Name":"Ada","title":"Storm"}`, "Ada, Storm"}, // the recipient's own data comes first
		{"((list)); ((two)); [((none))]; ((n))", "", "a, b and c; x and y; []; 5"},
		{"((flag??shown ??, it's \"quoted\"))((off??hidden))((on?? and\nthis))", "", "shown ??, it's \"quoted\" and\nthis"},
		{"{{ event.title }} {% if x %} {((title))} {{", "", "{{ event.title }} {% if x %} {Flood} {{"},
		{"(title) ((((title)))) [link](((title)))", "", "(title) ((Flood)) [link](Flood)"},
		{"(())((a(b)))", "", "(())((a(b)))"},
		{"((unsubscribe_url))", "", "https://example.org/u/token"},
		{"((title", "", "((title"},
		{"((null))", `{"null":"own"}`, "own"},
	}
	for _, tt := range tests {
		m := newMailing(t, Source{Text: "x"}, event)
		m.UnsubscribeURL = func(dst []byte, _ *Recipient) []byte { return append(dst, "https://example.org/u/token"...) }
		var err error
		if m.Template, err = Compile(Source{Name: "x", Subject: "((title))", Text: tt.template, HTML: "<p>((html))</p>", Syntax: liquid.SyntaxNotify}); err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		r := newRecipient()
		if tt.sub != "" {
			r.Data = []byte(tt.sub)
		}
		p, err := w.Preview(r)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		if got := strings.TrimRight(p.Text, "\n"); got != tt.text || strings.TrimSpace(p.HTML) != "<p>&lt;b&gt;</p>" {
			t.Errorf("%s: %q %q, want %q", tt.template, got, p.HTML, tt.text)
		}
	}
}

func TestErrorNamesMissingNotifyField(t *testing.T) {
	for template, want := range map[string]string{
		"((first name))":      "undefined variable ((first name))",
		"((is old??too old))": "undefined variable ((is old))",
		"((null))":            "undefined variable ((null))",
		"((applicant's age))": `undefined variable ((applicant"s age))`,
	} {
		m := newMailing(t, Source{Text: "x"}, `{"title":"Flood","null":null}`)
		var err error
		if m.Template, err = Compile(Source{Name: "x", Subject: "s", Text: "((title\n))\n" + template, Syntax: liquid.SyntaxNotify}); err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSpace(parse(t, write(t, m, newRecipient()).Body).parts["text/plain"]); text != "Flood" {
			t.Errorf("%s: %q, want only the title", template, text)
		}
		m.RefuseMissing = true
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.Write(nil, newRecipient())
		if err == nil {
			t.Errorf("%s is written", template)
			continue
		}
		if e := problem(t, err); e.Message != want || e.Line != 3 || e.Pointer != "/templates/x/text" {
			t.Errorf("%s: %+v", template, *e)
		}
	}
}

func TestNotifyTemplateIsCheckedAgainstTheTopic(t *testing.T) {
	const schema = `{"type":"object","properties":{"title":{"type":"string"},"is_old":{"type":"boolean"}}}`
	template, err := Compile(Source{Name: "x", Subject: "((Title))", Text: "((is old??x)) ((unsubscribe url))", Syntax: liquid.SyntaxNotify})
	if err != nil {
		t.Fatal(err)
	}
	if err := template.Check([]byte(schema), nil); err != nil {
		t.Error(err)
	}
	if _, text, _, err := template.DryRun([]byte(schema)); err != nil || text != "x https://example.org/u/sample" {
		t.Errorf("%q %v", text, err)
	}
	if template, err = Compile(Source{Name: "x", Subject: "s", Text: "\n((titel))", Syntax: liquid.SyntaxNotify}); err != nil {
		t.Fatal(err)
	}
	err = template.Check([]byte(schema), nil)
	if err == nil {
		t.Fatal("a field that the schema lacks is taken")
	}
	if e := problem(t, err); e.Message != "unknown field ((titel)): it is not in the schema of the topic" || e.Hint != "did you mean title?" || e.Line != 2 {
		t.Errorf("%+v", *e)
	}
	if _, text, _, err := template.DryRun(nil); err != nil || text != "\n1" {
		t.Errorf("%q %v", text, err)
	}
	if err := template.CheckDigest(nil); err == nil {
		t.Error("it is taken for digests")
	}
	_, err = Compile(Source{Name: "x", Subject: "s", Text: "t", Syntax: "jinja"})
	if err == nil {
		t.Fatal("an unknown syntax is taken")
	}
	if e := problem(t, err); e.Pointer != "/templates/x/syntax" || !strings.Contains(e.Message, "jinja") {
		t.Errorf("%+v", *e)
	}
}

func TestMarkdownAcceptsNotifySyntax(t *testing.T) {
	m := newMailing(t, Source{Text: "x"}, `{"title":"A <b>flood</b>","url":"https://example.org/?a=1&b=2","late":"no"}`)
	var err error
	if m.Template, err = Compile(Source{Name: "x", Subject: "((title))", Markdown: "# ((title))\n\n[read {{ it }}](((url)))((late??, late))\n", Syntax: liquid.SyntaxNotify}); err != nil {
		t.Fatal(err)
	}
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Preview(newRecipient())
	if err != nil {
		t.Fatal(err)
	}
	if want := `href="https://example.org/?a=1&amp;b=2"`; !strings.Contains(p.HTML, want) || !strings.Contains(p.HTML, "A &lt;b&gt;flood&lt;/b&gt;") ||
		!strings.Contains(p.HTML, "read {{ it }}</a>") || strings.Contains(p.HTML, "late") {
		t.Errorf("%s", p.HTML)
	}
}

// Any text in the syntax of Notify is a valid template and keeps its text.
func FuzzTextOfNotifyIsKept(f *testing.F) {
	for _, seed := range []string{"{{", "{((a))", "{%((a??{%))%}", "((a\n??b))", "{{{", "((a'\"b))", "\\((a))", "{{ '{' }}{% raw %}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if liquid.CheckSource(source, liquid.MaxBodyBytes) != nil || strings.ContainsRune(source, '\r') {
			return
		}
		template, err := Compile(Source{Name: "x", Subject: "s", Text: source + "x", Syntax: liquid.SyntaxNotify})
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		if regexp.MustCompile(`\(\([^()]+\)\)`).MatchString(source) {
			return
		}
		out, wrong := template.text.Whole.Render(map[string]any{}, new(liquid.Usage))
		if wrong != nil || string(out) != source+"x" {
			t.Errorf("%q is written as %q: %v", source, out, wrong)
		}
	})
}

// A mail with a Markdown body in the syntax of Notify has the text and the HTML that package
// notifytext writes, whatever the layout around them is.
func TestNotifyMarkdownIsWrittenAsNotifyDoes(t *testing.T) {
	const markdown = "# Hello ((name))\n\n*Not* emphasis: ((list))\n\n[read](((url)))((late??, late)) ((note))"
	const event = `{"list":["a","b"],"url":"https://example.org/?a=1&b=2","late":"no","title":"\"Flood\" - ok"}`
	for _, layout := range []string{"", "plain", "letter", "own"} {
		src := Source{Name: "x", Subject: "((title))", Markdown: markdown, Syntax: liquid.SyntaxNotify, Layout: layout}
		if layout == "own" {
			src.Layout, src.Page = "", `<html lang="{{ lang }}"><title>{{ title }}</title><body>{{ content }}</body></html>`
		}
		m := newMailing(t, Source{Text: "x"}, event)
		var err error
		if m.Template, err = Compile(src); err != nil {
			t.Fatal(err)
		}
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range []string{`{"name":"Ada","note":"done"}`, `{"name":"Ada <b>","note":"[more](https://example.org/more)"}`} {
			r := newRecipient()
			r.Data = []byte(sub)
			p, err := w.Preview(r)
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]any
			if err := json.Unmarshal([]byte(strings.Replace(event, "}", ","+sub[1:], 1)), &all); err != nil {
				t.Fatal(err)
			}
			body := notifytext.NewBody(notifytext.Parse(markdown))
			if p.Subject != "“Flood” – ok" {
				t.Errorf("%s: subject %q", layout, p.Subject)
			}
			if want := body.HTML(notifytext.Map(all)); !strings.Contains(p.HTML, strings.TrimSpace(want)) || !strings.Contains(p.HTML, "<title>“Flood” – ok</title>") {
				t.Errorf("%s: %s\nwant in it\n%s", layout, p.HTML, want)
			}
			if want := body.Plain(notifytext.Map(all)); !strings.HasPrefix(p.Text, want) {
				t.Errorf("%s: %q, want %q", layout, p.Text, want)
			}
		}
	}
}

func TestErrorNamesMissingFieldOfNotifyMarkdown(t *testing.T) {
	m := newMailing(t, Source{Text: "x"}, `{"title":"Flood"}`)
	var err error
	if m.Template, err = Compile(Source{Name: "x", Subject: "((title))", Markdown: "((title))\n\ntext ((who)) ((is old??x))", Syntax: liquid.SyntaxNotify}); err != nil {
		t.Fatal(err)
	}
	m.RefuseMissing = true
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.Write(nil, newRecipient())
	if err == nil {
		t.Fatal("a message that lacks a field is written")
	}
	if e := problem(t, err); e.Message != "undefined variable ((who))" || e.Line != 3 || e.Pointer != "/templates/x/markdown" {
		t.Errorf("%+v", *e)
	}
}
