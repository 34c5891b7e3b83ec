package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/imap"
	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/jmap"
	jmapmail "fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/jmap/token"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
)

// A mailService serves mailboxes to mail programs: by JMAP, and on the configured addresses by IMAP, LMTP and submission. A server that is alone has one
// among its components. A node of a cluster has one with IMAP and LMTP, whether or not it leads (node_mail.go). The node that leads has another one with
// JMAP and submission, because only its components send messages to other servers.
type mailService struct {
	*Server
	mailOptions
	logins    *apppassword.Checker
	jmap      *jmap.Server // nil without sending
	imap      *imap.Server // nil without listeners for mail programs
	listeners []imapListener
	inbound   []*inbound.Server // LMTP and submission
	once      sync.Once
}

// mailOptions are what a mailService serves.
type mailOptions struct {
	store     *mailbox.Store
	to        *recipients.Directory
	reading   bool                  // by IMAP, and deliveries by LMTP
	sending   bool                  // by JMAP, which reads too, and by submission
	linkKey   []byte                // of JMAP
	submitter *submission.Submitter // of sending
	pushes    *push.Subscriptions   // of JMAP
}

// An imapListener is a bound address for IMAP.
type imapListener struct {
	net.Listener
	tls   string
	serve func(net.Listener)
}

// imapLogins checks the logins of IMAP clients.
type imapLogins struct{ *apppassword.Checker }

// Scram begins an authentication by SCRAM-SHA-256.
func (l imapLogins) Scram(ctx context.Context, from netip.Addr) imap.Exchange {
	return l.SCRAM(ctx, from)
}

// mailboxOptions returns the options of a store of mailboxes.
func (s *Server) mailboxOptions() mailbox.Options {
	o := mailbox.Options{Clock: s.clock, Logger: s.log, MaxMessageBytes: int64(s.config.MailboxMaxMessage), MaxBytes: int64(s.config.MailboxQuota), Retention: time.Duration(s.config.Retention) * 24 * time.Hour,
		Submissions: time.Duration(s.config.SubmissionDays) * 24 * time.Hour}
	if s.config.MailboxSearchIndex {
		o.SearchTexts = searchTexts
	}
	return o
}

// searchTexts returns the texts in which IMAP and JMAP search.
func searchTexts(message []byte, tree *mimetree.Part, add func(text string)) {
	search.Texts(message, tree, add)
	jmapmail.SearchTexts(message, tree, add)
}

// newMailService returns a service with the bound addresses. The caller stops it.
func (s *Server) newMailService(ctx context.Context, o mailOptions) (*mailService, error) {
	m := &mailService{Server: s, mailOptions: o, logins: apppassword.NewChecker(o.store, s.clock, s.log)}
	var err error
	if o.sending {
		err = m.openJMAP()
	}
	if err == nil && o.reading {
		err = m.listenIMAP(ctx)
	}
	if err == nil {
		err = m.listenInbound()
	}
	if err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// openJMAP makes the server of mailboxes over HTTP.
func (m *mailService) openJMAP() error {
	seals, err := linktoken.New(m.linkKey)
	if err != nil {
		return err
	}
	from := &limits.WrongKeys{Proxies: m.config.Proxies()}
	m.jmap = jmap.New(jmap.Options{
		Store: m.store, Sender: m.submitter, Push: m.pushes, Logins: m.logins, Tokens: token.New(seals), PublicURL: m.publicURL(), Origins: m.config.CORSOrigins, ClientAddress: from.ClientAddress,
		Clock: m.clock, Logger: m.log,
	})
	return nil
}

// listenIMAP binds the addresses for mail programs.
func (m *mailService) listenIMAP(ctx context.Context) error {
	settings := &m.config
	if settings.IMAPListen == "" && settings.IMAPSListen == "" {
		return nil
	}
	var secured *tls.Config
	if cert, key := settings.IMAPCertificate(); cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("imap_tls_cert: %w", err)
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	name := settings.InboundHello()
	if name == "" {
		name = "Fanfare"
	}
	m.imap = imap.New(imap.Options{
		Name: name, Store: m.store, Login: imapLogins{m.logins}, TLS: secured, TrustsNetwork: netip.Addr.IsLoopback, Clock: m.clock, Logger: m.log,
	})
	for _, of := range []struct {
		key, address, tls string
		serve             func(net.Listener)
	}{{"imap_listen", settings.IMAPListen, "by STARTTLS", m.imap.Serve}, {"imaps_listen", settings.IMAPSListen, "from the first byte", m.imap.ServeTLS}} {
		if of.address == "" {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", of.address)
		if err != nil {
			return fmt.Errorf("%s: %w", of.key, err)
		}
		m.listeners = append(m.listeners, imapListener{l, of.tls, of.serve})
	}
	return nil
}

// listenInbound binds the addresses of mail for mailboxes: LMTP and submission.
func (m *mailService) listenInbound() error {
	settings := &m.config
	var secured *tls.Config
	if cert, key := settings.SubmissionCertificate(); m.sending && (settings.SubmissionListen != "" || settings.SubmissionsListen != "") {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("certificate of submission_listen: %w", err)
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	for _, o := range []inbound.Options{
		{Kind: inbound.LMTP, Listener: "lmtp", Address: settings.LMTPListen},
		{Kind: inbound.Submission, Listener: "submission", Address: settings.SubmissionListen, TLS: secured},
		{Kind: inbound.Submission, Listener: "submissions", Address: settings.SubmissionsListen, TLS: secured, ImplicitTLS: true},
	} {
		if wanted := m.reading && o.Kind == inbound.LMTP || m.sending && o.Kind == inbound.Submission; o.Address == "" || !wanted {
			continue
		}
		o.Submitter = m.submitter
		o.Name, o.Mailboxes, o.Logins, o.Clock, o.Logger = settings.MailName(), m.store, m.logins, m.clock, m.log
		o.Recipients = m.to
		s, err := inbound.Listen(o)
		if err != nil {
			return fmt.Errorf("%s_listen: %w", o.Listener, err)
		}
		m.inbound = append(m.inbound, s)
	}
	return nil
}

// serve accepts connections until stop.
func (m *mailService) serve() {
	for _, l := range m.listeners {
		go l.serve(l.Listener)
		m.log.Info("serving mailboxes over IMAP", "listen", l.Addr().String(), "tls", l.tls)
	}
	for _, s := range m.inbound {
		go s.Serve()
		m.log.Info("accepting mail for mailboxes", "listener", s.Listener(), "listen", s.Addr().String())
	}
}

// stop lets running commands finish and ends all connections, all kinds at the same time. It may be called twice.
func (m *mailService) stop() {
	m.once.Do(func() {
		patience := max(m.config.DrainTimeout, time.Second)
		var running sync.WaitGroup
		defer running.Wait()
		if m.jmap != nil {
			m.jmap.Stop()
		}
		for _, l := range m.listeners {
			_ = l.Close() // the server, which closes it too, may not know it yet
		}
		if m.imap != nil {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				m.imap.Close(ctx)
			})
		}
		for _, s := range m.inbound {
			running.Go(func() {
				if err := s.Stop(patience); err != nil {
					m.log.Debug("a listener could not be closed", "listener", s.Listener(), "error", err)
				}
			})
		}
	})
}

// registerMetrics registers the metrics of the service.
func (m *mailService) registerMetrics(to prometheus.Registerer) {
	if m.jmap != nil {
		to.MustRegister(m.jmap)
	}
	if m.imap != nil {
		to.MustRegister(m.imap)
	}
	for _, s := range m.inbound {
		s.RegisterMetrics(to)
	}
}
