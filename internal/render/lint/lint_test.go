package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pageOf returns HTML with the words and without findings.
func pageOf(body string) string { return `<html lang="en"><body>` + body + "</body></html>" }

// words are long enough for a mail.
const words = "<p>There was an earthquake near you, and it was a strong one.</p>"

func TestEachRuleFindsOnlyItsOwnCase(t *testing.T) {
	for _, test := range []struct {
		name string
		src  Source
		want []string // rule part:line:column
	}{
		{"nothing is wrong", Source{Subject: "{{ event.title }}", HTML: pageOf(words + `<a href="{{ event.url }}">Details and map</a><img src="https://example.org/a.png" alt="">`)}, nil},
		{"image without alt", Source{HTML: pageOf(words + "\n <img src=\"https://example.org/a.png\">")}, []string{"image-alt html:2:2"}},
		{"block without alt", Source{HTML: pageOf(words + "\n<f-image src='https://example.org/a.png'>")}, []string{"image-alt html:2:1"}},
		{"Markdown without alt", Source{Layout: "plain", Markdown: "Hello, there is much to be read in here\n\nsee ![](https://example.org/a.png)"}, []string{"image-alt markdown:3:9"}},
		{"image without address", Source{HTML: pageOf(words + `<img alt="a map">`)}, []string{"image-address html:1:88"}},
		{"relative image", Source{HTML: pageOf(words + `<img alt="a map" src="map.png">`)}, []string{"image-address html:1:88"}},
		{"image in the HTML", Source{HTML: pageOf(words + `<img alt="a map" src="data:image/png;base64,AA==">`)}, []string{"image-address html:1:88"}},
		{"image that goes along", Source{HTML: pageOf(words + `<img alt="a map" src="cid:map">`)}, nil},
		{"image that nothing shows", Source{HTML: pageOf(words), UnusedImages: []string{"map"}}, []string{"image-unused images/map:1:1"}},
		{"large files", Source{HTML: pageOf(words), FilesBytes: 6_000_000}, []string{"files-large attachments:1:1"}},
		{"only an image", Source{HTML: pageOf(`<img alt="Sale" src="https://example.org/a.png">`)}, []string{"images-only html:1:1"}},
		{"link to nowhere", Source{HTML: pageOf(words + `<a href="#">Details</a><a href="">More of it</a><a>Even more</a>`)}, []string{"link-empty html:1:88", "link-empty html:1:111", "link-empty html:1:136"}},
		{"place of a page", Source{HTML: pageOf(words + `<a name="top"></a><a href="#top">To the top</a>`)}, nil},
		{"relative link", Source{HTML: pageOf(words + `<a href="/a">Details</a><a href="www.example.org">Site</a>`)}, []string{"link-broken html:1:88", "link-broken html:1:112"}},
		{"address that is none", Source{HTML: pageOf(words + `<a href="https:/example.org">Details</a><a href="https://example.org/a b">Site</a>`)}, []string{"link-broken html:1:88", "link-broken html:1:128"}},
		{"two schemes", Source{HTML: pageOf(words + `<a href="http://https://example.org">Details</a>`)}, []string{"link-private html:1:88"}},
		{"script in a link", Source{HTML: pageOf(words + `<a href="javascript:alert(1)">Details</a>`)}, []string{"link-broken html:1:88"}},
		{"mail and telephone", Source{HTML: pageOf(words + `<a href="mailto:a@example.org">Write</a><a href="tel:+431">Call</a><a href="mailto:{{ event.to }}">Write to him</a>`)}, nil},
		{"mail to nobody", Source{HTML: pageOf(words + `<a href="mailto:ada">Write</a>`)}, []string{"link-broken html:1:88"}},
		{"only here", Source{HTML: pageOf(words + `<a href="https://localhost:8080/x">Details</a><a href="https://10.0.0.1/">Site</a><a href="https://wiki/">Wiki</a>`)},
			[]string{"link-private html:1:88", "link-private html:1:134", "link-private html:1:170"}},
		{"http", Source{HTML: pageOf(words + `<a href="http://example.org/{{ event.id }}">Details</a>`)}, []string{"link-insecure html:1:88"}},
		{"a value decides", Source{HTML: pageOf(words + `<a href="{% if event.a %}http://a{% endif %}">Details</a><a href="https://{{ event.host }}/x y">x</a><a {% if event.b %}href="https://example.org"{% endif %}>Site</a>`)}, []string{"link-broken html:1:145"}},
		{"http in Markdown", Source{Layout: "plain", Markdown: "Hello, there is much to be read in here\n\n- a\n- [Details](http://example.org/a)"}, []string{"link-insecure markdown:4:13"}},
		{"link without words", Source{HTML: pageOf(words + `<a href="https://example.org"> </a><a href="https://example.org"><img alt="" src="https://example.org/a.png"></a>`)}, []string{"link-text html:1:88", "link-text html:1:123"}},
		{"link with an image that is described", Source{HTML: pageOf(words + `<a href="https://example.org"><img alt="Start" src="https://example.org/a.png"></a>`)}, nil},
		{"vague link", Source{HTML: pageOf(words + `<a href="https://example.org">Click <b>here</b></a>`)}, []string{"link-text html:1:88"}},
		{"words of somebody else", Source{HTML: pageOf(words + `<a href="https://evil.example.org/x">https://bank.com/login</a><a href="https://example.org">www.bank.com</a>`)}, []string{"link-misleads html:1:88", "link-misleads html:1:151"}},
		{"words of the same site", Source{HTML: pageOf(words + `<a href="https://www.gov.uk/x">GOV.UK</a><a href="https://example.org/a">example.org/a</a><a href="https://example.org/r">report.pdf</a>`)}, nil},
		{"too much", Source{HTML: pageOf(words), Rendered: Rendered{Text: "t", HTML: strings.Repeat("x", ClipBytes+1)}}, []string{"html-size html:1:1"}},
		{"as much as is shown", Source{HTML: pageOf(words), Rendered: Rendered{Text: "t", HTML: strings.Repeat("x", ClipBytes)}}, nil},
		{"no text", Source{HTML: pageOf(words), Rendered: Rendered{Text: " \n", HTML: "<p>x"}}, []string{"text-missing html:1:1"}},
		{"hidden words", Source{HTML: pageOf(words + "\n<div style='display:none'>casino <b>casino</b></div><p style='font-size: 0px'>poker</p>")}, []string{"text-hidden html:2:1", "text-hidden html:2:53"}},
		{"words with the colour of the page", Source{HTML: pageOf(words + `<p style="color:#fff">casino</p>`)}, []string{"contrast html:1:88"}},
		{"line of the list", Source{HTML: pageOf(`<div style="display:none">What you read beside the subject</div>` + words)}, nil},
		{"long line of the list", Source{HTML: pageOf(`<div style="display:none">` + strings.Repeat("casino ", 40) + `</div>` + words)}, []string{"text-hidden html:1:23"}},
		{"seen in what is not", Source{HTML: pageOf(words + `<div style="font-size:0"><p style="font-size:16px">Two columns</p></div>`)}, nil},
		{"no language", Source{HTML: "<html><body>" + words}, []string{"lang-missing html:1:1"}},
		{"a piece with a language", Source{HTML: `<div lang="cy">` + words + "</div>"}, nil},
		{"Markdown without layout", Source{Markdown: "Hello"}, []string{"lang-missing markdown:1:1"}},
		{"a page of their own", Source{HTML: words, CustomLayout: "<html><body>{{ content }}<img src='https://example.org/a.png'></body></html>"}, []string{"lang-missing page:1:1", "image-alt page:1:26"}},
		{"a partial", Source{HTML: pageOf(words + `{% render "foot" %}`), Partials: map[string]string{"foot": "<p>\n<a href='#'>Imprint</a>"}}, []string{"link-empty partials/foot:2:1"}},
		{"a variant", Source{PathPrefix: "locales/cy/", Layout: "plain", HTML: words + "\n<a href='#'>Manylion</a>"}, []string{"link-empty locales/cy/html:2:1"}},
		{"grey on white", Source{HTML: pageOf(words + `<p style="color: #999 !important">small</p><h1 style="color:rgb(140, 140, 140)">large</h1>`)}, []string{"contrast html:1:88"}},
		{"white on yellow, of several", Source{HTML: pageOf(words + "\n<table bgcolor='#ffff00'><tr><td style='font:bold 14px/1.5 sans-serif'><span style='color:white'>a</span><b>b</b></td></tr></table>")}, []string{"contrast html:2:72"}},
		{"colours nobody knows", Source{HTML: pageOf(words + `<p style="color:#eee;background:url(x.png)">a</p><p style="color:{{ event.c }}">b</p><p style="background:#000"><a href="https://example.org">Site</a></p>`)}, nil},
		{"a form", Source{HTML: pageOf(words + `<form><input name="q"></form>`)}, []string{"element-dropped html:1:88", "element-dropped html:1:94"}},
		{"capitals", Source{Subject: "WIN MONEY NOW {{ event.x }}"}, []string{"subject-caps subject:1:1"}},
		{"an abbreviation", Source{Subject: "GOV.UK: {{ event.title }}"}, nil},
		{"shouting", Source{Subject: "Act now!!"}, []string{"subject-marks subject:1:8"}},
		{"no answer", Source{Subject: "Re: your order"}, []string{"subject-reply subject:1:1"}},
		{"what is a comment", Source{HTML: pageOf(words + `{% comment %}<img>{% endcomment %}<!-- <a href="http://x"> -->`)}, nil},
		{"Notify", Source{Subject: "((SUBJECT LINE))", HTML: pageOf(words + `<a href="((link))">((words))</a>`)}, nil},
		{"columns are of characters", Source{HTML: pageOf(words + "\n<p>äöü<img src='https://example.org/a.png'>")}, []string{"image-alt html:2:7"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.src.Name = "quake"
			found, more := Check(test.src)
			var got []string
			for _, f := range found {
				got = append(got, fmt.Sprintf("%s %s:%d:%d", f.Rule, strings.TrimPrefix(f.Pointer, "/templates/quake/"), f.Line, f.Column))
				if f.Message == "" || f.Hint == "" {
					t.Errorf("%s says %q, and to do %q", f.Rule, f.Message, f.Hint)
				}
			}
			if !slices.Equal(got, test.want) || more != 0 {
				t.Errorf("found %q and %d more, not %q: %+v", got, more, test.want, found)
			}
		})
	}
}

