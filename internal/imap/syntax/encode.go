package syntax

import (
	"strconv"
	"strings"
	"time"
)

// maxQuoted is the length from which a string is written as a literal.
const maxQuoted = 4096

// AppendString appends a string: quoted if possible, else as a literal. Strings with 8-bit characters are quoted only if the client enabled UTF-8.
func AppendString(b []byte, s string, isUTF8 bool) []byte {
	if len(s) > maxQuoted || strings.ContainsFunc(s, func(r rune) bool { return r == '\r' || r == '\n' || r == 0 || r >= 0x80 && !isUTF8 || r == 0xfffd }) {
		return AppendLiteral(b, []byte(s))
	}
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}

// AppendNString appends a string, or NIL if it is empty.
func AppendNString(b []byte, s string, isUTF8 bool) []byte {
	if s == "" {
		return append(b, "NIL"...)
	}
	return AppendString(b, s, isUTF8)
}

// AppendLiteral appends a literal.
func AppendLiteral(b []byte, data []byte) []byte {
	b = append(b, '{')
	b = strconv.AppendInt(b, int64(len(data)), 10)
	b = append(b, '}', '\r', '\n')
	return append(b, data...)
}

// AppendLiteral8 appends a literal8 (RFC 9051, section 4.3).
func AppendLiteral8(b []byte, data []byte) []byte {
	return AppendLiteral(append(b, '~'), data)
}

// AppendAstring appends an atom if possible, else a string.
func AppendAstring(b []byte, s string, isUTF8 bool) []byte {
	if s == "" || strings.EqualFold(s, "NIL") {
		return AppendString(b, s, isUTF8)
	}
	for i := range len(s) {
		if !isAtomChar(s[i]) {
			return AppendString(b, s, isUTF8)
		}
	}
	return append(b, s...)
}

// AppendMailbox appends the name of a mailbox, given in UTF-8.
func AppendMailbox(b []byte, name string, isUTF8 bool) []byte {
	return AppendAstring(b, EncodeMailbox(name, isUTF8), isUTF8)
}

// AppendDateTime appends a date such as " 1-Feb-1994 12:34:56 +0000", in UTC.
func AppendDateTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, "02-Jan-2006 15:04:05 -0700")
	return append(b, '"')
}

// AppendSection appends a section with its brackets as it stands in a response.
func AppendSection(b []byte, s Section) []byte {
	b = append(b, '[')
	for i, n := range s.Part {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	if s.Of != "" {
		if len(s.Part) > 0 {
			b = append(b, '.')
		}
		b = append(b, s.Of...)
	}
	if len(s.Fields) > 0 {
		b = append(b, " ("...)
		for i, name := range s.Fields {
			if i > 0 {
				b = append(b, ' ')
			}
			b = AppendAstring(b, strings.ToUpper(name), false) // as other servers write them
		}
		b = append(b, ')')
	}
	return append(b, ']')
}
