package inbound

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	errBare = errors.New("a line is not terminated by CR LF, or contains a bare CR")
	errLong = errors.New("a line is too long")
)

// lines reads lines that end in CR LF and contain neither of the two elsewhere (RFC 5321,
// section 2.3.8). If one reader treats a bare CR or LF as the end of a line and another does
// not, they see different messages, and mail can be smuggled past the first.
type lines struct{ in *bufio.Reader }

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, maxTextBytes)} }

// next returns a line without its end. The line is valid until the next call. A line of more
// than most bytes is errLong; whole is false if its end was not reached.
func (l lines) next(most int) (line []byte, whole bool, err error) {
	line, err = l.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, false, errLong
	case err != nil:
		return nil, false, err
	}
	n := len(line) - 2
	if n < 0 || line[n] != '\r' || bytes.IndexByte(line[:n], '\r') >= 0 {
		return nil, true, errBare
	}
	if len(line) > most {
		return nil, true, errLong
	}
	return line[:n], true, nil
}

// waiting reports whether there is input that was not read yet.
func (l lines) waiting() bool { return l.in.Buffered() > 0 }

const maxPathBytes = 256 // with its brackets (RFC 5321, section 4.5.3.1.3)

// cutPath parses an argument of MAIL or RCPT: the word FROM: or TO:, a path in angle brackets,
// and parameters. It returns the path without brackets.
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

// senderPath parses the path of MAIL; "" is the null sender. It ignores a source route (RFC 5321,
// appendix C).
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

// parameter is a parameter of MAIL, such as SIZE=1000.
type parameter struct{ key, value string }

func parameters(text string) []parameter {
	var all []parameter
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		all = append(all, parameter{strings.ToUpper(key), value})
	}
	return all
}
