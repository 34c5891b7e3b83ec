package syntax

import (
	"bytes"
	"strconv"
)

// A Literal is the announcement of a literal at the end of a line.
type Literal struct {
	Size   int64
	Binary bool // literal8
	Sync   bool // the client waits for a continuation
}

// LiteralAt returns the literal that a line, without its CR LF, announces at its end.
func LiteralAt(line []byte) (l Literal, ok bool) {
	if len(line) < 3 || line[len(line)-1] != '}' {
		return l, false
	}
	open := bytes.LastIndexByte(line, '{')
	if open < 0 {
		return l, false
	}
	digits := line[open+1 : len(line)-1]
	l.Sync = true
	if n := len(digits); n > 0 && digits[n-1] == '+' {
		l.Sync, digits = false, digits[:n-1]
	}
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' {
		return l, false
	}
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return l, false
	}
	l.Size = size
	l.Binary = open > 0 && line[open-1] == '~'
	return l, true
}

// TagOf returns the tag and the name in upper case at the beginning of a command, or "" if they are not valid. It serves for commands that are refused
// before they are complete.
func TagOf(line []byte) (tag, name string) {
	d := decoder{b: line}
	tag = d.run(isTagChar)
	if tag == "" || !d.take(' ') {
		return "", ""
	}
	return tag, string(bytes.ToUpper([]byte(d.run(isAtomChar))))
}

func isTagChar(c byte) bool { return isAstringChar(c) && c != '+' }
