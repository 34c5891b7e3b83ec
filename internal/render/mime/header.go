package mime

import (
	"encoding/base64"
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/address"
)

// Line lengths of RFC 5322, section 2.1.1, and of RFC 2047, section 2, without CRLF.
const (
	softLine        = 78
	hardLine        = 998
	encodedLine     = 76
	maxNameBytes    = 256 // of a display name
	maxURLBytes     = 900 // of a link, which cannot be folded
	longestUnfolded = 900 // of a word in a subject; a longer one is encoded
)

// invalidHeader is the error about a value that may not stand in a header; name becomes its
// pointer.
func invalidHeader(name, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: fmt.Sprintf(format, args...)}
}

// AppendMailbox appends "header: display name <address>" and reports whether the line needs
// SMTPUTF8. value names the setting in errors.
func AppendMailbox(dst []byte, header, value string, a mail.Address) ([]byte, bool, error) {
	route, err := address.Parse(a.Address)
	if err != nil {
		return dst, false, invalidHeader(value, "%s", err.Error())
	}
	route, utf8Needed, err := address.Route(route)
	if err != nil {
		return dst, false, invalidHeader(value, "%s", err.Error())
	}
	if len(a.Name) > maxNameBytes {
		return dst, false, invalidHeader(value, "the display name is longer than %d bytes", maxNameBytes)
	}
	if !utf8.ValidString(a.Name) || strings.ContainsFunc(a.Name, unicode.IsControl) {
		return dst, false, invalidHeader(value, "the display name %q contains a control character or is not UTF-8", a.Name)
	}
	start := len(dst)
	dst = append(dst, header...)
	dst = append(dst, ": "...)
	name := strings.TrimSpace(a.Name)
	if name == "" {
		return append(append(dst, route...), "\r\n"...), utf8Needed, nil
	}
	dst = appendPhrase(dst, name, len(dst)-start)
	if column(dst, start)+len(route)+3 > softLine {
		dst = append(dst, '\r', '\n')
	}
	dst = append(dst, " <"...)
	dst = append(dst, route...)
	return append(dst, ">\r\n"...), utf8Needed, nil
}

// column returns the length of the last line after start.
func column(b []byte, start int) int {
	n := len(b)
	for n > start && b[n-1] != '\n' {
		n--
	}
	return len(b) - n
}

// appendPhrase appends a display name: unchanged, quoted, or encoded.
func appendPhrase(dst []byte, name string, col int) []byte {
	if !isASCII(name) || strings.Contains(name, "=?") {
		return appendEncoded(dst, name, col)
	}
	for i := range len(name) {
		if c := name[i]; c != ' ' && !isAtext(c) || c == ' ' && name[i-1] == ' ' {
			dst = append(dst, '"')
			for j := range len(name) {
				if name[j] == '"' || name[j] == '\\' {
					dst = append(dst, '\\')
				}
				dst = append(dst, name[j])
			}
			return append(dst, '"')
		}
	}
	return append(dst, name...)
}

// CleanSubject turns text into one line, in place: every run of white space becomes one space.
func CleanSubject(text []byte) []byte {
	clean := text[:0]
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
			if n := len(clean); n > 0 && clean[n-1] != ' ' {
				clean = append(clean, ' ')
			}
		} else {
			clean = append(clean, text[:size]...)
		}
		text = text[size:]
	}
	if n := len(clean); n > 0 && clean[n-1] == ' ' {
		clean = clean[:n-1]
	}
	return clean
}

