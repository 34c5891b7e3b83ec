package app

import (
	"net/mail"
	"strings"

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
