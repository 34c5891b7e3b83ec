package channels

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/webhook"
)

// webhook creates the driver of a channel.
func (b builder) webhook(conf *catalog.Channel, s *deliver.Settings) (driver.Driver, error) {
	keys, err := webhookKeys(conf, b.webhookKey)
	if err != nil {
		return nil, err
	}
	authorization, err := conf.Authorization()
	if err != nil {
		return nil, err
	}
	config := webhook.Config{
		URL: conf.URL, Authorization: authorization,
		Service: conf.Service, Keys: keys, AllowHTTP: conf.AllowHTTP, AllowNetworks: b.networks, Connections: s.Connections,
		ConnectTimeout: time.Duration(conf.ConnectTimeout), TLSTimeout: time.Duration(conf.ConnectTimeout),
		SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout, Abort: b.abort,
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return webhook.New(config), nil
}

// webhookKeys returns the keys with which a channel signs its requests, the newest first. serverKey signs for channels
// without a secret.
func webhookKeys(conf *catalog.Channel, serverKey []byte) ([]webhook.Key, error) {
	text, err := conf.Secrets()
	if err != nil {
		return nil, err
	}
	if text == "" && usesServerKey(conf) {
		return []webhook.Key{webhook.Secret(serverKey)}, nil
	}
	return webhook.ParseKeys(text)
}

func usesServerKey(conf *catalog.Channel) bool { return conf.SecretEnv == "" && conf.SecretFile == "" }

// SignedByServer counts the webhook channels that sign with the server's own key.
func SignedByServer(people *registry.Registry) (n int) {
	for _, conf := range people.Channels() {
		if conf.Driver == "webhook" && usesServerKey(conf) {
			n++
		}
	}
	return n
}

// ReceiverSecret returns the secrets with which the receiver at a URL verifies the requests of a
// channel.
func (c *Channels) ReceiverSecret(service, name, to string) (wire.ReceiverSecret, error) {
	conf, ok := c.parts.Registry.ChannelNamed(service, name)
	if !ok {
		return wire.ReceiverSecret{}, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service has no channel %q", name)}
	}
	if conf.Driver != "webhook" {
		return wire.ReceiverSecret{}, &fanfare.Error{Code: fanfare.Invalid, Message: "channel " + name + " does not sign requests: its driver is " + conf.Driver, Hint: "use a channel with the webhook driver"}
	}
	if conf.SendsTexts() {
		to = conf.URL
	}
	receiver, err := address.ParseURL(to)
	if err != nil {
		return wire.ReceiverSecret{}, fanfare.Below("/to", err)
	}
	keys, err := webhookKeys(conf, c.parts.WebhookKey)
	if err != nil {
		return wire.ReceiverSecret{}, err
	}
	secret := wire.ReceiverSecret{Channel: name, To: receiver}
	for _, key := range keys {
		secret.Secrets = append(secret.Secrets, key.For(service, receiver).Text())
	}
	return secret, nil
}
