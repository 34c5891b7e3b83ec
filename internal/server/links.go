package server

import (
	"net/mail"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// senderOf is the envelope sender of a channel.
func senderOf(c *registry.Channel, from *mail.Address) string {
	if c.Sender != "" {
		return c.Sender
	}
	return from.Address
}

// returnsOf makes the addresses of a channel to which comes back what is said of its
// messages; nil where all goes to one sender.
func returnsOf(c *registry.Channel, signer *render.Signer) func([]byte, byte, fanfare.DeliveryRef, bool) []byte {
	if c.Returns == "" {
		return nil
	}
	return func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte {
		dst = append(signer.AppendReturn(dst, kind, delivery, shared), '@')
		return append(dst, c.Returns...)
	}
}

// returning reports whether a channel has return addresses.
func returning(people *registry.Registry) bool {
	return slices.ContainsFunc(people.Channels(), func(c *registry.Channel) bool { return c.Returns != "" })
}

// domainOf is the right side of the Message-IDs of a channel.
func domainOf(c *registry.Channel, from *mail.Address) string {
	if c.Domain != "" {
		return c.Domain
	}
	return from.Address[strings.LastIndexByte(from.Address, '@')+1:]
}

// takesBack reports whether mail to a domain of return addresses comes in here.
func (l *loader) takesBack(domain string) bool {
	return slices.ContainsFunc(l.domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// unsubscribe appends the signed link that ends the first of the recipient's
// subscriptions in the message; nil without a public URL.
func (l *loader) unsubscribe(service string) func([]byte, *render.Recipient) []byte {
	if l.signer == nil {
		return nil
	}
	return unsubscribeBy(l.signer, service)
}

func unsubscribeBy(signer *render.Signer, service string) func([]byte, *render.Recipient) []byte {
	return func(dst []byte, r *render.Recipient) []byte {
		return signer.AppendURL(dst, render.Link{Service: service, Subscription: r.Subscriptions[0].Place, Delivery: r.Delivery})
	}
}

// preferences appends the signed link to what the recipient gets; nil without a
// public URL.
func (l *loader) preferences(service string) func([]byte, *render.Recipient) []byte {
	if l.signer == nil {
		return nil
	}
	signer := l.signer
	return func(dst []byte, r *render.Recipient) []byte {
		return signer.AppendPreferences(dst, render.Link{Service: service, Subscription: r.Subscriptions[0].Place, Delivery: r.Delivery})
	}
}
