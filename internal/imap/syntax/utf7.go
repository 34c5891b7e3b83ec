package syntax

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errUTF7 says that a name is not in modified UTF-7.
var errUTF7 = errors.New("the mailbox name is not valid modified UTF-7 (RFC 3501, section 5.1.3)")

// errUTF8 says that a name is not in UTF-8.
var errUTF8 = errors.New("the mailbox name is not valid UTF-8")

var utf7Encoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,").WithPadding(base64.NoPadding)

// DecodeMailbox returns the name of a mailbox in UTF-8. Clients send it in modified UTF-7 until they enable UTF-8. It also accepts characters that
// are not encoded, because some clients send them to each server that has IMAP4rev2.
func DecodeMailbox(name string, isUTF8 bool) (string, error) {
	if isUTF8 {
		if !utf8.ValidString(name) {
			return "", errUTF8
		}
		return name, nil
	}
	if !utf8.ValidString(name) {
		return "", errUTF7
	}
	var out strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c < 0x20 || c == 0x7f {
			return "", errUTF7
		}
		if c != '&' {
			out.WriteByte(c)
			continue
		}
		end := strings.IndexByte(name[i:], '-')
		if end < 0 {
			return "", errUTF7
		}
		text := name[i+1 : i+end]
		i += end
		if text == "" {
			out.WriteByte('&')
			continue
		}
		raw, err := utf7Encoding.DecodeString(text)
		if err != nil || len(raw)%2 != 0 {
			return "", errUTF7
		}
		if utf7Encoding.EncodeToString(raw) != text { // bits at the end that are not 0
			return "", errUTF7
		}
		units := make([]uint16, len(raw)/2)
		for j := range units {
			units[j] = uint16(raw[2*j])<<8 | uint16(raw[2*j+1])
		}
		for j := 0; j < len(units); j++ {
			r := rune(units[j])
			if utf16.IsSurrogate(r) {
				if j+1 == len(units) {
					return "", errUTF7
				}
				if r = utf16.DecodeRune(r, rune(units[j+1])); r == utf8.RuneError {
					return "", errUTF7
				}
				j++
			}
			if r >= 0x20 && r < 0x7f { // must be written directly
				return "", errUTF7
			}
			out.WriteRune(r)
		}
		if i+1 < len(name) && name[i+1] == '&' && i+2 < len(name) && name[i+2] != '-' {
			return "", errUTF7 // two runs without a character between them have a shorter form
		}
	}
	return out.String(), nil
}

// EncodeMailbox returns the name of a mailbox as a client expects it.
func EncodeMailbox(name string, isUTF8 bool) string {
	if isUTF8 {
		return name
	}
	var out strings.Builder
	var run []uint16
	flush := func() {
		if len(run) == 0 {
			return
		}
		raw := make([]byte, 0, 2*len(run))
		for _, u := range run {
			raw = append(raw, byte(u>>8), byte(u))
		}
		out.WriteByte('&')
		out.WriteString(utf7Encoding.EncodeToString(raw))
		out.WriteByte('-')
		run = run[:0]
	}
	for _, r := range name {
		if r >= 0x20 && r < 0x7f {
			flush()
			out.WriteRune(r)
			if r == '&' {
				out.WriteByte('-')
			}
			continue
		}
		run = utf16.AppendRune(run, r)
	}
	flush()
	return out.String()
}
