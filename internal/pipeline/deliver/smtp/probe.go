package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
)

// A Session describes a connection that was opened for a probe.
type Session struct {
	Relay         string   // host:port of the peer
	Banner        string   // text of the greeting
	Extensions    []string // those that the driver uses, such as PIPELINING
	TLS           string   // version, or "" without TLS
	Untrusted     error    // why the certificate of the peer is not valid; nil if it is, or without TLS
	Authenticated bool
}

// Probe opens a connection as for a message (greeting, EHLO, TLS, AUTH), then sends QUIT.
// It fails with the error that deliveries would get.
func (d *Driver) Probe(ctx context.Context) (Session, error) {
	c, err := d.dial(ctx)
	if err != nil {
		return Session{}, err
	}
	defer c.quit()
	s := Session{Relay: c.relay, Banner: c.banner, Extensions: c.extensions.names(), Authenticated: d.cfg.Username != ""}
	if t, ok := c.rw.(*tls.Conn); ok {
		state := t.ConnectionState()
		s.TLS, s.Untrusted = tls.VersionName(state.Version), d.trust(state.PeerCertificates)
	}
	return s, nil
}

// trust verifies the certificate, which an opportunistic connection accepts without
// verification.
func (d *Driver) trust(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return nil
	}
	between := x509.NewCertPool()
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	host, _, err := net.SplitHostPort(d.cfg.Address)
	if err != nil {
		return err
	}
	_, err = chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: d.tls.RootCAs, Intermediates: between})
	return err
}

// names lists the extensions that the peer offers.
func (e *extensions) names() []string {
	var list []string
	for _, one := range []struct {
		name string
		has  bool
	}{{"PIPELINING", e.pipelining}, {"STARTTLS", e.starttls}, {"8BITMIME", e.eightBit}, {"SMTPUTF8", e.utf8}, {"SIZE", e.size}, {"AUTH", len(e.auth) > 0}} {
		if one.has {
			list = append(list, one.name)
		}
	}
	return list
}