func TestFindingsBeyondTheLimitAreCounted(t *testing.T) {
	found, more := Check(Source{Name: "x", HTML: pageOf(words + strings.Repeat("<img alt=''>", MaxFindings+7))})
	if len(found) != MaxFindings || more != 7 {
		t.Errorf("%d findings and %d more", len(found), more)
	}
}

func TestEachRuleIsExplained(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/how-to/template-lint.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{RenderFails, ImageAlt, ImageAddress, ImagesOnly, LinkEmpty, LinkBroken, LinkPrivate, LinkInsecure, LinkText, LinkMisleads, HTMLSize, TextMissing, TextHidden, LangMissing, Contrast, ElementDropped, SubjectCaps, SubjectMarks, SubjectReply} {
		if !strings.Contains(string(guide), "| `"+rule+"` |") {
			t.Errorf("docs/how-to/template-lint.md says nothing of %s", rule)
		}
	}
}

func TestExamplesHaveNoFindings(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*/*.html.liquid")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found, _ := Check(Source{Name: filepath.Base(file), HTML: string(text)}); len(found) > 0 {
			t.Errorf("%s: %+v", file, found)
		}
	}
}

func FuzzLint(f *testing.F) {
	f.Add("<a href='{{ x }}'", "# a ![](b)")
	f.Add("{% comment %}<p style='font:1px/'", "[a](http://b)")
	f.Fuzz(func(t *testing.T, html, markdown string) {
		for _, src := range []Source{{HTML: html}, {Markdown: markdown}} {
			found, _ := Check(src)
			for _, f := range found {
				if f.Line < 1 || f.Column < 1 || f.Line > strings.Count(src.HTML+src.Markdown, "\n")+1 {
					t.Errorf("%s stands at %d:%d", f.Rule, f.Line, f.Column)
				}
			}
		}
	})
}
