package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/captured"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/inspect"
	"fanfare.dev/fanfare/internal/admin/mailboxes"
	"fanfare.dev/fanfare/internal/admin/migrate"
	"fanfare.dev/fanfare/internal/admin/nodes"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/admin/rates"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/admin/status"
	"fanfare.dev/fanfare/internal/admin/tasks"
	"fanfare.dev/fanfare/internal/admin/workers"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/jmap/token"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/people/diskfloor"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/selfservice"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// listen opens the API, the recipient pages and inbound mail.
func (c *components) listen(ctx context.Context) error {
	tokens, err := c.mailboxTokens()
	if err != nil {
		return err
	}
	traces := c.traces(c.store) // up to date, unlike those of the standby
	mover := migrate.NewMover(migrate.Options{Config: c.config, Version: c.version, DB: c.db, Clock: c.clock, Logger: c.log, Exclusive: c.exclusive, Disk: c.disk})
	c.onStopDo(mover.Stop)
	parking := control.NewParking(control.ParkingOptions{Store: c.store, Bus: c.bus, Retrying: c.retrying, Cancel: c.dispatch.Cancel})
	reports := c.reporter(mover, parking)
	eraser := privacy.NewEraser(privacy.Options{
		Registry: c.registry, Store: c.store, Bus: c.bus, Recorder: c.recorder, Mailboxes: c.mailboxes, Submitted: messages.Submissions{Messages: c.messages}.Known, Cancel: c.switches.Cancel, Claims: c.dispatch.Claims(), Drop: c.channels.Drop, Clock: c.clock, Logger: c.log,
		Exclusive: c.exclusive, Retrying: c.retrying, Accepting: c.accepting, Sends: c.sends, Others: c.personalRecords(),
	})
	c.background(eraser.Run)

	parts := c.parts(traces, reports)
	if c.oidc != nil {
		parts.OIDC = c.oidc
	}
	parts.Nodes, parts.Sessions, parts.Agents = c.nodes(), c.sessions, workers.Agents{Hub: c.fleet}
	parts.Messages, parts.Sends, parts.Moves, parts.Forgetting, parts.Parking = c.messages, c.sends, mover, eraser, parking
	if parts.Tasks, err = c.tasks(ctx, traces, parking); err != nil {
		return err
	}
	if c.dispatch.Links != nil {
		if err := c.pages(&parts, c.messages); err != nil {
			return err
		}
	}
	parts.JMAP, parts.MailboxTokens = c.mail.jmap, tokens
	c.serveInbound()
	api := httpapi.New(parts)
	c.onStopDo(func() {
		ctx, cancel := context.WithTimeout(context.Background(), min(c.config.DrainTimeout, requestPatience))
		defer cancel()
		api.Drain(ctx)
	})
	if c.node != nil {
		c.api.Open(trusting{api, c.node.key.Links(map[string]cluster.Attach{remote.Protocol: c.delivering.Attach, replica.Protocol: c.feed.Attach}, c.node.key.Trust(api, c.surfaces()))})
		c.onStopDo(c.api.Close)
	} else {
		c.api.Open(api)
	}
	c.openCompat()
	c.log.Info("ready", "url", c.URL(), "durability", c.config.Durability, "data", c.dir, "database", c.db.About().Where, "took", time.Since(c.started).Round(time.Millisecond).String())
	return nil
}

// tasks reads the tasks, and starts to run those that have not ended.
func (c *components) tasks(ctx context.Context, traces *report.Traces, parking *control.Parking) (*tasks.Tasks, error) {
	all, err := tasks.Open(ctx, tasks.Options{
		Store: c.control, Parking: parking, Switches: c.switches, Broadcasts: traces, People: c.registry, Audit: c.registry, Rights: c.rightsOf, Clock: c.clock, Logger: c.log,
	})
	if err == nil {
		c.background(all.Run)
	}
	return all, err
}

// rightsOf returns what a key, or a person who is signed in, may do now.
func (c *components) rightsOf(p catalog.Principal) (catalog.Principal, bool) {
	if p.KeyID != "" {
		return c.registry.Principal(p.KeyID)
	}
	for _, in := range c.signIns.List("") {
		if p.Issuer != "" && in.Principal.Issuer == p.Issuer && in.Principal.Subject == p.Subject {
			return in.Principal, true
		}
	}
	return catalog.Principal{}, false
}

// traces returns the traces of events in a store.
func (c *components) traces(of *deliveries.Store) *report.Traces {
	return &report.Traces{Store: of, Registry: c.registry, Progress: c.recorder, Queue: ingest.Queue{Log: c.bus}, Quotas: c.channels.Quotas(), Pauses: c.switches, Digests: inspect.Digests{Store: of, Registry: c.registry}, Inboxes: c.mailboxes}
}

