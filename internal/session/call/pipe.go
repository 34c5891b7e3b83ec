package call

import (
	"context"
	"errors"
	"sync"

	"fanfare.dev/fanfare/internal/session"
)

// errPipeClosed is the error of a closed pipe.
var errPipeClosed = errors.New("the internal connection is closed")

// An end is one end of a connection inside the process. Closing one end closes both.
type end struct {
	in, out chan []byte
	closed  chan struct{}
	once    *sync.Once
}

var _ session.Conn = (*end)(nil)

// pipe returns the two ends of a connection.
func pipe() (near, far *end) {
	a, b, closed, once := make(chan []byte, 16), make(chan []byte, 16), make(chan struct{}), &sync.Once{}
	return &end{a, b, closed, once}, &end{b, a, closed, once}
}

// Read returns the next frame. Frames that were written before the close are still read.
func (e *end) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-e.in:
		return b, nil
	default:
	}
	select {
	case b := <-e.in:
		return b, nil
	case <-e.closed:
		return nil, errPipeClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write passes a copy of a frame to the other end, since the writer may use its memory again.
func (e *end) Write(ctx context.Context, frame []byte) error {
	select {
	case e.out <- append([]byte(nil), frame...):
		return nil
	case <-e.closed:
		return errPipeClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes both ends.
func (e *end) Close(int, string) error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
