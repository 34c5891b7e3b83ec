package address

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"fanfare.dev/fanfare"
)

// Limits of RFC 5321, section 4.5.3.1, in bytes. An address is a path without its angle
// brackets, hence 254.
const (
	maxLocalBytes   = 64
	maxAddressBytes = 254
)

// Parse checks an address (addr-spec of RFC 5321, section 4.1.2, and RFC 6531, section 3.3) and
// returns it with the domain in lower case. The local part is a dot-string or a quoted string
// and may be UTF-8. The domain has a dot or is localhost; it may be internationalized, and may
// not be an address literal. The error is a *fanfare.Error without a pointer.
func Parse(s string) (normal string, err error) {
	if at, upper, ok := parseCommon(s); ok {
		if upper {
			return s[:at+1] + strings.ToLower(s[at+1:]), nil
		}
		return s, nil
	}
	local, domain, wrong := splitAddress(s)
	if wrong != "" {
		return "", invalidAddress(s, wrong)
	}
	domain, ascii, wrong := checkDomain(domain)
	if wrong != "" {
		return "", invalidAddress(s, wrong)
	}
	if len(local)+1+max(len(domain), len(ascii)) > maxAddressBytes {
		return "", invalidAddress(s, "it is longer than 254 bytes")
	}
	return local + "@" + domain, nil
}

func invalidAddress(s, wrong string) error {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%q is not an email address: %s", s, wrong)}
}

// parseCommon recognises nearly all real addresses: an ASCII dot-string and an ASCII domain
// with a dot.
func parseCommon(s string) (at int, upper, ok bool) {
	if len(s) > maxAddressBytes {
		return 0, false, false
	}
	i, dot := 0, true // a dot may not come first
	for ; i < len(s) && s[i] != '@'; i++ {
		if s[i] == '.' {
			if dot {
				return 0, false, false
			}
			dot = true
			continue
		}
		if !isAtext(s[i]) {
			return 0, false, false
		}
		dot = false
	}
	if dot || i > maxLocalBytes || i == len(s) {
		return 0, false, false
	}
	upper, ok = isCommonDomain(s[i+1:])
	return i, upper, ok
}

// isCommonDomain recognises a host name with at least two labels.
func isCommonDomain(s string) (upper, ok bool) {
	label, dots, alphabetic := 0, 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if label == 0 || s[i-1] == '-' {
				return false, false
			}
			dots++
			label, alphabetic = -1, false
		case c >= 'a' && c <= 'z':
			alphabetic = true
		case c >= 'A' && c <= 'Z':
			upper, alphabetic = true, true
		case isDigit(c):
		case c == '-' && label > 0:
			alphabetic = true
		default:
			return false, false
		}
		if label++; label > 63 {
			return false, false
		}
	}
	return upper, label > 0 && dots > 0 && alphabetic && s[len(s)-1] != '-'
}

// isAtext reports whether a byte may occur in an atom (RFC 5322, section 3.2.3).
func isAtext(c byte) bool {
	if c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) {
		return true
	}
	return c > ' ' && c < 0x7f && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

// splitAddress checks the local part and returns both sides.
func splitAddress(s string) (local, domain, wrong string) {
	switch {
	case s == "":
		return "", "", "it is empty"
	case len(s) > 2*maxAddressBytes:
		return "", "", "it is longer than 254 bytes"
	case !utf8.ValidString(s):
		return "", "", "it is not valid UTF-8"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return "", "", "it contains a control character"
		}
		if r >= utf8.RuneSelf && (!unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError) {
			return "", "", "it contains an invisible character"
		}
	}
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return "", "", "it has no @"
	}
	local, domain = s[:at], s[at+1:]
	switch {
	case local == "":
		return "", "", "the part before the @ is missing"
	case len(local) > maxLocalBytes:
		return "", "", "the part before the @ is longer than 64 bytes"
	case local[0] == '"':
		wrong = checkQuoted(local)
	default:
		wrong = checkDotString(local)
	}
	return local, domain, wrong
}

func checkQuoted(s string) string {
	if len(s) < 3 || s[len(s)-1] != '"' {
		return "the quoted part is empty or has no closing quote"
	}
	for i := 1; i < len(s)-1; i++ {
		switch s[i] {
		case '\\':
			i++
			if i == len(s)-1 {
				return "the quoted part has no closing quote"
			}
			if s[i] >= utf8.RuneSelf {
				return "a backslash in the quoted part must be followed by an ASCII character"
			}
		case '"':
			return "the quoted part contains a quote"
		}
	}
	return ""
}

func checkDotString(s string) string {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return "the part before the @ begins or ends with a dot, or has two dots in a row"
		}
		for _, r := range atom {
			if r < utf8.RuneSelf && !isAtext(byte(r)) {
				return "it contains " + describeRune(r) + " outside quotes"
			}
		}
	}
	return ""
}

// describeRune describes a character for an error.
func describeRune(r rune) string {
	if r == ' ' {
		return "a space"
	}
	return "the character " + string(r)
}

// checkDomain returns the domain in lower case and in ASCII.
func checkDomain(s string) (normal, ascii, wrong string) {
	if s == "" {
		return "", "", "the part after the @ is missing"
	}
	if s[0] == '[' {
		return "", "", "an IP address after the @ is not supported"
	}
	normal = strings.ToLower(s)
	if !isASCII(s) {
		var err error
		if ascii, err = idna.Lookup.ToASCII(s); err != nil {
			return "", "", "the domain is not a valid internationalized name"
		}
		if normal, err = idna.Lookup.ToUnicode(ascii); err != nil {
			return "", "", "the domain is not a valid internationalized name"
		}
	} else {
		ascii = normal
	}
	if _, ok := isCommonDomain(ascii); !ok && ascii != "localhost" {
		return "", "", "the domain must be a host name that contains a dot"
	}
	return normal, ascii, ""
}

func isASCII[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Route returns a parsed address as an SMTP client must write it: unchanged if the local part
// needs SMTPUTF8 (RFC 6531), otherwise with an ASCII domain.
func Route(address string) (path string, smtputf8 bool, err error) {
	if isASCII(address) {
		return address, false, nil
	}
	at := strings.LastIndexByte(address, '@')
	if !isASCII(address[:at]) {
		return address, true, nil
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", false, invalidAddress(address, "the domain is not a valid internationalized name")
	}
	return address[:at+1] + domain, false, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
