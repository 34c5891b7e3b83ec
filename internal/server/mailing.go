package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/mime"
)

type mailingKey struct {
	event    fanfare.EventRef
	template uint32
}

// mailing is what the recipients of one event and template share.
type mailing struct {
	writer writer
	err    error // of the template with this event: every message fails with it
	posted *fanfare.AcceptedEvent
	topic  *registry.Topic // nil of a run, and if it was deleted since
	asked  bool            // by its recipient, just now

	template uint32
	compiled *render.Template // nil: it has none
	items    *runItems        // of a run
	filed    int              // bytes of files of the message alone that nobody has counted
}

// hasFiles reports whether its letters have files of the message alone: they are not
// kept for the next batch, which may be of others.
func (m *mailing) hasFiles() bool { return m.posted.Direct != nil && len(m.posted.Direct.Files) > 0 }

// A writer writes the letters of one event by one channel and template.
type writer interface {
	Write(dst []byte, r *render.Recipient) (driver.Message, []byte, error)
}

// recipient returns who is written to, with the subscriptions that are still
// active, the one that picked the template first; nil if none is. Of an
// audience it is who is there still, with what was said of them.
func (l *loader) recipient(m *pending, mailing *mailing, people *people) *render.Recipient {
	who := people.subscriber(m.member.Subscriber)
	if who == nil {
		return nil
	}
	r := compose.Recipient(who, mailing.posted)
	r.Delivery, r.Sole = m.ref, m.section.Members.Len() == 1
	if d := mailing.posted.Direct; d != nil {
		if who.Address == "" { // erased
			return nil
		}
		if named := d.To(m.member.Subscriber); named != nil {
			r.Data = named.Data
		}
		return r
	}
	r.Subscriptions = make([]render.Subscription, 0, len(m.member.Subscriptions))
	for _, place := range m.member.Subscriptions {
		row := people.subscription(place)
		if row == nil || !row.Live {
			continue
		}
		r.Subscriptions = append(r.Subscriptions, render.Subscription{Place: place, ID: row.ID, Rule: row.Rule, Params: row.Params, Data: row.Data})
	}
	if mailing.items != nil {
		r.Items, r.More = itemsOf(&m.member, r.Subscriptions), int(m.member.More)
	}
	if len(r.Subscriptions) == 0 || mailing.items != nil && len(r.Items) == 0 {
		return nil
	}
	if len(r.Subscriptions) > 1 && mailing.topic != nil {
		slices.SortStableFunc(r.Subscriptions, func(a, b render.Subscription) int {
			return mailing.rank(a.Rule) - mailing.rank(b.Rule)
		})
	}
	return r
}

// unsubscribed is what is recorded of a letter whose subscriptions have all ended
// or are paused.
const unsubscribed = "unsubscribed or paused"

// unwanted says why there is nobody to write to.
func unwanted(m *mailing) string {
	if m.posted.Direct != nil {
		return "the subscriber is gone"
	}
	return unsubscribed
}

// rank is a rule's place in the topic's order; own filters come last.
func (m *mailing) rank(rule string) int {
	if rule != "" {
		for i := range m.topic.Rules {
			if m.topic.Rules[i].Name == rule {
				return i
			}
		}
	}
	return len(m.topic.Rules)
}

// expiry is after when a message must not leave any more: what the event says, or
// else what topic and channel say, counted from when it may leave first.
func expiry(m *mailing, channel *registry.Channel) time.Time {
	if !m.posted.Expires.IsZero() {
		return m.posted.Expires
	}
	after := time.Duration(channel.Expiry)
	if m.topic != nil && m.topic.Expiry > 0 {
		after = m.topic.Expiry
	}
	if after == 0 {
		return time.Time{}
	}
	if m.posted.NotBefore.After(m.posted.ReceivedAt) {
		return m.posted.NotBefore.Add(after)
	}
	return m.posted.ReceivedAt.Add(after)
}

// mailing prepares an event and a pinned template version. An error of the
// template is kept with it, so that each message fails with it.
func (l *loader) mailing(ctx context.Context, posted *fanfare.AcceptedEvent, key mailingKey, channel *registry.Channel) (*mailing, error) {
	m := &mailing{posted: posted, template: key.template, asked: posted.Direct != nil && posted.Direct.Asked}
	if posted.Run != nil {
		m.items = &runItems{store: l.store, run: key.event}
	}
	m.topic, _ = l.registry.Topic(posted.Service, posted.Topic)
	m.writer, m.err = l.writer(ctx, m, key, channel)
	if wrong, ours := errors.AsType[*fanfare.Error](m.err); m.err != nil && (!ours || wrong.Code == fanfare.Unavailable) {
		return nil, m.err // of the store, from which files are read: it says nothing about the message
	}
	if posted.Direct != nil {
		m.filed = mime.EncodedSize(posted.Direct.Files)
	}
	return m, nil
}

func (l *loader) writer(ctx context.Context, of *mailing, key mailingKey, channel *registry.Channel) (writer, error) {
	posted := of.posted
	if channel.Driver == "webhook" && key.template == 0 && posted.Direct == nil {
		return of.posting(nil, key.event).Writer()
	}
	template, err := l.templates.Of(posted, key.template)
	if err != nil {
		return nil, err
	}
	of.compiled = template
	var absent func(string)
	if source, ok := l.registry.Template(key.template); ok {
		absent = l.absentFrom(of, &source)
	}
	if channel.Driver == "webhook" {
		p := of.posting(template, key.event)
		p.Absent = absent
		return p.Writer()
	}
	m, err := compose.Mailing(template, posted, key.event, channel)
	if err != nil {
		return nil, err
	}
	m.Absent = absent
	m.Returns = compose.ReturnAddresses(channel, l.returns)
	m.EncodeFiles = l.attachments.Of(ctx, posted)
	if posted.Direct == nil { // a message to one who was named belongs to no list that could be left
		m.ListID, m.Unsubscribe, m.Leave = channel.ListID, compose.UnsubscribeLinks(l.signer, posted.Service), l.takesBack(channel.Returns)
		m.Preferences = compose.PreferenceLinks(l.signer, posted.Service)
	}
	m.Sign = l.signing.Sign
	m.Alone = l.alone(posted.Service, channel, m.Unsubscribe != nil)
	if of.items != nil {
		m.Event, m.Digest = nil, of.items.digest(posted.Run)
	}
	return m.Writer()
}

// alone returns what messages to one recipient are made with that leave while others
// are written: it shares nothing that changes with the loader.
func (l *loader) alone(service string, channel *registry.Channel, unsubscribe bool) func() render.Alone {
	keys := l.signers
	return func() (made render.Alone) {
		if channel.Returns != "" {
			made.Returns = compose.ReturnAddresses(channel, l.returns.Clone())
		}
		if unsubscribe {
			made.Unsubscribe = compose.UnsubscribeLinks(l.signer.Clone(), service)
		}
		var signing dkim.Signing
		made.Sign = func(message, files []byte) ([]byte, error) {
			signing.Begin(keys, l.clock.Now())
			message = signing.Sign(message, 0, files)
			return message, signing.Finish()
		}
		return made
	}
}

// posting is what all receivers of a mailing share.
func (m *mailing) posting(template *render.Template, event fanfare.EventRef) render.Posting {
	p := compose.Posting(template, m.posted, event)
	if m.items != nil {
		p.Event, p.Digest = nil, m.items.digest(m.posted.Run)
	}
	return p
}
