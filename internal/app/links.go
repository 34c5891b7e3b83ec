package app

import (
	"context"
	"net/mail"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/format"
	"fanfare.dev/fanfare/internal/registry"
)

// senderOf is the envelope sender of a channel.
func senderOf(c *registry.Channel, from *mail.Address) string {
	if c.Sender != "" {
		return c.Sender
	}
	return from.Address
}

// domainOf is the right side of the Message-IDs of a channel.
func domainOf(c *registry.Channel, from *mail.Address) string {
	if c.Domain != "" {
		return c.Domain
	}
	return from.Address[strings.LastIndexByte(from.Address, '@')+1:]
}

// unsubscribe appends the signed link that ends the first of the recipient's
// subscriptions in the message; nil without a public URL.
func (l *loader) unsubscribe(service string) func([]byte, *format.Recipient) []byte {
	if l.signer == nil {
		return nil
	}
	signer := l.signer
	return func(dst []byte, r *format.Recipient) []byte {
		return signer.AppendURL(dst, format.Link{Service: service, Subscription: r.Subscriptions[0].Place, Delivery: r.Delivery})
	}
}

// unsubscriber acts on the token of a link.
type unsubscriber struct {
	signer   *format.Signer
	registry *registry.Registry
	store    interface {
		Manifest(ctx context.Context, day fanfare.Day, id fanfare.ManifestID) (*fanfare.Manifest, error)
	}
}

// Unsubscribe ends all subscriptions that led to the message with the link: it
// listed them all, and whoever clicks means the message. It is idempotent.
func (u *unsubscriber) Unsubscribe(ctx context.Context, token string) error {
	link, err := u.signer.Clone().Verify(token)
	if err != nil {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "this link is not one of ours", Hint: "open the link as it stands in the mail"}
	}
	ends := []fanfare.Place{link.Subscription}
	if m, err := u.store.Manifest(ctx, link.Delivery.Day, link.Delivery.Manifest); err == nil {
		if _, member, ok := m.At(link.Delivery.Position); ok {
			ends = member.Subscriptions
		}
	}
	for _, place := range ends {
		if err := u.registry.EndByPlace(ctx, place, "unsubscribed by link"); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
	}
	return nil
}
