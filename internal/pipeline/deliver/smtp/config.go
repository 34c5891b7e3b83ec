package smtp

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"strings"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// The values of Config.TLS.
const (
	TLSOff           = "off"
	TLSOpportunistic = "opportunistic"
	TLSRequired      = "required"
	TLSImplicit      = "implicit"
)

// The default timeouts. RFC 5321, section 4.5.3.2, asks for five minutes on commands and
// ten after the final dot. The send timeout is shorter, since it holds a lease.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCommandTimeout = 5 * time.Minute
	DefaultSendTimeout    = 60 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
)

// A Config describes one next hop.
type Config struct {
	Address string // host:port
	Hello   string // the name for EHLO; empty: the host name of this machine

	// TLS is "off" (default), "opportunistic" (STARTTLS if offered; the certificate is
	// verified only if a password is sent, since the alternative is plain text), "required"
	// (STARTTLS or no connection) or "implicit" (TLS from the first byte, RFC 8314).
	TLS       string
	TLSConfig *tls.Config // base configuration: CA, client certificate, server name; an empty server name means the host of Address

	Username       string // empty: no AUTH
	Password       string
	AllowPlainAuth bool // send the password without TLS, also to another machine

	// Grouping is the fastest mode to use: "auto" (default), "pipelining" or "lockstep".
	// The driver falls back to a slower mode by itself if the peer does not support it.
	Grouping string

	ConnectTimeout time.Duration   // for the TCP connection
	CommandTimeout time.Duration   // for the greeting and for each reply to a command
	SendTimeout    time.Duration   // for a body, from its first byte to its reply
	IdleTimeout    time.Duration   // for an open connection without a message
	Abort          context.Context // when it ends, all connections are closed, also during a message; nil: never
	MaxMessages    int             // bodies per connection; 0: no limit
	MaxRecipients  int             // of a message with several recipients; 0 and 1: one transaction per recipient
}

// Validate rejects values that would fail later. Pointers name the key of the channel's
// settings.
func (c Config) Validate() error {
	wrong := func(pointer, message, hint string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" || port == "" {
		return wrong("/address", "the address must have the form host:port", "write it as mail.example.com:587")
	}
	if c.Hello != "" && c.Hello != domain(c.Hello) && !strings.HasPrefix(c.Hello, "[") {
		return wrong("/hello", "the value is not a domain name", "use A-Z, a-z, 0-9, hyphens and dots")
	}
	switch c.TLS {
	case "", TLSOff, TLSOpportunistic, TLSRequired, TLSImplicit:
	default:
		return wrong("/tls", "unknown TLS mode", "use off, opportunistic, required or implicit")
	}
	switch c.Grouping {
	case "", "auto", "pipelining", "lockstep":
	default:
		return wrong("/grouping", "unknown grouping", "use auto, pipelining or lockstep")
	}
	if c.Password != "" && c.Username == "" {
		return wrong("/username", "the channel has a password but no user name", "set both or neither")
	}
	if c.ConnectTimeout < 0 || c.CommandTimeout < 0 || c.SendTimeout < 0 || c.IdleTimeout < 0 || c.MaxMessages < 0 || c.MaxRecipients < 0 {
		return wrong("", "timeouts, max_messages and max_recipients must not be negative", "0 means the default")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Hello == "" {
		name, _ := os.Hostname()
		c.Hello = domain(name)
	}
	if c.TLS == "" {
		c.TLS = TLSOff
	}
	setDuration(&c.ConnectTimeout, DefaultConnectTimeout)
	setDuration(&c.CommandTimeout, DefaultCommandTimeout)
	setDuration(&c.SendTimeout, DefaultSendTimeout)
	setDuration(&c.IdleTimeout, DefaultIdleTimeout)
	return c
}

func setDuration(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// highest returns the fastest mode that the configuration allows.
func (c Config) highest() Mode {
	switch c.Grouping {
	case "lockstep":
		return LockStep
	case "pipelining":
		return Pipelining
	}
	return Grouped
}

// domain turns any text into a valid name for EHLO (RFC 5321, section 4.1.1.1).
func domain(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, ".-"); name == "" {
		return "localhost"
	}
	return name
}
