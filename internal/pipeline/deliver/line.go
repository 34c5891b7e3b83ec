package deliver

import "unicode/utf8"

// MaxLine is how many bytes of what a next hop said are kept (Outcome.Text).
const MaxLine = 512

// AppendLine appends text, which comes from outside, to dst as one line of valid
// UTF-8 without control characters, until dst has limit bytes. No character is
// cut in two.
func AppendLine(dst, text []byte, limit int) []byte {
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
		r, size := utf8.DecodeRune(text) // U+FFFD for a byte that is none
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

// unprintable finds the C1 controls and the line separators of Unicode.
func unprintable(r rune) bool {
	return r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
