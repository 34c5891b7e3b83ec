package store

import (
	"strings"
	"unicode/utf8"
)

// replacement (U+FFFD) replaces invalid bytes of a text.
const replacement = "\uFFFD"

// Text returns s as valid UTF-8 without zero bytes. PostgreSQL accepts no other text, so all
// drivers store texts in this form. Input of users is validated before, with an error that names
// the field; other texts, such as replies of servers, are made valid here.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