// AppendSubject appends the header line of a clean subject: folded at spaces if it is ASCII,
// otherwise as encoded words.
func AppendSubject(dst, subject []byte) []byte {
	const header = "Subject: "
	dst = append(dst, header...)
	if !foldable(subject) {
		return append(appendEncoded(dst, string(subject), len(header)), '\r', '\n')
	}
	col := len(header)
	for first := true; ; first = false {
		word := subject
		space := -1
		for i, c := range subject {
			if c == ' ' {
				word, space = subject[:i], i
				break
			}
		}
		if !first {
			if col+1+len(word) > softLine {
				dst = append(dst, '\r', '\n')
				col = 0
			}
			dst = append(dst, ' ')
			col++
		}
		dst = append(dst, word...)
		col += len(word)
		if space < 0 {
			return append(dst, '\r', '\n')
		}
		subject = subject[space+1:]
	}
}

// foldable reports whether the subject needs no encoding.
func foldable(subject []byte) bool {
	word := 0
	for i, c := range subject {
		if c >= utf8.RuneSelf || c == '=' && i+1 < len(subject) && subject[i+1] == '?' {
			return false
		}
		if word++; c == ' ' {
			word = 0
		}
		if word > longestUnfolded {
			return false
		}
	}
	return true
}

// appendEncoded appends text as encoded words (RFC 2047), folded, from column col on. It uses
// the shorter of the two encodings and never cuts a character.
func appendEncoded(dst []byte, text string, col int) []byte {
	quoted := 0
	for i := range len(text) {
		quoted += quotedLen(text[i])
	}
	useBase64 := quoted > (len(text)+2)/3*4
	for first := true; len(text) > 0 || first; first = false {
		if !first {
			dst = append(dst, '\r', '\n', ' ')
			col = 1
		}
		free := max(encodedLine-col-len("=?utf-8?q??="), 16)
		n, used := 0, 0
		for n < len(text) {
			_, size := utf8.DecodeRuneInString(text[n:])
			cost := 0
			if useBase64 {
				cost = (n+size+2)/3*4 - used
			} else {
				for i := n; i < n+size; i++ {
					cost += quotedLen(text[i])
				}
			}
			if used+cost > free {
				break
			}
			used += cost
			n += size
		}
		if useBase64 {
			dst = append(dst, "=?utf-8?b?"...)
			dst = base64.StdEncoding.AppendEncode(dst, []byte(text[:n]))
		} else {
			dst = append(dst, "=?utf-8?q?"...)
			for i := range n {
				dst = appendQuoted(dst, text[i])
			}
		}
		dst = append(dst, "?="...)
		text = text[n:]
	}
	return dst
}

// quotedLen and appendQuoted are the Q encoding with the restrictions for display names (RFC
// 2047, section 5 (3)).
func quotedLen(c byte) int {
	if c == ' ' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' {
		return 1
	}
	return 3
}

func appendQuoted(dst []byte, c byte) []byte {
	switch {
	case c == ' ':
		return append(dst, '_')
	case quotedLen(c) == 1:
		return append(dst, c)
	}
	return append(dst, '=', hexDigits[c>>4], hexDigits[c&15])
}

const hexDigits = "0123456789ABCDEF"

func isASCII[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// CheckHostName checks the domain of a Message-ID or of a List-Id.
func CheckHostName(s, value string) error {
	if s == "" || len(s) > 253 {
		return invalidHeader(value, "the host name is empty or longer than 253 bytes")
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" {
			return invalidHeader(value, "%q is not a host name: it has an empty label", s)
		}
		for i := range len(label) {
			if c := label[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
				return invalidHeader(value, "%q is not a host name: only A-Z, a-z, 0-9, dots, - and _ are allowed", s)
			}
		}
	}
	return nil
}

// CheckURL checks a link that will stand between angle brackets.
func CheckURL(url []byte, value string) error {
	if len(url) == 0 || len(url) > maxURLBytes {
		return invalidHeader(value, "the link is empty or longer than %d bytes", maxURLBytes)
	}
	for _, c := range url {
		if c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '"' || c == ',' {
			return invalidHeader(value, "the link contains the byte %#02x, which a header does not allow", c)
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isAtext reports whether a byte may stand in an atom (RFC 5322, section 3.2.3).
func isAtext(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c > ' ' && c < 0x7f && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}
