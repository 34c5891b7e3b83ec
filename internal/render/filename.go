package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plainNameBytes is how long a file name may be that stands in a header as it is; a
// longer one is written in pieces, so that no line is longer than it should be.
const plainNameBytes = 60

// appendFileName appends the parameter filename to a Content-Disposition: as it is
// where it is ASCII and short, else as RFC 2231 has it.
func appendFileName(dst []byte, name string) []byte {
	if isASCII(name) && len(name) <= plainNameBytes {
		return append(appendQuotedString(append(dst, ";\r\n filename="...), name), "\r\n"...)
	}
	pieces := percentPieces(name)
	if len(pieces) == 1 {
		return append(append(append(dst, ";\r\n filename*=utf-8''"...), pieces[0]...), "\r\n"...)
	}
	for i, piece := range pieces {
		charset := ""
		if i == 0 {
			charset = "utf-8''"
		}
		dst = fmt.Appendf(dst, ";\r\n filename*%d*=%s%s", i, charset, piece)
	}
	return append(dst, "\r\n"...)
}

// percentPieces writes a name for RFC 2231, section 4, in pieces for lines: a
// character is never in two of them.
func percentPieces(name string) (pieces []string) {
	var piece []byte
	for i := 0; i < len(name); {
		_, size := utf8.DecodeRuneInString(name[i:])
		start := len(piece)
		for _, c := range []byte(name[i : i+size]) {
			if attributeChar(c) {
				piece = append(piece, c)
			} else {
				piece = fmt.Appendf(piece, "%%%02X", c)
			}
		}
		if len(piece) > plainNameBytes-len("utf-8''") {
			pieces = append(pieces, string(piece[:start]))
			piece = piece[start:]
		}
		i += size
	}
	return append(pieces, string(piece))
}

// attributeChar reports whether a byte may stand as it is: attribute-char of RFC
// 2231, section 7.
func attributeChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`{|}~", c) >= 0
}

// appendQuotedString appends a quoted-string (RFC 5322, section 3.2.4) of ASCII.
func appendQuotedString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

// asciiName is a name for readers that know nothing of RFC 2231: short, in ASCII, with
// the extension.
func asciiName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= utf8.RuneSelf {
			r = '_'
		}
		b.WriteRune(r)
	}
	ascii := b.String()
	if len(ascii) <= plainNameBytes {
		return ascii
	}
	extension := ""
	if dot := strings.LastIndexByte(ascii, '.'); dot >= 0 && len(ascii)-dot <= 10 {
		extension = ascii[dot:]
	}
	return ascii[:plainNameBytes-len(extension)] + extension
}
