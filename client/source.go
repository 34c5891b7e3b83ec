package client

import (
	"io"
	"sync/atomic"
)

// A source is a body that remembers why it could not be read, so that the
// caller's own error is not taken for one of the connection.
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

// failure is the error of the body, if any.
func (s *source) failure() error {
	if s == nil {
		return nil
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}
