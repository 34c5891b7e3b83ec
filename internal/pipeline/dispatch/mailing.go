package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/mime"
)

type mailingKey struct {
	event    fanfare.EventRef
	template uint32
}

// mailing contains the data that the recipients of one event and template share.
type mailing struct {
	writer compose.Writer
	err    error // of the template with this event: every message fails with it
	event  *fanfare.AcceptedEvent
	topic  *catalog.Topic // nil for a run, and for a deleted topic
	asked  bool           // its recipient has just requested it

	template  uint32
	formatter string           // the worker that formats its messages, or ""
	documents compose.Writer   // what a filter or formatter gets; nil: not needed yet
	compiled  *render.Template // nil without a template
	items     *runItems        // of a run
	fileBytes int              // of files that belong to this message and are not counted yet
}

// hasFiles reports whether the message has files of its own. Such a mailing is not cached for the
// next batch, which may be of another message.
func (m *mailing) hasFiles() bool { return m.event.Direct != nil && len(m.event.Direct.Files) > 0 }

func (m *mailing) write(buf []byte, r *render.Recipient) (driver.Message, []byte, error) {
	if m.err != nil {
		return driver.Message{}, buf, m.err
	}
	return m.writer.Write(buf, r)
}

// expiry returns until when a message may be sent: as specified by the event, or else by the
// topic or the channel, counted from the first moment at which it may be sent. The zero time
// means no limit.
func (m *mailing) expiry(channel *catalog.Channel) time.Time {
	if !m.event.Expires.IsZero() {
		return m.event.Expires
	}
	after := time.Duration(channel.Expiry)
	if m.topic != nil && m.topic.Expiry > 0 {
		after = m.topic.Expiry
	}
	if after == 0 {
		return time.Time{}
	}
	if m.event.NotBefore.After(m.event.ReceivedAt) {
		return m.event.NotBefore.Add(after)
	}
	return m.event.ReceivedAt.Add(after)
}

// unsubscribed is the recorded reason if all subscriptions of a message have ended or are paused.
const unsubscribed = "unsubscribed or paused"

// noRecipient returns the recorded reason if there is no recipient.
func (m *mailing) noRecipient() string {
	if m.event.Direct != nil {
		return "the subscriber no longer exists"
	}
	return unsubscribed
}

// recipient returns the recipient of a message with the active subscriptions, the one that chose
// the template first; nil if there is none. For a message to listed recipients, it returns the
// subscriber with the recipient data in the request.
func (l *loader) recipient(m *openMember, mailing *mailing, rows *rows) *render.Recipient {
	row := rows.subscriber(m.member.Subscriber)
	if row == nil {
		return nil
	}
	r := compose.Recipient(row, mailing.event)
	r.Delivery, r.Individual, r.Formatted = m.ref, m.section.Members.Len() == 1, l.formatted[m.ref].message
	if d := mailing.event.Direct; d != nil {
		if row.Address == "" { // erased
			return nil
		}
		if named := d.To(m.member.Subscriber); named != nil {
			r.Data = named.Data
		}
		return r
	}
	r.Subscriptions = make([]render.Subscription, 0, len(m.member.Subscriptions))
	for _, id := range m.member.Subscriptions {
		row := rows.subscription(id)
		if row == nil || !row.Live {
			continue
		}
		r.Subscriptions = append(r.Subscriptions, render.Subscription{Row: id, ID: row.ID, Rule: row.Rule, Params: row.Params, Data: row.Data, Title: row.Title, Description: row.Description})
	}
	if mailing.items != nil {
		r.Items, r.Omitted = itemsOf(&m.member, r.Subscriptions), int(m.member.More)
	}
	if len(r.Subscriptions) == 0 || mailing.items != nil && len(r.Items) == 0 {
		return nil
	}
	if len(r.Subscriptions) > 1 && mailing.topic != nil {
		slices.SortStableFunc(r.Subscriptions, func(a, b render.Subscription) int {
			return compose.RuleRank(mailing.topic, a.Rule) - compose.RuleRank(mailing.topic, b.Rule)
		})
	}
	return r
}

