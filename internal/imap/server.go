package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Login checks who a client is. It limits guesses, and its methods are safe for concurrent use.
type Login interface {
	// Plain checks a password. The error is for the user.
	Plain(ctx context.Context, user, password string, from netip.Addr) (mailbox.Account, error)
	// Scram begins an authentication by SCRAM-SHA-256 (RFC 7677).
	Scram(ctx context.Context, from netip.Addr) Exchange
}

// An Exchange is the server's side of a SASL mechanism.
type Exchange interface {
	// Next takes a response of the client and returns the next challenge.
	Next(response []byte) (challenge []byte, done bool, err error)
	// Account returns the account after Next returned done.
	Account() mailbox.Account
}

// Options are the settings of a server.
type Options struct {
	Name   string // host name in the greeting
	Store  *mailbox.Store
	Login  Login
	TLS    *tls.Config // for STARTTLS and for ServeTLS; nil: no TLS
	Limits Limits
	Clock  clock.Clock
	Logger *slog.Logger
	// TrustsNetwork says whether a client at an address can log in without TLS; nil: none can.
	TrustsNetwork func(netip.Addr) bool
}

// A Server serves mailboxes.
type Server struct {
	o       Options
	views   *view.Cache
	headers headerCache
	metrics *metrics
	running sync.WaitGroup
	ctx     context.Context // of all commands
	cancel  context.CancelFunc
	large   *semaphore.Weighted
	pushes  chan struct{} // has an element for each running push

	draining atomic.Bool
	stopped  sync.Once
	forget   func() // ends the watch of accounts
	// accessSeen counts the reports that an account was disabled, enabled or removed.
	accessSeen atomic.Int64
	mu         sync.Mutex
	listeners  []net.Listener
	open       map[*session]struct{}
	waiting    int // sessions before the login
	nets       map[netip.Prefix]int
	accounts   map[mailbox.AccountID]int
}

const maxPushes = 16 // goroutines that write changes to idle connections

// New returns a server. Serve and ServeTLS start it.
func New(o Options) *Server {
	o.Limits.setDefaults()
	s := &Server{o: o, views: view.New(o.Store), metrics: newMetrics(), large: semaphore.NewWeighted(o.Limits.LargeMessageBytes), pushes: make(chan struct{}, maxPushes),
		open: map[*session]struct{}{}, nets: map[netip.Prefix]int{}, accounts: map[mailbox.AccountID]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.forget = o.Store.WatchAccess(func(id mailbox.AccountID) {
		s.accessSeen.Add(1)
		go s.checkAccess(id)
	})
	return s
}

// Serve accepts connections that begin without TLS, until Close.
func (s *Server) Serve(l net.Listener) { s.serve(l, false) }

// ServeTLS accepts connections that begin with TLS, until Close.
func (s *Server) ServeTLS(l net.Listener) { s.serve(l, true) }

// Addrs returns the addresses of the listeners.
func (s *Server) Addrs() (all []net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		all = append(all, l.Addr())
	}
	return all
}

func (s *Server) serve(l net.Listener, implicit bool) {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	stopping := s.draining.Load()
	s.mu.Unlock()
	if stopping {
		_ = l.Close()
		return
	}
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			s.admit(conn, implicit)
			continue
		}
		if s.draining.Load() || errors.Is(err, net.ErrClosed) {
			return
		}
		// Most likely there are too many open files.
		pause = min(max(2*pause, 10*time.Millisecond), time.Second)
		s.o.Logger.Warn("cannot accept an IMAP connection; retrying", "error", err)
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// admit begins a session, unless there are too many.
func (s *Server) admit(conn net.Conn, implicit bool) {
	peer := addressOf(conn.RemoteAddr())
	network := networkOf(peer)
	l := &s.o.Limits
	s.mu.Lock()
	full := len(s.open) >= l.Connections || s.waiting >= l.UnauthenticatedConns || s.nets[network] >= l.UnauthenticatedPerNet && !s.trusts(peer)
	stopping := s.draining.Load()
	one := newSession(s, conn, peer, network, implicit)
	if !full && !stopping {
		s.open[one] = struct{}{}
		s.nets[network]++
		s.waiting++
		s.running.Add(1)
	}
	s.mu.Unlock()
	if full || stopping {
		s.metrics.refused.Inc()
		if !implicit {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // the reply fits into the buffer of the socket
			_, _ = fmt.Fprint(conn, "* BYE [UNAVAILABLE] too many connections; try again later\r\n")
		}
		_ = conn.Close()
		return
	}
	s.metrics.connections.Inc()
	go func() {
		defer s.running.Done()
		defer s.leave(one)
		one.run()
	}()
}

// trusts reports whether a client at an address can log in without TLS. Such addresses have no limit of connections before the login.
func (s *Server) trusts(peer netip.Addr) bool {
	return s.o.TrustsNetwork != nil && s.o.TrustsNetwork(peer)
}

// loggedIn counts a session for its account instead of its network. It fails if the account has too many.
func (s *Server) loggedIn(one *session, id mailbox.AccountID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts[id] >= s.o.Limits.ConnectionsPerAccount {
		return fmt.Errorf("the account has %d connections, which is the maximum: close another mail program", s.accounts[id])
	}
	s.accounts[id]++
	s.leaveNet(one)
	one.counted = id
	if one.accessSeen != s.accessSeen.Load() { // the account may have been disabled after the login was checked
		go s.checkAccess(id)
	}
	return nil
}

func (s *Server) leaveNet(one *session) {
	s.waiting--
	if s.nets[one.network]--; s.nets[one.network] == 0 {
		delete(s.nets, one.network)
	}
}

func (s *Server) leave(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
	if one.counted == 0 {
		s.leaveNet(one)
	} else if s.accounts[one.counted]--; s.accounts[one.counted] == 0 {
		delete(s.accounts, one.counted)
	}
}

// checkAccess ends the sessions of an account that was disabled or removed.
func (s *Server) checkAccess(id mailbox.AccountID) {
	s.mu.Lock()
	has := s.accounts[id] > 0
	s.mu.Unlock()
	if !has {
		return
	}
	a, err := s.o.Store.Account(s.ctx, id)
	if !a.Disabled && !errors.Is(err, mailbox.ErrNoAccount) {
		if err != nil && s.ctx.Err() == nil {
			s.o.Logger.Warn("cannot check whether an account was disabled", "account", id, "error", err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		if one.counted == id {
			one.barred.Store(true)
			one.hurry()
		}
	}
}

// Close accepts no more connections, lets running commands finish, and ends all sessions with BYE. When ctx ends, it closes all connections. A
// second call waits for the first.
func (s *Server) Close(ctx context.Context) {
	s.stopped.Do(func() {
		s.forget()
		s.mu.Lock()
		s.draining.Store(true)
		for _, l := range s.listeners {
			_ = l.Close()
		}
		for one := range s.open {
			one.hurry()
		}
		s.mu.Unlock()
		ended := make(chan struct{})
		go func() { defer close(ended); s.running.Wait() }()
		select {
		case <-ended:
		case <-ctx.Done():
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
}

func addressOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// networkOf returns the network that the limit of connections applies to.
func networkOf(ip netip.Addr) netip.Prefix {
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
