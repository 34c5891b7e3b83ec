package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/compat/notifybc"
	"fanfare.dev/fanfare/internal/compat/notifybc/accounts"
	"fanfare.dev/fanfare/internal/compat/notifybc/bounces"
	"fanfare.dev/fanfare/internal/compat/notifybc/configurations"
	"fanfare.dev/fanfare/internal/compat/notifybc/health"
	"fanfare.dev/fanfare/internal/compat/notifybc/importer"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/people/diskfloor"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver/webhook"
	"fanfare.dev/fanfare/internal/signin/oidc"
)

// notifybcListener is the address of the NotifyBC API with its settings.
type notifybcListener struct {
	*listener.Server
	settings *settings.Settings
	api      atomic.Pointer[notifybc.API] // nil until it is open
}

// errNotOpen asks the sender of a mail to try again.
var errNotOpen = &fanfare.Error{Code: fanfare.Unavailable, Message: "the NotifyBC API is not open yet"}

// knowsAddress reports whether mail to a local part is about a subscription of NotifyBC.
func (l *notifybcListener) knowsAddress(ctx context.Context, local string) (bounce.Kind, bool, error) {
	api := l.api.Load()
	if api == nil {
		return 0, false, errNotOpen
	}
	return api.KnowsAddress(ctx, local)
}

// notifybcMail processes mail to addresses of NotifyBC, and passes everything else to next.
type notifybcMail struct {
	listener *notifybcListener
	next     feedback.Handler
}

// Take processes a mail.
func (m notifybcMail) Take(ctx context.Context, a bounce.Arrival) error {
	api := m.listener.api.Load()
	if api == nil {
		return m.next.Take(ctx, a)
	}
	taken, err := api.TakeMail(ctx, a)
	if taken {
		return err
	}
	return m.next.Take(ctx, a)
}

// notifybcBounced returns the function that counts bounces for the NotifyBC API; nil if the server does not offer it.
func (c *components) notifybcBounced() func(ctx context.Context, b *feedback.Returned) error {
	if c.notifybc == nil {
		return nil
	}
	return func(ctx context.Context, b *feedback.Returned) error {
		if b.Service != c.notifybc.settings.Service {
			return nil
		}
		api := c.notifybc.api.Load()
		if api == nil {
			return errNotOpen
		}
		return api.Bounced(ctx, &notifybc.Bounce{Address: b.Address, Text: b.Text, ID: b.Delivery.String(), At: b.At})
	}
}

// listenNotifyBC reads the settings of the NotifyBC API and binds its address, if there are any.
func (s *Server) listenNotifyBC() error {
	if s.config.NotifyBC == "" {
		return nil
	}
	read, err := settings.ReadFile(s.config.NotifyBC)
	if err != nil {
		return err
	}
	opened, err := listener.Listen(listener.Options{Address: read.Listen, Cert: read.TLS.Certificate, Key: read.TLS.Key, ClientCAs: read.TLS.ClientAuthorities, Log: s.log})
	if err != nil {
		return fmt.Errorf("the address of the NotifyBC API: %w", err)
	}
	opened.Fallback(http.HandlerFunc(notifybc.Unavailable))
	s.notifybc = &notifybcListener{Server: opened, settings: read}
	s.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
		defer cancel()
		return opened.Shutdown(ctx)
	})
	return nil
}

// NotifyBCURL returns the address of the NotifyBC API, or "" if the server does not offer it.
func (s *Server) NotifyBCURL() string {
	if s.notifybc == nil {
		return ""
	}
	scheme := "http://"
	if s.notifybc.settings.TLS.Certificate != "" {
		scheme = "https://"
	}
	return scheme + s.notifybc.Addr().String() + s.notifybc.settings.Root
}

// notifybcTopics creates topics as an apply over the API does.
type notifybcTopics struct {
	*registry.Registry
	documents documents
}

// Apply applies a document.
func (t notifybcTopics) Apply(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	return t.documents.Apply(ctx, d)
}

