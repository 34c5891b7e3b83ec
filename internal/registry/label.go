package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts for recipients, in characters.
const (
	maxLabelTitle       = 100
	maxLabelDescription = 500
)

// label reads a text for recipients: one line of 1 to longest characters.
func (n node) label(longest int) string {
	s := n.text()
	switch size := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "":
		n.fault("write what recipients shall read, or leave the field out", "the text is empty")
	case size > longest:
		n.fault("", "the text has %d characters, more than %d", size, longest)
	case strings.ContainsFunc(s, unprintable):
		n.fault("write one line of plain text", "the text has a line break or another control character")
	}
	return s
}

// unprintable reports characters that break a line or reverse what stands around them.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) && r != '\u200e' && r != '\u200f' && r != '\u061c'
}
