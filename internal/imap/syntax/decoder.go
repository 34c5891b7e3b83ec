package syntax

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of one command.
const (
	maxElements = 10_000 // of a list or a set
	maxDepth    = 50     // of nested search keys
	maxKeys     = 2_000  // search keys
)

// decoder reads the tokens of a command. After an error it stays at the end and returns zero values.
type decoder struct {
	b    []byte
	i    int
	err  error
	keys int
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
		d.i = len(d.b)
	}
}

func (d *decoder) ok() bool { return d.err == nil }

func (d *decoder) peek() byte {
	if d.i < len(d.b) {
		return d.b[d.i]
	}
	return 0
}

// take consumes c if it is next.
func (d *decoder) take(c byte) bool {
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

func (d *decoder) need(c byte) {
	if !d.take(c) {
		switch {
		case c == ' ' && d.i >= len(d.b):
			d.fail("an argument is missing")
		case c == ' ':
			d.fail("a space is missing between two arguments")
		default:
			d.fail("%q is missing", c)
		}
	}
}

func (d *decoder) space() { d.need(' ') }

// more consumes a space that is followed by more than spaces.
func (d *decoder) more() bool {
	if !d.ok() || d.peek() != ' ' {
		return false
	}
	if len(bytes.TrimRight(d.b[d.i:], " ")) == 0 {
		d.i = len(d.b)
		return false
	}
	d.i++
	return true
}

// end requires the end of the command. It permits spaces at the end, as other servers do.
func (d *decoder) end() {
	for d.take(' ') {
	}
	if d.ok() && d.i < len(d.b) {
		d.fail("there are too many arguments")
	}
}

func isAtomChar(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`(){%*"\]`, rune(c))
}

func isAstringChar(c byte) bool { return isAtomChar(c) || c == ']' }

func isListChar(c byte) bool { return isAstringChar(c) || c == '%' || c == '*' || c >= 0x80 }

func (d *decoder) run(is func(byte) bool) string {
	from := d.i
	for d.i < len(d.b) && is(d.b[d.i]) {
		d.i++
	}
	return string(d.b[from:d.i])
}

func (d *decoder) atom() string {
	s := d.run(isAtomChar)
	if s == "" {
		d.fail("a word is missing")
	}
	return s
}

// keyword reads an atom in upper case.
func (d *decoder) keyword() string { return strings.ToUpper(d.atom()) }

func (d *decoder) number() uint64 {
	s := d.run(func(c byte) bool { return c >= '0' && c <= '9' })
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		d.fail("a number is missing or too large")
	}
	return n
}

func (d *decoder) number32() uint32 {
	n := d.number()
	if n > 1<<32-1 {
		d.fail("the number %d is too large", n)
		return 0
	}
	return uint32(n)
}

func (d *decoder) nonZero() uint32 {
	n := d.number32()
	if n == 0 {
		d.fail("a number must not be 0")
	}
	return n
}

// quoted reads a quoted string. It permits 8-bit characters, which RFC 6855 introduced.
func (d *decoder) quoted() []byte {
	d.need('"')
	var out []byte
	for d.i < len(d.b) {
		c := d.b[d.i]
		d.i++
		switch c {
		case '"':
			return out
		case '\\':
			if c = d.peek(); c != '"' && c != '\\' {
				d.fail("a quoted string has a backslash before another character")
				return nil
			}
			d.i++
		case '\r', '\n', 0:
			d.fail("a quoted string has no end")
			return nil
		}
		out = append(out, c)
	}
	d.fail("a quoted string has no end")
	return nil
}

// literal reads a literal or, where binary is permitted, a literal8 (RFC 3516). It refers to the bytes of the command.
func (d *decoder) literal(binary bool) (data []byte, is8 bool) {
	if binary {
		is8 = d.take('~')
	}
	d.need('{')
	n := d.number()
	d.take('+')
	d.need('}')
	d.need('\r')
	d.need('\n')
	if !d.ok() {
		return nil, false
	}
	if n > uint64(len(d.b)-d.i) {
		d.fail("a literal is incomplete")
		return nil, false
	}
	data = d.b[d.i : d.i+int(n) : d.i+int(n)]
	d.i += int(n)
	if !is8 && bytes.IndexByte(data, 0) >= 0 {
		d.fail("a literal contains a NUL character: send it as a literal8 (RFC 3516)")
		return nil, false
	}
	return data, is8
}

