package catalog

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts for recipients, in characters.
const (
	MaxLabelTitle       = 100
	MaxLabelDescription = 500
)

// CheckLabel says what is wrong with a text for recipients, "" if nothing is: it must be one line of 1 to longest
// characters.
func CheckLabel(s string, longest int) (problem, hint string) {
	switch size := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "":
		return "the text is empty", "write the text that recipients read, or omit the field"
	case size > longest:
		return fmt.Sprintf("the text has %d characters; at most %d are allowed", size, longest), ""
	case strings.ContainsFunc(s, unprintable):
		return "the text contains a line break or another control character", "write one line of plain text"
	}
	return "", ""
}

// unprintable reports characters that break a line or reverse what stands around them.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) && r != '\u200e' && r != '\u200f' && r != '\u061c'
}
