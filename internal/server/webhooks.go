package server

import (
	"fmt"
	"net/netip"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/webhook"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// hooks is what all channels to programs share.
type hooks struct {
	key      []byte // that a channel signs with which names no secret
	networks []netip.Prefix
}

// driver makes the driver of a channel.
func (h hooks) driver(c *registry.Channel, s *deliver.Settings) (driver.Driver, error) {
	keys, err := h.keys(c)
	if err != nil {
		return nil, err
	}
	config := webhook.Config{
		Service: c.Service, Keys: keys, AllowHTTP: c.AllowHTTP, AllowNetworks: h.networks, Connections: s.Connections,
		ConnectTimeout: time.Duration(c.ConnectTimeout), TLSTimeout: time.Duration(c.ConnectTimeout),
		SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout,
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return webhook.New(config), nil
}

// keys are those of a channel, the newest first.
func (h hooks) keys(c *registry.Channel) ([]webhook.Key, error) {
	text, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	if text == "" && c.SecretEnv == "" && c.SecretFile == "" {
		return []webhook.Key{webhook.Secret(h.key)}, nil
	}
	return webhook.ParseKeys(text)
}

// signing counts the channels that sign with the server's own key.
func signing(people *registry.Registry) (n int) {
	for _, c := range people.Channels() {
		if c.Driver == "webhook" && c.SecretEnv == "" && c.SecretFile == "" {
			n++
		}
	}
	return n
}

// posting is what all receivers of a mailing share.
func (m *mailing) posting(template *render.Template, event fanfare.EventRef) render.Posting {
	p := compose.Posting(template, m.posted, event)
	if m.items != nil {
		p.Event, p.Digest = nil, m.items.digest(m.posted.Run)
	}
	return p
}

// secrets tells receivers' secrets.
type secrets struct {
	registry *registry.Registry
	hooks    hooks
}

// ReceiverSecret is what the receiver at a URL verifies the channel's requests with.
func (s secrets) ReceiverSecret(service, name, to string) (wire.ReceiverSecret, error) {
	channel, ok := s.registry.ChannelNamed(service, name)
	if !ok {
		return wire.ReceiverSecret{}, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service has no channel %q", name)}
	}
	if channel.Driver != "webhook" {
		return wire.ReceiverSecret{}, &fanfare.Error{Code: fanfare.Invalid, Message: "channel " + name + " signs nothing: its driver is " + channel.Driver, Hint: "name one whose driver is webhook"}
	}
	receiver, err := address.ParseURL(to)
	if err != nil {
		return wire.ReceiverSecret{}, fanfare.Below("/to", err)
	}
	all, err := s.hooks.keys(channel)
	if err != nil {
		return wire.ReceiverSecret{}, err
	}
	told := wire.ReceiverSecret{Channel: name, To: receiver}
	for _, one := range all {
		told.Secrets = append(told.Secrets, one.For(service, receiver).Text())
	}
	return told, nil
}
