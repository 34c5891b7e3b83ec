package webhook

import (
	"context"
	"crypto/tls"
	"net/netip"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// The default timeouts.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultTLSTimeout     = 10 * time.Second
	DefaultSendTimeout    = 30 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
)

// A Config describes one channel.
type Config struct {
	Service string // owner of the channel; the keys of receivers are derived from it
	Keys    []Key  // for signatures, the newest first; at least one

	URL           string // receives all messages, in normal form; "": the address of each message is its receiver
	Authorization string // header field Authorization of each request to URL, or ""

	AllowHTTP     bool           // accept URLs without TLS
	AllowNetworks []netip.Prefix // in addition to the public Internet
	TLS           *tls.Config    // base configuration, for other certificate authorities; nil: that of the machine

	Connections      int           // concurrent calls of Serve
	ConnectTimeout   time.Duration // for the name lookup and TCP
	TLSTimeout       time.Duration // for the handshake
	FirstByteTimeout time.Duration // from the end of a request to the end of the response header; 0: SendTimeout
	SendTimeout      time.Duration // from the first byte of a request to the end of its response
	IdleTimeout      time.Duration // for an open connection without a request

	Abort context.Context // when it ends, all requests are aborted; nil: never
}

// Validate rejects values that would fail later. Pointers name the key of the channel's
// settings.
func (c Config) Validate() error {
	wrong := func(pointer, message, hint string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	if len(c.Keys) == 0 {
		return wrong("/secret", "the channel has no secret to sign requests with", "set secret_env or secret_file")
	}
	if strings.ContainsFunc(c.Authorization, func(r rune) bool { return r < ' ' || r > '~' }) {
		return wrong("/authorization", "the authorization is not a header field", "write one line of ASCII, such as Bearer TOKEN, into the file or the variable")
	}
	if c.Authorization != "" && c.URL == "" {
		return wrong("/authorization", "the channel has an authorization but no url", "set url to the URL of the provider")
	}
	if c.Connections < 0 || c.ConnectTimeout < 0 || c.TLSTimeout < 0 || c.FirstByteTimeout < 0 || c.SendTimeout < 0 || c.IdleTimeout < 0 {
		return wrong("", "connections and timeouts must not be negative", "0 means the default")
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