// reporter reports the status of the server. Its database may be a standby that lags slightly.
func (c *components) reporter(moves *migrate.Mover, parking *control.Parking) *status.Reporter {
	digests := &inspect.DigestStatus{Digests: inspect.Digests{Store: c.standby, Registry: c.registry}, Clock: c.clock}
	return status.New(status.Options{
		Traces: c.traces(c.standby), Version: c.version, Durability: c.config.Durability, Started: c.started, Restored: c.backupNote, Ready: c.ready,
		Bus: c.bus, DB: c.db, Disk: c.disk, Registry: c.registry, Recorder: c.recorder, Rates: c.rates, Channels: c.channels, Capture: c.capture,
		Switches: c.switches, Parking: parking, States: c.states, Inbound: c.inbound, Notifier: c.notifier,
		TemplateFaults: c.dispatch.TemplateFaults().Status, IndexLag: c.history.Lag, NextStart: moves.BeforeNextStart, Gathered: digests.List,
		MatchCheck: func() *wire.MatchCheck { return inspect.MatchCheck(c.verifier, c.registry) },
		Nodes:      c.nodes(),
		Workers:    c.workerReport().Status,
		Collectors: c.collectors(),
		Register:   c.registrations(),
	})
}

// registrations register the metrics of components that are not one collector.
func (c *components) registrations() []func(*prometheus.Registry) {
	list := []func(*prometheus.Registry){func(to *prometheus.Registry) { inspect.RegisterMatchMetrics(c.verifier, to) }}
	list = append(list, func(to *prometheus.Registry) {
		c.mail.registerMetrics(to)
		to.MustRegister(mailboxMetrics{c.mailboxes, c.clock})
	})
	return list
}

// collectors returns the metrics of components that the reporter does not know.
func (c *components) collectors() []prometheus.Collector {
	list := []prometheus.Collector{c.feedback.Metrics(), workers.Metrics{Report: c.workerReport()}}
	if c.node != nil {
		list = append(list, mailMetrics{c.node}, nodes.Metrics{Member: c.node.member, Hub: c.delivering, Feed: c.feed})
	}
	return list
}

// trusting is the API of a node, which trusts the requests that other nodes forward, and accepts their links.
type trusting struct {
	*httpapi.API
	handler http.Handler
}

// ServeHTTP answers a request.
func (t trusting) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.handler.ServeHTTP(w, r) }

// parts are the components that the API calls, except those with their own loops.
func (c *components) parts(traces *report.Traces, reports *status.Reporter) httpapi.Dependencies {
	inspector := inspect.New(inspect.Options{Index: c.index, Verifier: c.verifier, Registry: c.registry, States: c.states, Samples: c.samples, Audiences: c.audiences, Clock: c.clock})
	return httpapi.Dependencies{
		States:     inspector,
		Secrets:    c.channels,
		Previews:   previews{preview.Previewer{Registry: c.registry, Store: c.store, Traces: traces, Attachments: c.dispatch.Attachments, MaxBytes: int(c.config.MaxAttachments), PublicURL: c.publicURL(), Clock: c.clock}},
		Explaining: &report.Explainer{Traces: reports.Traces, Events: c.standby, Conditions: explained{c.registry, inspector}},
		Conditions: inspector,
		Keys:       c.registry, Keyring: c.registry, SignIns: c.signIns, Documents: documents{c.registry, c.channels, c.sessions, c.fleet}, Subscriptions: diskfloor.Subscriptions{Registry: c.registry, Floor: c.disk}, Topics: topics{c.registry, c.audiences},
		Subscribers: c.registry, SubscriptionLists: c.registry, Suppressions: c.registry, Consents: c.registry,
		Merging: c.registry, Personal: &privacy.Exporter{Registry: c.registry, Traces: traces, Store: c.store, Mailboxes: c.mailboxes, Sends: c.sends, Others: c.personalRecords(), Digests: inspect.Digests{Store: c.store, Registry: c.registry}},
		AppPasswords: &apppassword.Issuer{Store: c.mailboxes, Owner: c.mailboxOwner}, Mailboxes: &mailboxes.Accounts{Store: c.mailboxes, Registry: c.registry, Recipients: c.recipients},
		MailServers: mailServers(&c.config),
		Intake:      c.ingester, Reports: reports, Rates: rates.Reader{Store: c.control}, Captured: captured.New(captured.Options{Folders: c.captureFolders(), Channels: c.registry.Channels}), Switches: c.switches, Recalls: &control.Recalls{Switches: c.switches, Mailboxes: c.mailboxes}, Destinations: &channels.Destinations{Channels: c.channels, Store: c.store, Hasten: c.due.Load}, Audit: c.registry,
		Receipts: feedback.NewReceipts(feedback.ReceiptOptions{Registry: c.registry, Handler: c.feedback, Clock: c.clock, Logger: c.log}),
		Backups:  &backup.Server{Dir: c.dir, DB: c.db, Bus: c.bus, Version: c.version, Clock: c.clock, Exclusive: c.exclusive},
		Settings: c.settings(),
		Ready:    c.ready, Metrics: reports.Metrics(), MetricsOpen: c.config.MetricsOpen,
		Limits: limits.Limits{Requests: c.config.MaxRequests, RequestsPerKey: c.config.MaxRequestsPerKey, RatePerSecond: c.config.RateLimit, Burst: c.config.RateBurst}, Origins: c.config.CORSOrigins, Proxies: c.config.Proxies(), AccessLog: c.config.AccessLog,
		PublicURL: c.publicURL(), Version: c.version, Now: c.clock.Now, Log: c.log,
	}
}

