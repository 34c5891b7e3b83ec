package smtp

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A connection that is closed during a message sends nothing that the peer has not received yet.
func TestAnAbortedConnectionSendsNothingLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	for sent := 1; sent > 0; { // until the buffers of both sides are full
		_ = near.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		sent, _ = near.Write(make([]byte, 1<<20))
	}
	discard(near)
	_ = far.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, far); err == nil {
		t.Error("the peer received all data and the end of the connection")
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the peer waits for more data")
	}
}
