package lint

import (
	"regexp"
	"strings"
	"testing"
)

// large is a quarter of the maximum size of a part.
const large = 128 << 10

// hostile has parts for which a quadratic check would take seconds, and minutes at the maximum
// size.
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

// asWritten matches the text that maskLiquid removes.
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
