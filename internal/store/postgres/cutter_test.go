package postgres

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// A cutter stands before a server and resets connections at a chosen byte.
type cutter struct {
	url      string
	server   string
	listener net.Listener

	mu      sync.Mutex
	left    map[direction]int // bytes until the cut, none: there is no cut
	refuses bool
	links   map[net.Conn]net.Conn
	cuts    int

	answered atomic.Int64 // bytes from the server
}

type direction bool

const (
	toServer   direction = true
	fromServer direction = false
)

func newCutter(t *testing.T, database string) *cutter {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{server: u.Host, listener: l, left: map[direction]int{}, links: map[net.Conn]net.Conn{}}
	u.Host = l.Addr().String()
	c.url = u.String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.serve(near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		running.Wait()
	})
	return c
}

// after arms a cut once n more bytes have passed in a direction.
func (c *cutter) after(of direction, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.left)
	c.left[of] = n
}

// disarm reports whether the cut was made.
func (c *cutter) disarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := len(c.left) == 0
	clear(c.left)
	return made
}

// refuse has all connections cut and new ones refused, until it is called with
// false.
func (c *cutter) refuse(on bool) {
	c.mu.Lock()
	c.refuses = on
	c.mu.Unlock()
	if on {
		c.cut()
	}
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for near, far := range c.links {
		reset(near, far)
	}
}

func reset(conns ...net.Conn) {
	for _, conn := range conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func (c *cutter) serve(near net.Conn) {
	far, err := net.Dial("tcp4", c.server)
	if err != nil {
		reset(near)
		return
	}
	c.mu.Lock()
	c.links[near] = far
	if c.refuses {
		reset(near, far)
	}
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { c.pass(toServer, near, far, near, far) })
	both.Go(func() { c.pass(fromServer, far, near, near, far) })
	both.Wait()
	c.mu.Lock()
	delete(c.links, near)
	c.mu.Unlock()
}

func (c *cutter) pass(of direction, from io.Reader, to io.Writer, near, far net.Conn) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		c.mu.Lock()
		left, armed := c.left[of]
		now := armed && n >= left
		if now {
			n = left
			delete(c.left, of)
			c.cuts++
		} else if armed {
			c.left[of] = left - n
		}
		c.mu.Unlock()
		if of == fromServer {
			c.answered.Add(int64(n))
		}
		if _, failed := to.Write(chunk[:n]); failed != nil || err != nil || now {
			reset(near, far)
			return
		}
	}
}