// newMailing prepares an event with a template version. An error of the template is kept in the
// mailing, so that each message fails with it.
func (l *loader) newMailing(ctx context.Context, event *fanfare.AcceptedEvent, key mailingKey, channel *catalog.Channel) (*mailing, error) {
	m := &mailing{event: event, template: key.template, asked: event.Direct != nil && event.Direct.Asked}
	if event.Run != nil {
		m.items = &runItems{store: l.Store, run: key.event}
	}
	m.topic, _ = l.Registry.Topic(event.Service, event.Topic)
	m.writer, m.err = l.writer(ctx, m, key, channel)
	if wrong, ours := errors.AsType[*fanfare.Error](m.err); m.err != nil && (!ours || wrong.Code == fanfare.Unavailable) {
		return nil, m.err // the store did not return the files; the message itself may be good
	}
	if event.Direct != nil {
		m.fileBytes = mime.EncodedSize(event.Direct.Files)
	}
	return m, nil
}

func (l *loader) writer(ctx context.Context, of *mailing, key mailingKey, channel *catalog.Channel) (compose.Writer, error) {
	event := of.event
	if event.Direct != nil && event.Direct.Submitted != nil {
		return l.submitted(ctx, event)
	}
	if channel.SendsDocuments() && !channel.SendsTexts() && key.template == 0 && event.Direct == nil && event.Content == nil {
		return of.posting(nil, key.event).Writer()
	}
	template, err := l.Templates.Of(event, key.template)
	if err != nil {
		return nil, err
	}
	of.compiled = template
	var absent func(string)
	if source, ok := l.Registry.Template(key.template); ok {
		of.formatter = source.Formatter
		absent = l.absentFrom(of, &source)
	}
	if channel.SendsDocuments() {
		p := of.posting(template, key.event)
		p.Texts = channel.SendsTexts()
		p.OnMissing = absent
		return p.Writer()
	}
	m, err := compose.Mailing(template, event, key.event, channel)
	if err != nil {
		return nil, err
	}
	m.OnMissing = absent
	m.ReturnAddress = compose.ReturnAddresses(channel, l.returns)
	m.EncodeFiles = l.Attachments.Of(ctx, event)
	if event.Direct == nil { // a message to listed recipients has no subscription to end
		m.ListID, m.UnsubscribeURL, m.PersonalMailto = channel.ListID, compose.UnsubscribeLinks(l.links, event.Service), l.takesMailFor(channel.Returns)
		m.PreferencesURL = compose.PreferenceLinks(l.links, event.Service)
	}
	leaving := l.useContent(&m, event)
	m.Sign = l.signing.Sign
	m.Individual = l.alone(event, channel, m.UnsubscribeURL != nil, leaving)
	if of.items != nil {
		m.Event, m.Digest = nil, of.items.digest(event.Run)
	}
	return m.Writer()
}

// useContent sets the list and the unsubscribe link of content that comes with an event. It returns the link, or nil if
// links are signed.
func (l *loader) useContent(m *render.MailBatch, event *fanfare.AcceptedEvent) *fanfare.SubscriptionLink {
	c := event.Content
	if c == nil {
		return nil
	}
	if c.ListID != "" {
		m.ListID = c.ListID
	}
	if c.Leaving != nil {
		m.UnsubscribeURL = compose.ContentLinks(c.Leaving)
	}
	return c.Leaving
}

// takesMailFor reports whether this server accepts mail for a domain of return addresses.
func (s *Stage) takesMailFor(domain string) bool {
	return slices.ContainsFunc(s.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// alone returns a writer for messages to one recipient that are written during sending,
// concurrently with the loader. It shares no mutable state with the loader.
func (l *loader) alone(event *fanfare.AcceptedEvent, channel *catalog.Channel, unsubscribe bool, leaving *fanfare.SubscriptionLink) func() render.IndividualFuncs {
	keys := l.signers
	return func() (made render.IndividualFuncs) {
		if channel.Returns != "" {
			made.ReturnAddress = compose.ReturnAddresses(channel, l.returns.Clone())
		}
		switch {
		case leaving != nil:
			made.UnsubscribeURL = compose.ContentLinks(leaving)
		case unsubscribe && event.Direct != nil:
			made.UnsubscribeURL = compose.UnsubscribeLink(event.Direct)
		case unsubscribe:
			made.UnsubscribeURL = compose.UnsubscribeLinks(l.links.Clone(), event.Service)
		}
		var signing dkim.Signing
		made.Sign = func(message, files []byte) ([]byte, error) {
			signing.Begin(keys, l.Clock.Now())
			message = signing.Sign(message, 0, files)
			return message, signing.Finish()
		}
		return made
	}
}

// posting returns what the webhook requests of a mailing share.
func (m *mailing) posting(template *render.Template, event fanfare.EventRef) render.WebhookBatch {
	p := compose.Posting(template, m.event, event)
	if m.items != nil {
		p.Event, p.Digest = nil, m.items.digest(m.event.Run)
	}
	return p
}
