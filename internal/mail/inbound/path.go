package inbound

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxPathBytes = 256 // with its brackets (RFC 5321, section 4.5.3.1.3)

// cutPath takes the path in angle brackets from an argument of MAIL or RCPT, behind
// the word FROM: or TO:, and returns what is between the brackets and the parameters
// that follow.
func cutPath(arg, word string) (path, params string, ok bool) {
	if len(arg) < len(word) || !strings.EqualFold(arg[:len(word)], word) {
		return "", "", false
	}
	arg = strings.TrimLeft(arg[len(word):], " ")
	if !strings.HasPrefix(arg, "<") {
		return "", "", false
	}
	quoted := false
	for i := 1; i < len(arg); i++ {
		switch c := arg[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			params = arg[i+1:]
			if params != "" && params[0] != ' ' || i+1 > maxPathBytes {
				return "", "", false
			}
			return arg[1:i], strings.Trim(params, " "), true
		}
	}
	return "", "", false
}

// senderPath reads the path of MAIL: "" is the null sender. A source route before it
// says nothing (RFC 5321, appendix C).
func senderPath(path string) (address string, unicodeNeeded, ok bool) {
	if path == "" {
		return "", false, true
	}
	if strings.HasPrefix(path, "@") {
		if _, path, ok = strings.Cut(path, ":"); !ok {
			return "", false, false
		}
	}
	at := strings.LastIndexByte(path, '@')
	if at < 1 || at == len(path)-1 || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) || strings.ContainsAny(path[at:], " <>\"") {
		return "", false, false
	}
	return path, strings.ContainsFunc(path, func(r rune) bool { return r >= utf8.RuneSelf }), true
}

// A parameter of MAIL, such as SIZE=1000.
type parameter struct{ key, value string }

func parameters(text string) []parameter {
	var all []parameter
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		all = append(all, parameter{strings.ToUpper(key), value})
	}
	return all
}
