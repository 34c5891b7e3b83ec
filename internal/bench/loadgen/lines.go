package loadgen

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
)

// PlainLines returns n characters of text.
func PlainLines(n int) string {
	const line = "It was felt by many who live in the region, and told at once.\n"
	if n <= 0 {
		return ""
	}
	return strings.Repeat(line, n/len(line)+1)[:n-1] + "\n"
}

// A LineReader makes lines while they are read. Next appends one line, or nothing at the
// end.
type LineReader struct {
	Next func(dst []byte) []byte
	rest []byte
	buf  []byte
}

func (r *LineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.buf = r.buf[:0]
		for len(r.buf) < 32<<10 {
			before := len(r.buf)
			if r.buf = r.Next(r.buf); len(r.buf) == before {
				break
			}
		}
		if r.rest = r.buf; len(r.rest) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func EachLine(path string, visit func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		if err := visit(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// WriteLines writes a file of the lines 0 to n-1 and returns its size.
func WriteLines(path string, n int, line func(dst []byte, i int) []byte) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	var size int64
	var buf []byte
	for i := range n {
		buf = line(buf[:0], i)
		size += int64(len(buf))
		if _, err := out.Write(buf); err != nil {
			return 0, errors.Join(err, f.Close())
		}
	}
	return size, errors.Join(out.Flush(), f.Close())
}
