package smtp

import (
	"crypto/tls"
	"net"
	"os"
	"strings"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// How a connection is protected (Config.TLS).
const (
	TLSOff           = "off"
	TLSOpportunistic = "opportunistic"
	TLSRequired      = "required"
	TLSImplicit      = "implicit"
)

// The time-outs of a Config that leaves them 0. RFC 5321, section 4.5.3.2, asks
// for five minutes on commands and ten after the final dot; the latter holds up
// a lease, so it is shorter here and can be set.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCommandTimeout = 5 * time.Minute
	DefaultSendTimeout    = 60 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
)

// A Config describes one next hop.
type Config struct {
	Address string // host:port
	Hello   string // the name given in EHLO; the machine's name where empty

	// TLS is "off" (default), "opportunistic" (STARTTLS where it is offered;
	// the certificate is verified only where a password is to be sent, since
	// the alternative is plain text), "required" (STARTTLS or nothing) or
	// "implicit" (TLS from the first byte, RFC 8314).
	TLS       string
	TLSConfig *tls.Config // base: CA, client certificate, server name; the host of Address where that is empty

	Username       string // none: no AUTH
	Password       string
	AllowPlainAuth bool // send the password without TLS, also to a peer that is not this machine

	// Grouping is the fastest mode to use: "auto" (default), "pipelining",
	// "lockstep". What the peer does not bear is left out by itself.
	Grouping string

	ConnectTimeout time.Duration // TCP connect
	CommandTimeout time.Duration // greeting and each reply to a command
	SendTimeout    time.Duration // a body, from its first byte to its reply
	IdleTimeout    time.Duration // an open connection without a message
	MaxMessages    int           // bodies per connection; 0: no limit
	MaxRecipients  int           // of a message that several are to get; 0 and 1: each has its own transaction
}

// Validate finds what would fail later. Pointers name the key as spelt in a
// channel's settings.
func (c Config) Validate() error {
	wrong := func(pointer, message, hint string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" || port == "" {
		return wrong("/address", "not a host and a port", "write it as mail.example.com:587")
	}
	if c.Hello != "" && c.Hello != domain(c.Hello) && !strings.HasPrefix(c.Hello, "[") {
		return wrong("/hello", "not a domain name", "messages, digits, hyphens and dots")
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
		return wrong("/username", "a password without a user name", "give both or none")
	}
	if c.ConnectTimeout < 0 || c.CommandTimeout < 0 || c.SendTimeout < 0 || c.IdleTimeout < 0 || c.MaxMessages < 0 || c.MaxRecipients < 0 {
		return wrong("", "a time-out, max_messages or max_recipients is negative", "0 means the default")
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

// highest returns the mode that the configuration allows.
func (c Config) highest() Mode {
	switch c.Grouping {
	case "lockstep":
		return LockStep
	case "pipelining":
		return Pipelining
	}
	return Grouped
}

// domain makes a name fit for EHLO (RFC 5321, section 4.1.1.1) of any text.
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
