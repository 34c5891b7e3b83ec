package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// Limits of a chunk: what is sent, answered and noted as done at once.
const (
	maxChunkLines = 64 << 10
	maxChunkBytes = 16 << 20
	maxLineBytes  = 1 << 20 // of one line of a file
)

// A chunk is a part of a file on its way to the server.
type chunk struct {
	body   []byte // NDJSON, a line for each row
	rows   []row
	wrong  []refusal // rows that cannot be sent
	offset int64     // of the file, behind the chunk
	line   int       // of the file, the last one in or before the chunk
	err    error     // why the file ends behind this chunk; io.EOF where it is done
}

// A row is where a line of the body comes from.
type row struct {
	line int    // of the file
	raw  []byte // the line of the file; of CSV a record, written again
}

// A refusal is a row that is wrong before the server has seen it.
type refusal struct {
	row
	reason client.Member
}

func (c *chunk) count() int { return len(c.rows) + len(c.wrong) }

func (c *chunk) full() bool { return c.count() >= maxChunkLines || len(c.body) >= maxChunkBytes }

// A feeder cuts a file into chunks. The last one has an err.
type feeder interface{ next() *chunk }

// ndjsonFeeder takes lines as they are. Empty lines, and the remarks in a file of
// bad lines, are not sent.
type ndjsonFeeder struct {
	in     *bufio.Reader
	offset int64
	line   int
}

func newNDJSON(in io.Reader, from position) *ndjsonFeeder {
	return &ndjsonFeeder{in: bufio.NewReaderSize(in, maxLineBytes), offset: from.Offset, line: from.Line}
}

// byteOrderMark is what some editors and spreadsheets begin a file with.
const byteOrderMark = "\xef\xbb\xbf"

// remark begins the line before each one in a file of bad lines.
const remark = "# line "

func (f *ndjsonFeeder) next() *chunk {
	c := &chunk{}
	for !c.full() && c.err == nil {
		text, err := f.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			c.err = &fanfare.Error{Code: fanfare.Invalid, Line: f.line + 1, Message: fmt.Sprintf("the line has more than %d bytes", maxLineBytes), Hint: "write one JSON object on each line"}
			break
		}
		c.err = err // io.EOF may come with a last line
		if len(text) == 0 {
			break
		}
		f.offset += int64(len(text))
		f.line++
		bare := bytes.TrimRight(text, "\r\n")
		if f.line == 1 {
			bare = bytes.TrimPrefix(bare, []byte(byteOrderMark))
		}
		if len(bytes.TrimSpace(bare)) == 0 || bytes.HasPrefix(bare, []byte(remark)) {
			continue
		}
		start := len(c.body)
		c.body = append(append(c.body, bare...), '\n')
		c.rows = append(c.rows, row{line: f.line, raw: c.body[start : len(c.body)-1]})
	}
	c.offset, c.line = f.offset, f.line
	return c
}
