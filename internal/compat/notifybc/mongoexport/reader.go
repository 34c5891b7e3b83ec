package mongoexport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A Reader reads the documents of a file.
type Reader struct {
	in      *bufio.Reader
	line    int
	offset  int64
	isArray bool
	begun   bool
	over    bool
}

// NewReader returns a Reader of a file.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 256<<10), line: 1} }

// Offset returns the number of bytes that were read.
func (r *Reader) Offset() int64 { return r.offset }

// ErrTooLarge is the error of a document that MongoDB could not have stored.
var ErrTooLarge = fmt.Errorf("the document has more than %d bytes", MaxDocumentBytes)

// Next returns the next document, as it is in the file, and the line where it begins. At the end, the error is io.EOF. After ErrTooLarge in
// a file with lines, Next continues with the next line.
func (r *Reader) Next() (document []byte, line int, err error) {
	if !r.begun {
		r.begun = true
		if mark, _ := r.in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = r.in.Discard(3)
			r.offset += 3
		}
		c, err := r.skipSpace()
		if err != nil {
			return nil, r.line, err
		}
		if r.isArray = c == '['; r.isArray {
			_, _ = r.read()
		}
	}
	if r.over {
		return nil, r.line, io.EOF
	}
	if r.isArray {
		return r.element()
	}
	if _, err := r.skipSpace(); err != nil {
		return nil, r.line, err
	}
	line = r.line
	document, err = r.untilNewline()
	return document, line, err
}

func (r *Reader) read() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		if r.offset++; c == '\n' {
			r.line++
		}
	}
	return c, err
}

// skipSpace skips white space and returns the next byte without reading it.
func (r *Reader) skipSpace() (byte, error) {
	for {
		next, err := r.in.Peek(1)
		if err != nil {
			return 0, err
		}
		switch c := next[0]; c {
		case ' ', '\t', '\r', '\n':
			_, _ = r.read()
		default:
			return c, nil
		}
	}
}

func (r *Reader) untilNewline() (line []byte, err error) {
	tooLarge := false
	for {
		part, err := r.in.ReadSlice('\n')
		r.offset += int64(len(part))
		if tooLarge = tooLarge || len(line)+len(part) > MaxDocumentBytes; !tooLarge {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			r.line++
		case !errors.Is(err, io.EOF):
			return nil, err
		}
		if tooLarge {
			return nil, ErrTooLarge
		}
		return bytes.TrimSpace(line), nil
	}
}

// element reads the next element of an array: an object, by its braces.
func (r *Reader) element() (document []byte, line int, err error) {
	c, err := r.skipSpace()
	if err == nil && c == ',' {
		_, _ = r.read()
		c, err = r.skipSpace()
	}
	line = r.line
	fail := func(message string) ([]byte, int, error) {
		r.over = true
		return nil, line, errors.New(message)
	}
	switch {
	case err != nil:
		return fail("the array does not end")
	case c == ']':
		r.over = true
		return nil, line, io.EOF
	case c != '{':
		return fail("an element of the array is not an object")
	}
	depth, inText, escaped := 0, false, false
	for {
		c, err := r.read()
		if err != nil {
			return fail("the array does not end")
		}
		if document = append(document, c); len(document) > MaxDocumentBytes {
			return fail(ErrTooLarge.Error())
		}
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped, inText = c == '\\', c != '"'
		case c == '"':
			inText = true
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return document, line, nil
			}
		}
	}
}
