package pgtest

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A Proxy stands between a program and its server, and fails as networks do. Its
// methods are safe for concurrent use.
type Proxy struct {
	URL string // of the server's database, by way of the proxy

	server   string // its address
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	silent bool // new connections are lost
	closed bool
	links  map[*link]struct{}
}

// A link is one connection through the proxy.
type link struct {
	near, far net.Conn // far is nil where the server was never reached
	lost      bool     // nothing passes any more, and nobody is told
}

// Proxy stands before a database of the server until the test ends. It outlives
// kills of the server, and refuses connections while that is away.
func (s *Server) Proxy(database string) *Proxy {
	s.t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		s.t.Fatal(err)
	}
	p := newProxy(s.t, u.Host)
	u.Host = p.listener.Addr().String()
	p.URL = u.String()
	return p
}

func newProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{server: server, listener: l, links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close() // what it had is cut
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Cut resets all connections, those that are lost too.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Silence loses all that is sent from now on, on connections that are open and
// on new ones, and tells nobody: only time shows it.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	for l := range p.links {
		l.lost = true
	}
}

// Heal lets new connections through; those that were lost remain so, as after a
// restart of what remembers them.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = false
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // it was closed
		}
		p.running.Go(func() { p.serve(near) })
	}
}

// serve passes on what the two sides send, until one closes.
func (p *Proxy) serve(near net.Conn) {
	l := &link{near: near}
	var dialer net.Dialer
	if far, err := dialer.DialContext(context.Background(), "tcp4", p.server); err == nil {
		l.far = far
	}
	p.mu.Lock()
	l.lost = p.silent
	p.links[l] = struct{}{}
	if p.closed || l.far == nil && !l.lost {
		l.reset()
	}
	p.mu.Unlock()
	var back sync.WaitGroup
	if l.far != nil {
		back.Go(func() { p.pass(l, l.far, near) })
	}
	p.pass(l, near, l.far)
	back.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pass copies from one side to the other. The end of one is told to the other,
// unless the link is lost.
func (p *Proxy) pass(l *link, from, to net.Conn) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		p.mu.Lock()
		lost := l.lost
		if err != nil && (!lost || from == l.near) {
			l.reset() // a client that gave up closes both sides; a server that did is not heard of
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
		if lost {
			continue
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return // reading from the other side ends too
		}
	}
}

// reset closes both sides at once, without what is still to be sent.
func (l *link) reset() {
	for _, side := range []net.Conn{l.near, l.far} {
		if tcp, open := side.(*net.TCPConn); open {
			_ = tcp.SetLinger(0) // it may be closed already
			_ = tcp.Close()
		}
	}
}
