package client

import (
	"io"
	"sync/atomic"
)

// A source is a body that remembers its read error, so that the error of the caller is not
// mistaken for a connection error.
type source struct {
	r   io.Reader
	err atomic.Pointer[error]
}

func newSource(r io.Reader) *source { return &source{r: r} }

// Read reads the body.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err.Store(&err)
	}
	return n, err
}

// failure returns the read error of the body, if any.
func (s *source) failure() error {
	if s == nil {
		return nil
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}
