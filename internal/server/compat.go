package server

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/compat/notify"
	"fanfare.dev/fanfare/internal/compat/notifybc"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
)

// compatListeners are the listeners of the APIs for clients of other systems; nil: they are off.
type compatListeners struct {
	notify *listener.Server
}

// listenCompat binds the addresses of the APIs for clients of other systems. Until they are open, they answer that they are not
// available. A node of a cluster that does not lead forwards the requests.
func (s *Server) listenCompat() (err error) {
	s.compat.notify, err = s.listenFor("notify_listen", s.config.NotifyListen, notify.Unavailable)
	return err
}

// listenFor binds one address. It returns nil without an address.
func (s *Server) listenFor(setting, address string, unavailable http.HandlerFunc) (*listener.Server, error) {
	if address == "" {
		return nil, nil
	}
	l, err := listener.Listen(listener.Options{Address: address, Cert: s.config.TLSCert, Key: s.config.TLSKey, Log: s.log})
	if err != nil {
		return nil, fanfare.Below("/"+setting, err)
	}
	l.Fallback(unavailable)
	s.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
		defer cancel()
		return l.Shutdown(ctx)
	})
	return l, nil
}

// NotifyURL returns the address at which clients of GOV.UK Notify reach this server, or "".
func (s *Server) NotifyURL() string {
	l := s.compat.notify
	switch {
	case l == nil:
		return ""
	case s.config.NotifyPublicURL != "":
		return strings.TrimRight(s.config.NotifyPublicURL, "/")
	case s.config.TLSCert != "":
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// openCompat opens the APIs for clients of other systems.
func (c *components) openCompat() {
	l := c.compat.notify
	if l == nil {
		return
	}
	api := notify.New(notify.Options{
		Catalog: c.registry, Messages: c.messages, Store: c.store, Addresses: addresses{c.registry}, Rules: c.channels.ReplyRules, Files: c.files, Pages: c.files.Handler(),
		Key: c.keys.Links.Bytes, PublicURL: c.NotifyURL(), Clock: c.clock, Logger: c.log,
	})
	c.callbacks.Open(api, c.messages, c.switches.Cancel)
	l.Open(api)
	c.onStopDo(l.Close)
	c.log.Info("answering clients of GOV.UK Notify", "url", c.NotifyURL())
}

// addresses reads the addresses of subscribers.
type addresses struct{ *registry.Registry }

// AddressesOf returns the addresses of subscribers by their rows. An erased subscriber has none.
func (a addresses) AddressesOf(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]string, error) {
	all := make(map[fanfare.RowID]string, len(places))
	err := a.Subscribers(ctx, places, func(r *people.SubscriberRow) error {
		all[r.Place] = r.Address
		return nil
	})
	return all, err
}

// The names of the other APIs between the nodes of a cluster.
const (
	surfaceNotify   = "notify"
	surfaceNotifyBC = "notifybc"
)

// forwardCompat passes requests at the other listeners of this node to the node that leads, while this node does not.
func (s *Server) forwardCompat(roots *x509.CertPool) {
	forward := func(l *listener.Server, surface string, unavailable http.HandlerFunc) {
		l.Fallback(cluster.NewForwarder(cluster.ForwarderOptions{
			Member: s.node.member, Key: s.node.key, Local: l.API, Stopping: s.stopping, Roots: roots, MaxRequests: s.config.MaxRequests, Logger: s.log,
			Surface: surface, Refuse: func(w http.ResponseWriter, r *http.Request, _ *fanfare.Error) { unavailable(w, r) },
		}))
	}
	if l := s.compat.notify; l != nil {
		forward(l, surfaceNotify, notify.Unavailable)
	}
	if s.notifybc != nil {
		forward(s.notifybc.Server, surfaceNotifyBC, notifybc.Unavailable)
	}
}

// surfaces are the other APIs of this node, for the requests that other nodes forward.
func (c *components) surfaces() map[string]http.Handler {
	all := map[string]http.Handler{}
	add := func(surface string, l *listener.Server, unavailable http.HandlerFunc) {
		all[surface] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if api := l.API(); api != nil {
				api.ServeHTTP(w, r)
				return
			}
			unavailable(w, r)
		})
	}
	if l := c.compat.notify; l != nil {
		add(surfaceNotify, l, notify.Unavailable)
	}
	if c.notifybc != nil {
		add(surfaceNotifyBC, c.notifybc.Server, notifybc.Unavailable)
	}
	return all
}
