package lint

import (
	"regexp"
	"strings"
	"testing"
)

// large is a quarter of the longest part that a template may have.
const large = 128 << 10

// hostile are parts with what was looked at again and again: the square of each took
// seconds, and minutes of one four times as long.
var hostile = map[string]Source{
	"links":             {HTML: strings.Repeat("<a>", large/3)},
	"links in lines":    {HTML: strings.Repeat("<a>\n", large/4)},
	"colours":           {HTML: strings.Repeat("<b style=color:#fff>x</b>", large/25)},
	"hidden words":      {HTML: strings.Repeat("<b hidden>x", large/11)},
	"images":            {Layout: "plain", Markdown: strings.Repeat("![](a)\n", large/7)},
	"comments":          {HTML: strings.Repeat("{%comment%}", large/11)},
	"outputs":           {HTML: strings.Repeat("{{{%%}", large/6)},
	"fields":            {HTML: strings.Repeat("(({%%}", large/6)},
	"tags that go on":   {HTML: strings.Repeat("{%", large/2)},
	"comment and blank": {HTML: strings.Repeat("{% ", large/3)},
}

func TestRepeatedFindingsAreComputedOnce(t *testing.T) {
	for name, src := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found, _ := Check(src); len(found) > MaxFindings {
				t.Errorf("%d findings", len(found))
			}
		})
	}
}

// asWritten is what masked puts out of sight, as a pattern says it.
var asWritten = regexp.MustCompile(`(?s)\{%-?\s*comment\s*-?%\}.*?\{%-?\s*endcomment\s*-?%\}|\{\{.*?\}\}|\(\(.*?\)\)|\{%.*?%\}`)

func FuzzMasked(f *testing.F) {
	for _, text := range []string{"", "a {{ b }} c ((d)) {% if e %}", "{% comment %}{{ a }}{%- endcomment -%} b", "{%comment%}", "{{ ((a)) %}", "{%-comment-%}}}{%endcomment%}", "{%%}{{}}(())", "{{{ a }}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := maskLiquid(text)
		want := asWritten.ReplaceAllStringFunc(text, func(found string) string {
			with := tag
			if found[0] == '(' || found[1] == '{' {
				with = value
			}
			out := []byte(found)
			for i := range out {
				if out[i] != '\n' {
					out[i] = byte(with)
				}
			}
			return string(out)
		})
		if got != want {
			t.Errorf("%q is masked as %q, want %q", text, got, want)
		}
	})
}