// settings returns the settings of this server for operators.
func (c *components) settings() (list []wire.Setting) {
	for _, s := range c.config.Settings() {
		list = append(list, wire.Setting{Key: s.Key, Value: s.Value, Default: s.Default, From: s.From, Where: s.Where, Kind: s.Kind, Documentation: s.Doc, Secret: s.IsSecret, Set: s.IsSet})
	}
	return list
}

// captureFolders returns the folders whose captured messages are shown.
func (c *components) captureFolders() []string {
	if own := c.capture.Folder(); own != "" && !slices.Contains(c.config.CaptureFolders, own) {
		return append([]string{own}, c.config.CaptureFolders...)
	}
	return c.config.CaptureFolders
}

// mailboxOwner returns the subscriber of a service with an address.
func (c *components) mailboxOwner(ctx context.Context, service, of string) (mailbox.Owner, error) {
	normal, err := address.Parse(of)
	if err != nil {
		return mailbox.Owner{}, err
	}
	row, err := c.registry.AddressRow(ctx, service, normal)
	return mailbox.Owner{ID: row, Service: service, Address: normal}, err
}

// pages adds the recipient pages, which need the public URL.
func (c *components) pages(parts *httpapi.Dependencies, direct *messages.Messages) error {
	passes, err := linktoken.New(c.keys.Links.Bytes)
	if err != nil {
		return err
	}
	self := selfservice.New(selfservice.Options{Registry: c.registry, Signer: c.dispatch.Links, Seals: passes, Clock: c.clock, PublicURL: c.publicURL(), Manifests: c.store, Messages: direct, AppPasswords: parts.AppPasswords, MailServers: parts.MailServers})
	parts.Unsubscriber, parts.Choices, parts.Signups, parts.MailPrograms, parts.Seals = self.Unsubscriber, self.Preferences, self.Signups, self.MailPrograms, passes
	return nil
}

// explained adapts the registry and the inspector to explanations.
type explained struct {
	*registry.Registry
	*inspect.Inspector
}

func (s *Server) publicURL() string { return strings.TrimRight(s.config.PublicURL, "/") }

// mailboxTokens returns the issuer of tokens with which pages open mailboxes.
func (c *components) mailboxTokens() (*token.Issuer, error) {
	seals, err := linktoken.New(c.keys.Links.Bytes)
	if err != nil {
		return nil, err
	}
	return &token.Issuer{Key: token.New(seals), Store: c.mailboxes, Clock: c.clock, Owner: c.mailboxOwner}, nil
}

// listenInbound binds the address of the inbound mail server. It returns nil if none is configured.
func (c *components) listenInbound() (*inbound.Server, error) {
	settings := &c.config
	if settings.Inbound == "" {
		return nil, nil
	}
	var secured *tls.Config
	if settings.InboundTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(settings.InboundTLSCert, settings.InboundTLSKey)
		if err != nil {
			return nil, fmt.Errorf("inbound_tls_cert: %w", err)
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	handler := feedback.Handler(&feedback.Unsubscriber{Registry: c.registry, Store: c.store, Next: c.feedback})
	var foreign func(ctx context.Context, local string) (bounce.Kind, bool, error)
	if c.notifybc != nil {
		handler, foreign = notifybcMail{c.notifybc, handler}, c.notifybc.knowsAddress
	}
	mails := &feedback.MailStore{Dir: filepath.Join(settings.DataDir, feedback.PostmasterDir), Clock: c.clock}
	return inbound.Listen(inbound.Options{
		Address: settings.Inbound, Name: settings.InboundHello(), Domains: settings.InboundDomains, TLS: secured,
		Verify: c.dispatch.Returns.VerifyReturn, Foreign: foreign, Take: handler.Take, Keep: mails.Keep, Clock: c.clock, Logger: c.log,
	})
}

// serveInbound accepts mail until Stop.
func (c *components) serveInbound() {
	c.mail.serve()
	if c.inbound == nil {
		return
	}
	go c.inbound.Serve()
	c.onStop(func() error { return c.inbound.Stop(max(c.config.DrainTimeout, time.Second)) })
	c.log.Info("accepting mail", "listen", c.inbound.Addr().String(), "domains", c.config.InboundDomains)
}
