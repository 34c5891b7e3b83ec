package render

import (
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// locate sets the column of an error whose line is known: where text stands in
// it as a whole, or, without one, where the line's first tag or output begins.
// Columns count characters from 1; what cannot be found has none.
func locate(source string, e *fanfare.Error, text string) {
	line := lineOf(source, e.Line)
	at := -1
	switch {
	case text == "{{" || text == "{%": // left open: nothing that is closed comes after it
		at = strings.LastIndex(line, text)
	case text != "":
		at = wholeIndex(line, text)
	default:
		for _, open := range []string{"{%", "{{"} {
			if i := strings.Index(line, open); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
	}
	if at >= 0 {
		e.Column = utf8.RuneCountInString(line[:at]) + 1
	}
}

// lineOf returns a line of a text, counted from 1.
func lineOf(source string, n int) string {
	for ; n > 1; n-- {
		_, rest, more := strings.Cut(source, "\n")
		if !more {
			return ""
		}
		source = rest
	}
	line, _, _ := strings.Cut(source, "\n")
	return line
}

// wholeIndex is strings.Index for a name that is not a part of a longer one.
func wholeIndex(line, name string) int {
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			return -1
		}
		at, end := from+i, from+i+len(name)
		if (at == 0 || !named(line[at-1])) && (end == len(line) || !named(line[end]) || !named(name[len(name)-1])) {
			return at
		}
		from = at + 1
	}
}

// named reports whether a byte may stand in the middle of a name.
func named(c byte) bool {
	return c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}
