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

// liquid finds a comment, an output, a field as GOV.UK Notify writes it, and a tag.
var liquid = regexp.MustCompile(`(?s)\{%-?\s*comment\s*-?%\}.*?\{%-?\s*endcomment\s*-?%\}|\{\{.*?\}\}|\(\(.*?\)\)|\{%.*?%\}`)

// masked is the text with its Liquid put out of sight.
func masked(text string) string {
	return liquid.ReplaceAllStringFunc(text, func(found string) string {
		with := byte(tag)
		if found[0] == '(' || found[1] == '{' {
			with = value
		}
		out := []byte(found)
		for i := range out {
			if out[i] != '\n' {
				out[i] = with
			}
		}
		return string(out)
	})
}

// depends reports whether Liquid decides what the text is.
func depends(text string) bool { return strings.ContainsAny(text, "\x1a\x1b") }

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