func (d *decoder) str() string {
	if d.peek() == '{' {
		b, _ := d.literal(false)
		return string(b)
	}
	if d.peek() != '"' {
		d.fail("a string is missing")
		return ""
	}
	return string(d.quoted())
}

func (d *decoder) astring() string {
	if c := d.peek(); c == '"' || c == '{' {
		return d.str()
	}
	// RFC 3501 has only ASCII here; 8-bit characters arrive from clients that do not quote names.
	s := d.run(func(c byte) bool { return isAstringChar(c) || c >= 0x80 })
	if s == "" {
		d.fail("a string is missing")
	}
	return s
}

// mailbox reads a name and maps INBOX to upper case.
func (d *decoder) mailbox() string {
	s := d.astring()
	if strings.EqualFold(s, "INBOX") {
		return "INBOX"
	}
	return s
}

func (d *decoder) listMailbox() string {
	if c := d.peek(); c == '"' || c == '{' {
		return d.str()
	}
	s := d.run(isListChar)
	if s == "" {
		d.fail("a pattern is missing")
	}
	return s
}

// list reads elements in parentheses, separated by spaces.
func (d *decoder) list(element func()) {
	d.need('(')
	d.take(' ') // some clients send a space here and at the end, such as aioimaplib in ID
	for n := 0; d.ok() && !d.take(')'); n++ {
		if n > 0 {
			d.space()
			if d.take(')') {
				return
			}
		}
		if n >= maxElements {
			d.fail("a list has more than %d elements", maxElements)
			return
		}
		if d.ok() {
			element()
		}
	}
}

func (d *decoder) flag() string {
	if d.take('\\') {
		if d.take('*') {
			return `\*`
		}
		return `\` + d.atom()
	}
	return d.run(isAstringChar)
}

func (d *decoder) flags() (all []string) {
	all = []string{}
	d.list(func() {
		f := d.flag()
		if f == "" {
			d.fail("a flag is missing")
		}
		all = append(all, f)
	})
	return all
}

// numSet reads a set of sequence numbers or UIDs.
func (d *decoder) numSet() NumSet {
	if d.take('$') {
		return Saved()
	}
	var set NumSet
	for d.ok() {
		r := Range{From: d.setNumber()}
		r.To = r.From
		if d.take(':') {
			r.To = d.setNumber()
		}
		if r == saved {
			r.From, r.To = r.To, r.From // the same range; the other form stands for "$"
		}
		set = append(set, r)
		if len(set) > maxElements {
			d.fail("a set has more than %d ranges", maxElements)
		}
		if !d.take(',') {
			break
		}
	}
	return set
}

func (d *decoder) setNumber() uint32 {
	if d.take('*') {
		return Star
	}
	if c := d.peek(); c < '0' || c > '9' {
		d.fail("the set of messages is not valid")
		return 0
	}
	return d.nonZero()
}

// date reads a date such as 1-Feb-1994, with or without quotes.
func (d *decoder) date() time.Time {
	quoted := d.take('"')
	text := d.run(func(c byte) bool { return isAtomChar(c) })
	if quoted {
		d.need('"')
	}
	if !d.ok() {
		return time.Time{}
	}
	t, err := time.Parse("2-Jan-2006", text)
	if err != nil {
		d.fail("%q is not a date such as 1-Feb-1994", text)
	}
	return t
}

// dateTime reads a date such as " 1-Feb-1994 12:34:56 +0100".
func (d *decoder) dateTime() time.Time {
	text := string(d.quoted())
	if !d.ok() {
		return time.Time{}
	}
	t, err := time.Parse("_2-Jan-2006 15:04:05 -0700", text)
	if err != nil {
		t, err = time.Parse("02-Jan-2006 15:04:05 -0700", text)
	}
	if err != nil || t.Year() < 1 {
		d.fail("%q is not a date such as \" 1-Feb-1994 12:34:56 +0100\"", text)
		return time.Time{}
	}
	return t
}

func (d *decoder) base64() []byte {
	text := d.run(func(c byte) bool { return c > ' ' && c < 0x7f })
	if text == "=" {
		return []byte{}
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		d.fail("the initial response is not valid base64")
		return nil
	}
	return b
}
