package driver

import "unicode/utf8"

// MaxTextBytes is the maximum length of Outcome.Text.
const MaxTextBytes = 512

// AppendText appends the text of a reply to dst as one line of valid UTF-8 without control
// characters, until dst has limit bytes. It never cuts a character in two.
func AppendText(dst, text []byte, limit int) []byte {
	for len(text) > 0 && len(dst) < limit {
		c := text[0]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				c = ' '
			}
			dst = append(dst, c)
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text) // U+FFFD for an invalid byte
		if unprintable(r) {
			r = ' '
		}
		if len(dst)+utf8.RuneLen(r) > limit {
			break
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// unprintable reports whether r is a C1 control character or a line separator of Unicode.
func unprintable(r rune) bool {
	return r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
