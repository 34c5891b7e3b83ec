package httpapi

import (
	"bytes"
	"encoding/csv"
	"mime"
	"net/http"
	"time"
)

// csvType is the media type of CSV (RFC 4180).
const csvType = "text/csv"

// A csvStream writes a file of CSV, a piece at a time.
type csvStream struct {
	x   *responseWriter
	buf bytes.Buffer
	csv *csv.Writer
}

// newCSVStream begins a file with a name, without its extension, whose first line has the names of the columns.
func newCSVStream(x *responseWriter, name string, columns []string) (*csvStream, error) {
	s := &csvStream{x: x}
	s.csv = csv.NewWriter(&s.buf)
	s.csv.UseCRLF = true
	h := x.Header()
	h.Set("Content-Type", csvType+"; charset=utf-8; header=present")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".csv"}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	return s, s.csv.Write(columns)
}

// write writes a row, in which no cell may be a formula.
func (s *csvStream) write(cells []string) error {
	if err := s.csv.Write(cells); err != nil {
		return err
	}
	if s.csv.Flush(); s.buf.Len() < streamPieceBytes {
		return nil
	}
	return s.flush()
}

func (s *csvStream) flush() error {
	s.csv.Flush()
	if s.buf.Len() == 0 {
		return nil
	}
	_ = http.NewResponseController(s.x).SetWriteDeadline(time.Now().Add(streamPatience)) // not every writer has one
	_, err := s.x.Write(s.buf.Bytes())
	s.buf.Reset()
	return err
}
