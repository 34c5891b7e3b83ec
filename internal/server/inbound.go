package server

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// listenInbound binds the address of the inbound mail server. It returns nil if none is configured.
func (a *App) listenInbound(people *registry.Registry, store *deliveries.Store, returns *signedlink.Signer, next feedback.Handler) (*inbound.Server, error) {
	c := &a.config
	if c.Inbound == "" {
		return nil, nil
	}
	var secured *tls.Config
	if c.InboundTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.InboundTLSCert, c.InboundTLSKey)
		if err != nil {
			return nil, fmt.Errorf("inbound_tls_cert: %w", err)
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	handler := &feedback.Unsubscriber{Registry: people, Store: store, Next: next}
	mails := &feedback.MailStore{Dir: filepath.Join(c.DataDir, feedback.PostmasterDir), Clock: a.clock}
	return inbound.Listen(inbound.Options{
		Address: c.Inbound, Name: c.InboundHello(), Domains: c.InboundDomains, TLS: secured,
		Verify: returns.VerifyReturn, Take: handler.Take, Keep: mails.Keep, Clock: a.clock, Logger: a.log,
	})
}

// serveInbound accepts mail until Stop.
func (a *App) serveInbound(s *inbound.Server) {
	if s == nil {
		return
	}
	go s.Serve()
	a.later(func() error { return s.Stop(max(a.config.DrainTimeout, time.Second)) })
	a.log.Info("mail is taken", "listen", s.Addr().String(), "domains", a.config.InboundDomains)
}
