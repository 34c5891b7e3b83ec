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

// Options are what a server needs.
type Options struct {
	Address string   // host:port to listen at
	Name    string   // in the greeting
	Domains []string // whose mail is taken
	TLS     *tls.Config

	// Verify reads the local part of an address. It is called by several sessions at
	// once.
	Verify func(local string) (kind byte, delivery fanfare.DeliveryRef, shared bool, err error)
	// Take keeps what follows from an arrival, and returns when that is durable. After
	// an error the peer is asked to come again.
	Take func(context.Context, bounce.Arrival) error
	// Keep puts a message away that is for a person: postmaster or abuse.
	Keep func(message []byte) error

	Connections       int // at once; 0 takes 500
	ConnectionsPerNet int // of one IPv4 address or one IPv6 network of 64 bits; 0 takes 50

	Clock  clock.Clock
	Logger *slog.Logger
}

// A Server takes mail.
type Server struct {
	options  Options
	listener net.Listener
	counters counters
	running  sync.WaitGroup
	draining atomic.Bool
	ctx      context.Context // of what is being kept
	cancel   context.CancelFunc
	stopped  sync.Once
	large    chan struct{} // has one for each message beyond smallBytes

	mu   sync.Mutex
	open map[*session]struct{}
	nets map[netip.Prefix]int
}

// Listen binds the address, so that a port that is taken is known at once. Nothing
// is answered before Serve.
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

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve takes connections until Stop.
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
		// Out of descriptors, most likely: they come back.
		pause = min(max(2*pause, 10*time.Millisecond), time.Second)
		s.options.Logger.Warn("no connection could be taken, it is tried again", "error", err)
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
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // it fits into the socket's buffer
		_, _ = fmt.Fprintf(conn, "421 4.7.0 %s has too many connections, come again later\r\n", s.options.Name)
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

// Stop takes no more connections, ends those that wait for a command, and lets
// messages end that are under way; after the patience they are cut off, and their
// senders come again. A second call waits for the first.
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

// ours reports whether mail for a domain is taken.
func (s *Server) ours(domain string) bool {
	for _, d := range s.options.Domains {
		if strings.EqualFold(d, domain) {
			return true
		}
	}
	return false
}

// netOf is whom a limit counts together.
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
