package inbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

// The kinds of addresses that Options.Verify knows.
const (
	bounceKind      = 'b'
	unsubscribeKind = 'u'
)

// Options are the settings and callbacks of a server.
type Options struct {
	Address string   // host:port to listen on
	Name    string   // in the greeting
	Domains []string // accepted domains
	TLS     *tls.Config

	// Verify checks the local part of an address. Several sessions call it at the same time.
	Verify func(local string) (kind byte, delivery fanfare.DeliveryRef, shared bool, err error)
	// Take processes an arrival, and returns when the consequences are durable. After an error
	// the peer is asked to retry.
	Take func(context.Context, bounce.Arrival) error
	// Keep stores a message to postmaster or abuse.
	Keep func(message []byte) error

	Connections       int // at the same time; 0: 500
	ConnectionsPerNet int // of one IPv4 address or one IPv6 network of 64 bits; 0: 50

	Clock  clock.Clock
	Logger *slog.Logger
}

// A Server accepts mail.
type Server struct {
	options  Options
	listener net.Listener
	counters counters
	running  sync.WaitGroup
	draining atomic.Bool
	ctx      context.Context // of Take
	cancel   context.CancelFunc
	stopped  sync.Once
	large    chan struct{} // has an element for each message above smallBytes

	mu   sync.Mutex
	open map[*session]struct{}
	nets map[netip.Prefix]int
}

// Listen binds the address. The server accepts connections after Serve.
func Listen(o Options) (*Server, error) {
	if o.Connections == 0 {
		o.Connections = defaultConnections
	}
	if o.ConnectionsPerNet == 0 {
		o.ConnectionsPerNet = defaultConnectionsPerNet
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("inbound: %w", err)
	}
	s := &Server{options: o, listener: l, open: map[*session]struct{}{}, nets: map[netip.Prefix]int{}, large: make(chan struct{}, maxLarge)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Stop.
func (s *Server) Serve() {
	for pause := time.Duration(0); ; {
		conn, err := s.listener.Accept()
		if err == nil {
			pause = 0
			s.admit(conn)
			continue
		}
		if s.draining.Load() || errors.Is(err, net.ErrClosed) {
			return
		}
		// Most likely there are too many open files.
		pause = min(max(2*pause, 10*time.Millisecond), time.Second)
		s.options.Logger.Warn("cannot accept a connection; retrying", "error", err)
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// admit begins a session, unless there are too many.
func (s *Server) admit(conn net.Conn) {
	peer := netOf(conn.RemoteAddr())
	s.mu.Lock()
	full := len(s.open) >= s.options.Connections || s.nets[peer] >= s.options.ConnectionsPerNet
	stopping := s.draining.Load()
	one := newSession(s, conn)
	if !full && !stopping {
		s.open[one] = struct{}{}
		s.nets[peer]++
		s.running.Add(1)
	}
	s.mu.Unlock()
	if full || stopping {
		s.counters.turnedAway.Add(1)
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // the reply fits into the buffer of the socket
		_, _ = fmt.Fprintf(conn, "421 4.7.0 %s has too many connections; try again later\r\n", s.options.Name)
		_ = conn.Close()
		return
	}
	s.counters.sessions.Add(1)
	go func() {
		defer s.running.Done()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, one)
			if s.nets[peer]--; s.nets[peer] == 0 {
				delete(s.nets, peer)
			}
		}()
		one.run()
	}()
}

// Stop accepts no more connections, ends sessions that wait for a command, and lets current
// messages finish. After the patience it closes all connections. A second call waits for the
// first.
func (s *Server) Stop(patience time.Duration) error {
	var err error
	s.stopped.Do(func() {
		s.mu.Lock()
		s.draining.Store(true)
		for one := range s.open {
			one.hurry()
		}
		s.mu.Unlock()
		err = s.listener.Close()
		ended := make(chan struct{})
		go func() { defer close(ended); s.running.Wait() }()
		select {
		case <-ended:
		case <-time.After(patience):
			s.cancel()
			s.mu.Lock()
			for one := range s.open {
				one.cutOff()
			}
			s.mu.Unlock()
			<-ended
		}
		s.cancel()
	})
	return err
}

// ours reports whether the server accepts mail for a domain.
func (s *Server) ours(domain string) bool {
	for _, d := range s.options.Domains {
		if strings.EqualFold(d, domain) {
			return true
		}
	}
	return false
}

// netOf returns the network that the limit of connections applies to.
func netOf(a net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// Limits. They are not below the minimums of RFC 5321 (sections 4.5.3.1 and 4.5.3.2).
const (
	MaxMessageBytes = 1 << 20
	MaxRecipients   = 100

	// At most maxLarge messages above smallBytes are in memory at a time. Otherwise a few
	// networks could fill the memory with unfinished messages.
	smallBytes = 64 << 10
	maxLarge   = 64

	maxCommandBytes = 2048     // of a command line with CR LF; extensions add to the 512 of RFC 5321
	maxTextBytes    = 16 << 10 // of a line of a message; RFC 5321 has 1000, and some programs write more
	maxRefused      = 10       // refused commands in a session
	maxMessages     = 1000     // in a session
	maxExcessBytes  = 16 << 20 // of a too large message, before the connection is closed

	defaultConnections       = 500
	defaultConnectionsPerNet = 50

	commandTimeout  = 5 * time.Minute
	dataTimeout     = 3 * time.Minute  // for the next bytes of a message
	messageTimeout  = 10 * time.Minute // for a whole one
	writeTimeout    = time.Minute
	handshakeExpiry = time.Minute
	closeTimeout    = 2 * time.Second
	sessionTimeout  = 30 * time.Minute
	takeTimeout     = 2 * time.Minute // the peer waits for ten minutes
)
