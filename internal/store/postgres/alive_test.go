//go:build unix

package postgres

import (
	"net"
	"testing"
)

// A slow write leaves a reader behind in pgx, which goes on when the server
// answers the next statement: nobody may wait for it before that is sent.
func TestAConnectionThatSomebodyReadsIsFoundAlive(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := ours.Read(make([]byte, 1))
		ended <- err
	}()
	for range 1000 { // at some of these it reads
		if !alive(ours) {
			t.Fatal("it is found dead")
		}
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("something was said")
	}
	if alive(ours) {
		t.Error("it is found alive when the other end has closed it")
	}
	ours.Close()
}
