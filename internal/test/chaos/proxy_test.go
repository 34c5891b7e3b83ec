package chaos

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A proxy is a link to a server that fails as networks do. While a direction is held, its data wait, as they do while TCP
// repeats lost packets; afterwards they arrive.
type proxy struct {
	address string

	server   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	held    [2]bool // by direction
	refuses bool
	delay   time.Duration
	changed chan struct{} // closed by each change of the fields above
	conns   map[net.Conn]struct{}
}

// The directions of a proxy.
const (
	toServer = iota
	fromServer
)

// newProxy forwards connections to an address until the test ends. It listens on a host.
func newProxy(t testing.TB, host, server string) *proxy {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp4", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), server: server, listener: l, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.set(func() { p.held, p.refuses, p.delay = [2]bool{}, true, 0; p.reset() })
		p.running.Wait()
	})
	return p
}

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// hold stops the data of some directions.
func (p *proxy) hold(directions ...int) {
	p.set(func() {
		for _, d := range directions {
			p.held[d] = true
		}
	})
}

// refuse resets all connections, and new ones until heal.
func (p *proxy) refuse() { p.set(func() { p.refuses = true; p.reset() }) }

// slow delays data in both directions.
func (p *proxy) slow(by time.Duration) { p.set(func() { p.delay = by }) }

// heal ends all faults.
func (p *proxy) heal() { p.set(func() { p.held, p.refuses, p.delay = [2]bool{}, false, 0 }) }

func (p *proxy) reset() {
	for c := range p.conns {
		reset(c)
	}
}

// reset closes a connection at once and discards unsent data.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	_ = c.Close()
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(near) })
	}
}

func (p *proxy) serve(near net.Conn) {
	var dialer net.Dialer
	far, err := dialer.DialContext(context.Background(), "tcp4", p.server)
	if err != nil {
		reset(near)
		return
	}
	p.mu.Lock()
	refuses := p.refuses
	p.conns[near], p.conns[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	if refuses {
		reset(near)
		reset(far)
	}
	var back sync.WaitGroup
	back.Go(func() { p.pass(far, near, fromServer) })
	p.pass(near, far, toServer)
	back.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, near)
	delete(p.conns, far)
}

// A chunk is data on their way. Without data, it is the end of the connection.
type chunk struct {
	data []byte
	at   time.Time
}

// pass forwards the data of one direction and then the end of the connection.
func (p *proxy) pass(from, to net.Conn, direction int) {
	const window = 64
	queue := make(chan chunk, window)
	go func() {
		defer close(queue)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				queue <- chunk{append([]byte(nil), buffer[:n]...), time.Now()}
			}
			if err != nil {
				queue <- chunk{at: time.Now()}
				return
			}
		}
	}()
	broken := false
	for c := range queue {
		if broken {
			continue
		}
		p.await(c.at, direction)
		if len(c.data) == 0 {
			_ = to.Close() // both ends of a connection end together
			continue
		}
		if _, err := to.Write(c.data); err != nil {
			broken = true
			_ = from.Close()
		}
	}
}

// await waits until data that were received at a moment may be forwarded.
func (p *proxy) await(received time.Time, direction int) {
	for {
		p.mu.Lock()
		held, due, changed := p.held[direction], received.Add(p.delay), p.changed
		p.mu.Unlock()
		wait := time.Until(due)
		switch {
		case held:
			<-changed
		case wait <= 0:
			return
		default:
			select {
			case <-time.After(wait):
			case <-changed:
			}
		}
	}
}

// A held direction delivers its data when it is healed; the other direction continues meanwhile. A refused connection ends.
func TestAProxyHoldsOneDirection(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := newProxy(t, "127.0.0.1", l.Addr().String())
	var dialer net.Dialer
	near, err := dialer.DialContext(t.Context(), "tcp4", p.address)
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	say := func(to net.Conn, text string) {
		t.Helper()
		if _, err := to.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(from net.Conn, want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	say(near, "one")
	hear(far, "one")
	p.hold(toServer)
	say(near, "two")
	say(far, "back")
	hear(near, "back")
	_ = far.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := far.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("data passed in a held direction")
	}
	_ = far.SetReadDeadline(time.Time{})
	p.heal()
	hear(far, "two")
	p.slow(20 * time.Millisecond)
	say(near, "three")
	hear(far, "three")
	p.refuse()
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Fatal("a reset connection has data")
	}
}
