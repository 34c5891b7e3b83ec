package webhook

import (
	"crypto/tls"
	"net"
	"net/http"
)

// What is taken from a receiver at most.
const (
	maxHeaderBytes = 64 << 10 // of an answer's header, and of all that are sent ahead of it
	maxBodyBytes   = 64 << 10 // of an answer's body; a connection with more to come is closed
	maxFrameBytes  = 64 << 10 // of a frame of HTTP/2
	maxIdle        = 1024     // connections without a request, to all receivers together
)

// newTransport makes what all connections of a driver share.
func newTransport(c *Config) *http.Transport {
	dialer := net.Dialer{Timeout: c.ConnectTimeout, Control: (&guard{c.AllowNetworks}).control}
	base := c.TLS
	if base == nil {
		base = &tls.Config{}
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        base.Clone(),
		TLSHandshakeTimeout:    c.TLSTimeout,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		IdleConnTimeout:        c.IdleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    c.Connections,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // what is thrown away needs no unpacking
		WriteBufferSize:        16 << 10,
		Protocols:              protocols,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize:          maxFrameBytes,
			MaxReceiveBufferPerStream: maxBodyBytes,
			SendPingTimeout:           c.IdleTimeout / 2, // finds connections that died without a word
			PingTimeout:               c.ConnectTimeout,
			WriteByteTimeout:          c.SendTimeout,
		},
	}
}
