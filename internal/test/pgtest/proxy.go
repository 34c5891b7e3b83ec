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
	lost      bool     // all data is dropped without an error
}

// Proxy forwards connections to a database of the server until the test ends. It survives kills of the server, and refuses
// connections while the server is down.
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
		_ = l.Close() // its connections are closed
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

// Silence drops all data from now on, on open and new connections, without an error. Only timeouts reveal it.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	for l := range p.links {
		l.lost = true
	}
}

// Heal forwards new connections again. Lost connections remain lost, as after a restart of a stateful firewall.
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

// serve forwards data in both directions until one side closes.
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

// pass copies data from one side to the other. It passes on the end of the data unless the link is lost.
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

// reset closes both sides at once and discards unsent data.
func (l *link) reset() {
	for _, side := range []net.Conn{l.near, l.far} {
		if tcp, open := side.(*net.TCPConn); open {
			_ = tcp.SetLinger(0) // it may be closed already
			_ = tcp.Close()
		}
	}
}
