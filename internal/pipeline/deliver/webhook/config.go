package webhook

import (
	"crypto/tls"
	"net/netip"
	"time"

	"fanfare.dev/fanfare"
)

// The time-outs of a Config that leaves them 0.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultTLSTimeout     = 10 * time.Second
	DefaultSendTimeout    = 30 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
)

// A Config describes one channel.
type Config struct {
	Service string // whose receivers they are: a part of their keys
	Keys    []Key  // that messages are signed with, the newest first; at least one

	AllowHTTP     bool           // take URLs without TLS
	AllowNetworks []netip.Prefix // to speak to beside the public Internet
	TLS           *tls.Config    // base: other authorities than the machine's; nil for none

	Connections      int           // calls of Serve at the same time
	ConnectTimeout   time.Duration // finding the address, and TCP
	TLSTimeout       time.Duration // the handshake
	FirstByteTimeout time.Duration // from the end of a request to the end of the answer's header; SendTimeout where 0
	SendTimeout      time.Duration // from the first byte of a request to the end of its answer
	IdleTimeout      time.Duration // of an open connection without a request
}

// Validate finds what would fail later. Pointers name the key as spelt in a
// channel's settings.
func (c Config) Validate() error {
	wrong := func(pointer, message, hint string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	if len(c.Keys) == 0 {
		return wrong("/secret", "no secret to sign with", "give secret_env or secret_file")
	}
	if c.Connections < 0 || c.ConnectTimeout < 0 || c.TLSTimeout < 0 || c.FirstByteTimeout < 0 || c.SendTimeout < 0 || c.IdleTimeout < 0 {
		return wrong("", "connections or a time-out is negative", "0 means the default")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Connections = max(c.Connections, 1)
	for _, one := range []struct {
		timeout *time.Duration
		preset  time.Duration
	}{
		{&c.ConnectTimeout, DefaultConnectTimeout}, {&c.TLSTimeout, DefaultTLSTimeout},
		{&c.SendTimeout, DefaultSendTimeout}, {&c.IdleTimeout, DefaultIdleTimeout},
	} {
		if *one.timeout == 0 {
			*one.timeout = one.preset
		}
	}
	if c.FirstByteTimeout == 0 {
		c.FirstByteTimeout = c.SendTimeout
	}
	return c
}
