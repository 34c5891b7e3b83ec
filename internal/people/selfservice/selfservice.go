package selfservice

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/clientconfig"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/people/registry"
)

// Options has the components that the pages need.
type Options struct {
	Registry  *registry.Registry
	Signer    *signedlink.Signer // signs the links in emails
	Seals     *linktoken.Key     // seals the links of pages
	Clock     clock.Clock
	PublicURL string // without a trailing slash

	AppPasswords AppPasswords
	MailServers  clientconfig.Servers // that open mailboxes

	Manifests interface {
		Manifest(ctx context.Context, day fanfare.Day, id fanfare.ManifestID) (*fanfare.Manifest, error)
	}
	Messages interface {
		SendAsked(ctx context.Context, service string, message *wire.MessageRequest) error
	}
}

// Pages are the handlers of all self-service pages.
type Pages struct {
	Unsubscriber *Unsubscriber
	Preferences  *Preferences
	Signups      *Signups
	MailPrograms *MailPrograms
}

// New returns the handlers.
func New(o Options) Pages {
	mails := &Mailer{messages: o.Messages, registry: o.Registry, base: o.PublicURL}
	unsubscriber := &Unsubscriber{signer: o.Signer, passes: o.Seals, mails: mails, registry: o.Registry, store: o.Manifests, clock: o.Clock}
	preferences := &Preferences{signer: o.Signer, unsubscriber: unsubscriber, registry: o.Registry, mails: mails, clock: o.Clock}
	preferences.programs = &MailPrograms{passes: o.Seals, registry: o.Registry, mails: mails, links: preferences, passwords: o.AppPasswords, servers: o.MailServers, clock: o.Clock}
	signups := &Signups{passes: o.Seals, registry: o.Registry, mails: mails, links: preferences, clock: o.Clock}
	return Pages{unsubscriber, preferences, signups, preferences.programs}
}
