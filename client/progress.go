package client

import (
	"bytes"
	"io"
)

// Progress is the part of a body that was passed to the connection. The server reads only as much as
// it can process, so that this is close to the processed amount.
type Progress struct {
	Bytes int64
	Lines int64
}

// counted reports how much is read from r.
func counted(r io.Reader, report func(Progress)) io.Reader {
	if report == nil {
		return r
	}
	return &counter{r: r, report: report}
}

type counter struct {
	r      io.Reader
	so     Progress
	report func(Progress)
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.so.Bytes += int64(n)
	c.so.Lines += int64(bytes.Count(b[:n], []byte{'\n'}))
	c.report(c.so)
	return n, err
}
