package lint

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What stands in place of the bytes of Liquid, so that offsets stay: both are
// characters that no template may rely on, and that HTML leaves alone.
const (
	value = '\x1a' // of an output
	tag   = '\x1b' // of a tag
)

// maskLiquid is the text with its Liquid put out of sight: comments, outputs, fields as
// GOV.UK Notify writes them, and tags.
func maskLiquid(text string) string {
	m := masker{text: text, absent: map[string]bool{}}
	out := []byte(text)
	for at := 0; at < len(text); {
		end, with := m.endOf(at)
		if end == 0 {
			at++
			continue
		}
		for ; at < end; at++ {
			if out[at] != '\n' {
				out[at] = with
			}
		}
	}
	return string(out)
}

// A masking goes through a text from front to back. It remembers of which ends there
// is none any more: looking for it anew at each beginning would take the square of
// the text.
type masker struct {
	text   string
	absent map[string]bool
}

// endcomment is the tag that ends a comment.
var endcomment = regexp.MustCompile(`\{%-?\s*endcomment\s*-?%\}`)

// endOf is where the Liquid ends that begins at a place, and what it is put out of
// sight with; 0 where none begins.
func (m *masker) endOf(at int) (end int, with byte) {
	switch rest := m.text[at:]; {
	case strings.HasPrefix(rest, "{{"):
		return m.endAfter(at+2, "}}"), value
	case strings.HasPrefix(rest, "(("):
		return m.endAfter(at+2, "))"), value
	case strings.HasPrefix(rest, "{%"):
		end = m.endAfter(at+2, "%}")
		if end > 0 && isComment(m.text[at+2:end-2]) && !m.absent["endcomment"] {
			if found := endcomment.FindStringIndex(m.text[end:]); found != nil {
				return end + found[1], tag
			}
			m.absent["endcomment"] = true
		}
	}
	return end, tag
}

// endAfter is where the first of some ends stops from a place on, 0 where there is none.
func (m *masker) endAfter(from int, end string) int {
	if m.absent[end] {
		return 0
	}
	i := strings.Index(m.text[from:], end)
	if i < 0 {
		m.absent[end] = true
		return 0
	}
	return from + i + len(end)
}

// isComment reports whether a comment begins with a tag.
func isComment(within string) bool {
	within = strings.TrimSuffix(strings.TrimPrefix(within, "-"), "-")
	return strings.TrimSpace(within) == "comment"
}

// hasLiquid reports whether Liquid decides what the text is.
func hasLiquid(text string) bool { return strings.ContainsAny(text, "\x1a\x1b") }

// literal is what of the text its author wrote out.
func literal(text string) string {
	return strings.Map(func(r rune) rune {
		if r == value || r == tag {
			return -1
		}
		return r
	}, text)
}

// lineOf counts from 1.
func lineOf(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