// notifybcCallers returns who decides who makes a request of the NotifyBC API.
func (c *components) notifybcCallers(tokens roles.Tokens) (*roles.Resolver, error) {
	s := c.notifybc.settings
	o := roles.Options{Tokens: tokens, Logger: c.log}
	var errs [4]error
	o.Admins, errs[0] = settings.Networks(s.AdminIPs)
	o.TrustedProxies, errs[1] = settings.Networks(s.TrustedReverseProxyIPs)
	if s.SiteMinderReverseProxyIPs != nil {
		o.SiteMinderProxies, errs[2] = settings.Networks(s.SiteMinderReverseProxyIPs)
	}
	o.IsAdmin, o.IsAuthorizedUser, errs[3] = s.OIDC.Filters()
	if s.OIDC.DiscoveryURL != "" {
		o.Verifier = oidc.NewBearer(s.OIDC.DiscoveryURL, s.OIDC.ClientID, nil, c.clock)
	}
	return roles.New(o), errors.Join(errs[:]...)
}

// notifybcCore is the API, which imports its own records. Its routes exist before it.
type notifybcCore struct{ *notifybc.API }

// notifybcChecks returns the checks of the database, the configurations and the bus.
func (c *components) notifybcChecks(configured *configurations.Configurations) (database, configuration, bus health.Check) {
	database = func(ctx context.Context) error {
		_, err := c.control.NotifyBCRecord(ctx, configured.Key("health"))
		return err
	}
	bus = func(context.Context) error {
		if !c.bus.Connected() {
			return errors.New("the bus is not connected")
		}
		return nil
	}
	return database, database, bus
}

// openNotifyBC serves the NotifyBC API.
func (c *components) openNotifyBC(ctx context.Context) error {
	if c.notifybc == nil {
		return nil
	}
	service := c.notifybc.settings.Service
	administrators := accounts.New(c.control, service, c.clock, c.log)
	callers, err := c.notifybcCallers(administrators)
	if err != nil {
		return err
	}
	configured := configurations.New(c.control, service, &c.notifybc.settings.Subscription, c.clock, c.log)
	bounced := bounces.New(c.control, service, c.clock)
	core := &notifybcCore{}
	routes := append(administrators.Routes(), configured.Routes()...)
	routes = append(routes, bounced.Routes()...)
	routes = append(routes, importer.New(core, c.control, service, configured, bounced).Route(), health.Route(c.notifybcChecks(configured)))
	api := notifybc.New(notifybc.Options{
		Settings: c.notifybc.settings, Subscriptions: diskfloor.Subscriptions{Registry: c.registry, Floor: c.disk},
		Topics:  notifybcTopics{c.registry, documents{c.registry, c.channels, c.sessions, c.fleet}},
		Records: c.control, Messages: c.messages, Intake: c.ingester, Traces: c.traces(c.store), Recorder: c.recorder, Callers: callers,
		Overrides: configured, Bounces: bounced, Suppressor: c.feedback, Further: notifybc.ResourceRoutes(callers.ClientAddress, routes...),
		Client:  &http.Client{Transport: webhook.PublicTransport(c.config.Networks()), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Address: c.notifybc.Addr().String(), Clock: c.clock, Logger: c.log,
	})
	core.API = api
	if err := api.Open(ctx); err != nil {
		return fmt.Errorf("notifications of the NotifyBC API: %w", err)
	}
	c.background(api.Run)
	if _, err := c.registry.Snapshot().Service(c.notifybc.settings.Service); err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
		c.log.Warn("the service of the NotifyBC API does not exist yet: apply a document that declares it with its channels", "service", c.notifybc.settings.Service)
	}
	c.notifybc.api.Store(api)
	c.notifybc.Open(api)
	c.onStopDo(func() {
		c.notifybc.Close()
		ctx, cancel := context.WithTimeout(context.Background(), min(c.config.DrainTimeout, requestPatience))
		defer cancel()
		api.Drain(ctx)
	})
	c.log.Info("serving the NotifyBC API", "url", c.NotifyBCURL(), "service", c.notifybc.settings.Service)
	return nil
}
