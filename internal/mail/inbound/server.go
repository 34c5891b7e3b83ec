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
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
)

// Kind is the protocol of a server and what it accepts.
type Kind uint8

// The kinds.
const (
	Returns    Kind = iota // SMTP for bounces and unsubscribe emails
	LMTP                   // LMTP for mailboxes (RFC 2033)
	Submission             // submission by the owners of mailboxes (RFC 6409)
)

// Mailboxes are the mailboxes of an LMTP or a Submission server; *mailbox.Store has these methods.
type Mailboxes interface {
	// Addresses returns the addresses of an account: its own, followed by its aliases.
	Addresses(ctx context.Context, id mailbox.AccountID) ([]string, error)
	// Deliver stores a message durably, and returns an error or nil for each account.
	Deliver(ctx context.Context, d mailbox.Delivery) []error
}

// The kinds of addresses that Options.Verify knows.
const (
	bounceKind      = 'b'
	unsubscribeKind = 'u'
)

// Options are the settings and callbacks of a server.
type Options struct {
	Kind     Kind
	Listener string // name in metrics of a server for mailboxes, such as lmtp
	Address  string // host:port to listen on
	Name     string // in the greeting
	TLS      *tls.Config
	// ImplicitTLS says that connections begin with TLS (RFC 8314). Otherwise STARTTLS begins it.
	ImplicitTLS bool

	// Of a server for returns:

	Domains []string // accepted domains
	// Verify checks the local part of an address. Several sessions call it at the same time.
	Verify func(local string) (kind byte, delivery fanfare.DeliveryRef, shared bool, err error)
	// Foreign knows addresses that another system signed in its own way; nil: there are none. An error asks the peer to retry.
	Foreign func(ctx context.Context, local string) (kind bounce.Kind, known bool, err error)
	// Take processes an arrival, and returns when the consequences are durable. After an error
	// the peer is asked to retry.
	Take func(context.Context, bounce.Arrival) error
	// Keep stores a message to postmaster or abuse.
	Keep func(message []byte) error

	// Of the other servers:

	Mailboxes       Mailboxes
	Recipients      *recipients.Directory // the accounts of addresses; a message to an address is delivered to all of them
	Logins          *apppassword.Checker  // of Submission
	Submitter       *submission.Submitter // of Submission: sends to other servers; nil: no message leaves this one
	MaxMessageBytes int                   // 0: 50 MiB

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
	maxBytes int                 // of a message
	large    atomic.Int64        // bytes in memory of messages above smallBytes
	senders  *submission.Limiter // of Submission
	recent   recentAddresses

	mu   sync.Mutex
	open map[*session]struct{}
	nets map[netip.Prefix]int
}

// Listen binds the address. The server accepts connections after Serve.
func Listen(o Options) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("inbound: %w", err)
	}
	s := newServer(o)
	s.listener = l
	return s, nil
}

func newServer(o Options) *Server {
	if o.Connections == 0 {
		o.Connections = defaultConnections
	}
	if o.ConnectionsPerNet == 0 {
		o.ConnectionsPerNet = defaultConnectionsPerNet
		if o.Kind == LMTP { // its peers are a few servers
			o.ConnectionsPerNet = o.Connections
		}
	}
	s := &Server{options: o, open: map[*session]struct{}{}, nets: map[netip.Prefix]int{}, senders: o.limiter(), recent: recentAddresses{of: map[string][]mailbox.Account{}}}
	switch {
	case o.Kind == Returns:
		s.maxBytes = MaxMessageBytes
	case o.MaxMessageBytes > 0:
		s.maxBytes = o.MaxMessageBytes
	default:
		s.maxBytes = defaultMailboxBytes
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Listener returns the name of the listener in metrics.
func (s *Server) Listener() string { return s.options.Listener }

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
	MaxMessageBytes      = 1 << 20  // of returns
	defaultMailboxBytes  = 50 << 20 // of messages for mailboxes
	MaxRecipients        = 100      // of returns
	maxMailboxRecipients = 1000

	// Messages above smallBytes have at most maxLargeBytes of memory together, or one message of the permitted size. Otherwise a few
	// networks could fill the memory with unfinished messages.
	smallBytes    = 64 << 10
	maxLargeBytes = 64 << 20
	largeStep     = 1 << 20 // by which a message claims memory

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
