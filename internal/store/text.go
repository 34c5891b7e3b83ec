package store

import (
	"strings"
	"unicode/utf8"
)

// replacement (U+FFFD) replaces bytes that are not valid UTF-8.
const replacement = "\uFFFD"

// Text returns s as valid UTF-8 without zero bytes. PostgreSQL accepts no other text, so all drivers store texts in this form. User input is
// validated earlier, with an error that names the field. Text repairs other texts, such as replies of servers.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
