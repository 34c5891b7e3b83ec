package store

import (
	"strings"
	"unicode/utf8"
)

// replacement stands where a text has bytes that are none (U+FFFD).
const replacement = "\uFFFD"

// Text is s as a database keeps it: valid UTF-8 without zero bytes. PostgreSQL
// takes no other, so every driver gives its texts this form, and all keep the
// same. What a user writes is checked before, with the field named; what comes
// to here is the prose of machines.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
