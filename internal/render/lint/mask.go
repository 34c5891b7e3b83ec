package lint

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bytes that replace Liquid, so that offsets stay the same. No template can contain them, and
// they have no meaning in HTML.
const (
	value = '\x1a' // of an output
	tag   = '\x1b' // of a tag
)

// maskLiquid replaces the Liquid in a text: comments, outputs, tags and the placeholders of
// GOV.UK Notify.
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

// A masker goes through a text once. It remembers which end marks do not follow any more: a new
// search for each beginning would take quadratic time.
type masker struct {
	text   string
	absent map[string]bool
}

// endcomment matches the tag that ends a comment.
var endcomment = regexp.MustCompile(`\{%-?\s*endcomment\s*-?%\}`)

// endOf returns the end of the Liquid that begins at an offset, and the byte that replaces it;
// 0 if none begins there.
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

// endAfter returns the offset behind the first end mark after from; 0 if there is none.
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

// isComment reports whether a tag begins a comment.
func isComment(within string) bool {
	within = strings.TrimSuffix(strings.TrimPrefix(within, "-"), "-")
	return strings.TrimSpace(within) == "comment"
}

// hasLiquid reports whether a text contains Liquid.
func hasLiquid(text string) bool { return strings.ContainsAny(text, "\x1a\x1b") }

// literal returns the text without its Liquid.
func literal(text string) string {
	return strings.Map(func(r rune) rune {
		if r == value || r == tag {
			return -1
		}
		return r
	}, text)
}

// lineOf returns the line and the column of an offset, from 1.
func lineOf(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
