package document

import (
	"strconv"
	"strings"
	"testing"
)

func TestTitlesAreOneLineOfPlainText(t *testing.T) {
	for name, c := range map[string]struct {
		title string
		good  bool
	}{
		"one character":          {"a", true},
		"100 characters":         {strings.Repeat("ä", 100), true},
		"101 characters":         {strings.Repeat("ä", 101), false},
		"empty":                  {"", false},
		"spaces alone":           {"  ", false},
		"a line break":           {"a\nb", false},
		"a line separator":       {"a\u2028b", false},
		"a control character":    {"a\x07b", false},
		"a C1 control character": {"a\u0085b", false},
		"an override":            {"a\u202eb", false},
		"an isolate":             {"a\u2067b", false},
		"markup":                 {"<b>", true},
		"a joiner within a word": {"می\u200cخواهم", true},
		"a mark of direction":    {"a\u200fb", true},
	} {
		t.Run(name, func(t *testing.T) {
			for member, document := range map[string]string{
				"rule":    `{"service":"s","topics":{"t":{"rules":[{"name":"r","when":"true","title":` + strconv.QuoteToASCII(c.title) + `}]}}}`,
				"channel": `{"service":"s","channels":{"c":{"driver":"file","path":"/tmp/x","from":"a@example.org","title":` + strconv.QuoteToASCII(c.title) + `}}}`,
			} {
				document = strings.ReplaceAll(document, `\a`, `\u0007`)
				doc, err := ParseDocument([]byte(document), "")
				if (err == nil) != c.good {
					t.Errorf("%s: %v", member, err)
				}
				if c.good && member == "rule" && doc.Topics["t"].Rules[0].Title != c.title {
					t.Errorf("%s: the title is %q", member, doc.Topics["t"].Rules[0].Title)
				}
			}
		})
	}
}
