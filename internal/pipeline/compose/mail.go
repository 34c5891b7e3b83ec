package compose

import (
	"cmp"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render"
)

// Mailing returns the settings that all emails of an event share for one channel and template,
// without those for subscriptions (list headers, unsubscribe and preference links).
func Mailing(template *render.Template, posted *fanfare.AcceptedEvent, event fanfare.EventRef, channel *catalog.Channel) (render.MailBatch, error) {
	from, err := mail.ParseAddress(channel.From)
	if err != nil {
		return render.MailBatch{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channels/" + channel.Name + "/from", Message: "invalid address: " + channel.From}
	}
	sender := Sender(channel, from)
	if c := posted.Content; c != nil && c.From != "" {
		if from, err = mail.ParseAddress(c.From); err != nil {
			return render.MailBatch{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/content/from", Message: "invalid address: " + c.From}
		}
	}
	var files []fanfare.File
	replyTo := channel.ReplyTo
	var unsubscribe func([]byte, *render.Recipient) []byte
	if d := posted.Direct; d != nil {
		files, replyTo, unsubscribe = fanfare.Attached(d.Files), cmp.Or(d.ReplyTo, replyTo), UnsubscribeLink(d)
	}
	return render.MailBatch{
		Files: files, UnsubscribeURL: unsubscribe, Template: template, Multicast: allowsMulticast(channel), From: *from, ReplyTo: replyTo, Sender: sender, Domain: MessageIDDomain(channel, from),
		Event: &posted.Event, EventRef: event, Topic: posted.Topic, Service: posted.Service,
	}, nil
}

// Posting returns the settings that all webhook requests of an event share. The template may
// be nil: the request then carries the event itself.
func Posting(template *render.Template, posted *fanfare.AcceptedEvent, event fanfare.EventRef) render.WebhookBatch {
	p := render.WebhookBatch{Template: template, Event: &posted.Event, EventRef: event, Topic: posted.Topic, Service: posted.Service}
	if posted.Direct != nil {
		p.Direct, p.Reference = true, posted.Direct.Reference
		if n := posted.Direct.Notify; n != nil {
			p.From, p.Prefix = n.Sender, n.Prefix
		}
	}
	return p
}

// Recipient returns a subscriber as the recipient of an event, without subscriptions and
// without data of the recipient.
func Recipient(row *people.SubscriberRow, posted *fanfare.AcceptedEvent) *render.Recipient {
	return &render.Recipient{
		Address: row.Address, ID: row.ID, Locale: row.Locale, TimeZone: row.TimeZone,
		Attributes: row.Attributes, Date: posted.ReceivedAt,
	}
}

// Writer writes the messages of one event for one channel and template. It appends a message to dst.
type Writer interface {
	Write(dst []byte, r *render.Recipient) (driver.Message, []byte, error)
}

// allowsMulticast reports whether a message of a channel may have several recipients. At a
// rate of one message a second or less it has one.
func allowsMulticast(c *catalog.Channel) bool {
	perSecond := c.Rate.PerSecond()
	return c.Multicast > 1 && (perSecond <= 0 || perSecond > 1)
}

// Sender returns the envelope sender of a channel.
func Sender(c *catalog.Channel, from *mail.Address) string {
	if c.Sender != "" {
		return c.Sender
	}
	return from.Address
}

// MessageIDDomain returns the right side of the Message-IDs of a channel.
func MessageIDDomain(c *catalog.Channel, from *mail.Address) string {
	if c.Domain != "" {
		return c.Domain
	}
	return from.Address[strings.LastIndexByte(from.Address, '@')+1:]
}

// ReturnAddresses returns a function that appends the return address of a delivery, to which
// bounces and replies come; nil if the channel has one sender address for all messages.
func ReturnAddresses(c *catalog.Channel, signer *signedlink.Signer) func([]byte, byte, fanfare.DeliveryRef, bool) []byte {
	if c.Returns == "" {
		return nil
	}
	return func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte {
		dst = append(signer.AppendReturn(dst, kind, delivery, shared), '@')
		return append(dst, c.Returns...)
	}
}

// UnsubscribeLink returns a function that appends the URL that the sender of a message gave; nil if there
// is none.
func UnsubscribeLink(d *fanfare.Direct) func([]byte, *render.Recipient) []byte {
	if d.Unsubscribe == "" {
		return nil
	}
	return func(dst []byte, _ *render.Recipient) []byte { return append(dst, d.Unsubscribe...) }
}

// UnsubscribeLinks returns a function that appends the signed link to end the first of the
// recipient's subscriptions in a message; nil without a signer.
func UnsubscribeLinks(signer *signedlink.Signer, service string) func([]byte, *render.Recipient) []byte {
	if signer == nil {
		return nil
	}
	return func(dst []byte, r *render.Recipient) []byte {
		return signer.AppendURL(dst, signedlink.Link{Service: service, Subscription: r.Subscriptions[0].Row, Delivery: r.Delivery})
	}
}

// ContentLinks returns a function that appends the unsubscribe link of an event's content for the first of the
// recipient's subscriptions. The link of a direct send is complete.
func ContentLinks(link *fanfare.SubscriptionLink) func([]byte, *render.Recipient) []byte {
	return func(dst []byte, r *render.Recipient) []byte {
		if len(r.Subscriptions) == 0 {
			return append(dst, link.Before...)
		}
		s := &r.Subscriptions[0]
		dst = append(append(append(dst, link.Before...), s.ID...), link.After...)
		if code := render.TextMember(s.Data, link.Code); code != "" {
			dst = append(append(dst, link.Query...), url.QueryEscape(code)...)
		}
		return dst
	}
}

// PreferenceLinks returns a function that appends the signed link to the recipient's
// preferences page; nil without a signer.
func PreferenceLinks(signer *signedlink.Signer, service string) func([]byte, *render.Recipient) []byte {
	if signer == nil {
		return nil
	}
	return func(dst []byte, r *render.Recipient) []byte {
		return signer.AppendPreferences(dst, signedlink.Link{Service: service, Subscription: r.Subscriptions[0].Row, Delivery: r.Delivery})
	}
}

// RuleRank returns the position of a rule in the order of a topic. Filters of subscribers, which
// have no name, are last.
func RuleRank(topic *catalog.Topic, rule string) int {
	if rule != "" {
		for i := range topic.Rules {
			if topic.Rules[i].Name == rule {
				return i
			}
		}
	}
	return len(topic.Rules)
}

// TimeZone returns the first of two time zones that is known, or UTC. The server's own zone
// ("Local") counts as unknown.
func TimeZone(name, otherwise string) *time.Location {
	for _, name := range []string{name, otherwise} {
		if name == "" || name == time.Local.String() {
			continue
		}
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	return time.UTC
}
