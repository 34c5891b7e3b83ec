package smtp

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A wire is a socket with time limits that cost nothing while all goes well.
// Setting a socket's deadline for every message is dear, so the socket keeps an
// old, earlier one; only when that fires is it compared with the limit that is
// meant, and moved. It lies below TLS, which would not survive a time-out
// inside a record.
type wire struct {
	net.Conn

	mu       sync.Mutex
	deadline time.Time // what the socket has
	until    time.Time // what is meant
	begun    bool      // a body is on its way: it is awaited whatever happens
	cut      bool      // the context has ended
}

// allow gives everything up to the next call until that time. With begun, the
// end of the context does not cut it short.
func (w *wire) allow(until time.Time, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = begun
	if w.cut && !begun {
		until = time.Unix(1, 0)
	}
	w.set(until)
}

// hasten ends what is under way at once, unless a body was begun.
func (w *wire) hasten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	if !w.begun {
		w.set(time.Unix(1, 0))
	}
}

func (w *wire) set(until time.Time) {
	w.until = until
	if w.deadline.IsZero() || until.Before(w.deadline) {
		w.deadline = until
		_ = w.SetDeadline(until)
	}
}

// early reports whether err is a deadline that fired before the limit that is
// meant, and moves the deadline there.
func (w *wire) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !time.Now().Before(w.until) {
		return false
	}
	w.deadline = w.until
	_ = w.SetDeadline(w.until)
	return true
}

// Read reads what there is, within the limit.
func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err == nil || n > 0 || !w.early(err) {
			return n, err
		}
	}
}

// Write writes all of p, within the limit.
func (w *wire) Write(p []byte) (int, error) {
	total := 0
	for {
		n, err := w.Conn.Write(p[total:])
		total += n
		if err == nil || !w.early(err) {
			return total, err
		}
	}
}
