package bulkfile

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
	MaxChunkLines = 64 << 10
	maxChunkBytes = 16 << 20
	MaxLineBytes  = 1 << 20 // of one line of a file
)

// A Chunk is a part of a file on its way to the server.
type Chunk struct {
	Body   []byte // NDJSON, a line for each row
	Rows   []Row
	Wrong  []Refusal // rows that cannot be sent
	Offset int64     // of the file, behind the chunk
	Line   int       // of the file, the last one in or before the chunk
	Err    error     // why the file ends behind this chunk; io.EOF where it is done
}

// A Row is where a line of the body comes from.
type Row struct {
	Line int    // of the file
	Raw  []byte // the line of the file; of CSV a record, written again
}

// A Refusal is a row that is wrong before the server has seen it.
type Refusal struct {
	Row
	Reason client.Member
}

func (c *Chunk) Count() int { return len(c.Rows) + len(c.Wrong) }

func (c *Chunk) full() bool { return c.Count() >= MaxChunkLines || len(c.Body) >= maxChunkBytes }

// A ChunkReader cuts a file into chunks. The last one has an err.
type ChunkReader interface{ Next() *Chunk }

// ndjsonFeeder takes lines as they are. Empty lines, and the remarks in a file of
// bad lines, are not sent.
type ndjsonFeeder struct {
	in     *bufio.Reader
	offset int64
	line   int
}

// NewNDJSON reads lines from a position on.
func NewNDJSON(in io.Reader, from Position) ChunkReader {
	return &ndjsonFeeder{in: bufio.NewReaderSize(in, MaxLineBytes), offset: from.Offset, line: from.Line}
}

// byteOrderMark is what some editors and spreadsheets begin a file with.
const byteOrderMark = "\xef\xbb\xbf"

// remark begins the line before each one in a file of bad lines.
const remark = "# line "

func (f *ndjsonFeeder) Next() *Chunk {
	c := &Chunk{}
	for !c.full() && c.Err == nil {
		text, err := f.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			c.Err = &fanfare.Error{Code: fanfare.Invalid, Line: f.line + 1, Message: fmt.Sprintf("the line has more than %d bytes", MaxLineBytes), Hint: "write one JSON object per line"}
			break
		}
		c.Err = err // io.EOF may come with a last line
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
		start := len(c.Body)
		c.Body = append(append(c.Body, bare...), '\n')
		c.Rows = append(c.Rows, Row{Line: f.line, Raw: c.Body[start : len(c.Body)-1]})
	}
	c.Offset, c.Line = f.offset, f.line
	return c
}

// A Position is how far into a file an import has come.
type Position struct {
	Offset int64 `json:"offset"` // bytes
	Line   int   `json:"line"`
}
